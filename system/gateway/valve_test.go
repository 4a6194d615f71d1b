package gateway

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A queue is one agent that needs so long for each request, behind a valve, simulated event by event.
type queue struct {
	took             []time.Duration // of those that were let in, in the order of their answers
	refused, arrived int
	most             int // inside at a time
}

// simulate puts arrivals on a valve for a time. gap returns the time to the next arrival.
func simulate(v *valve, needs, over time.Duration, gap func(at time.Duration) time.Duration) queue {
	var q queue
	var inside []time.Duration // when they came
	var free time.Duration     // when the agent is free
	for at := gap(0); at < over; at += gap(at) {
		for len(inside) > 0 && max(free, inside[0])+needs <= at {
			free = max(free, inside[0]) + needs
			v.leave(free, free-inside[0])
			q.took = append(q.took, free-inside[0])
			inside = inside[1:]
		}
		q.arrived++
		if v.enter(at) {
			inside = append(inside, at)
			q.most = max(q.most, len(inside))
		} else {
			q.refused++
		}
	}
	return q
}

func (q queue) p99() time.Duration {
	s := slices.Sorted(slices.Values(q.took))
	return s[len(s)*99/100]
}

func even(rate float64) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return time.Duration(1e9 / rate) }
}

func poisson(rate float64) func(time.Duration) time.Duration {
	rnd := rand.New(rand.NewPCG(1, 2))
	return func(time.Duration) time.Duration { return time.Duration(rnd.ExpFloat64() * 1e9 / rate) }
}

// What an agent that needs 1 ms, behind a valve of 2 ms, does with arrivals around and far above what it can: those that are let
// in stay near what they take below it, whoever else comes, and the agent stays busy.
func TestAValveKeepsAnswersInTime(t *testing.T) {
	t.Parallel()
	const needs, over = time.Millisecond, 20 * time.Second
	for name, at := range map[string]func(float64) func(time.Duration) time.Duration{"even": even, "poisson": poisson} {
		below := simulate(newValve(2*time.Millisecond), needs, over, at(800))
		if share := float64(below.refused) / float64(below.arrived); share > .01 {
			t.Errorf("%s at 0.8 × capacity: refused %.4f of all", name, share)
		}
		for _, x := range []struct{ rate, share float64 }{{2000, .5}, {4000, .75}, {8000, .875}} {
			q := simulate(newValve(2*time.Millisecond), needs, over, at(x.rate))
			if q.p99() > 3*below.p99() {
				t.Errorf("%s at %v a second: p99 %v, below capacity %v", name, x.rate, q.p99(), below.p99())
			}
			if len(q.took) < 18_000 {
				t.Errorf("%s at %v a second: answered %d of 20,000 that it can", name, x.rate, len(q.took))
			}
			if share := float64(q.refused) / float64(q.arrived); share < x.share-.05 || share > x.share+.05 {
				t.Errorf("%s at %v a second: refused %.3f of all, want about %.3f", name, x.rate, share, x.share)
			}
			if q.most > 100 {
				t.Errorf("%s at %v a second: %d inside before the valve knew the route", name, x.rate, q.most)
			}
		}
	}
}

// A flood that ends leaves nothing behind: the valve opens again.
func TestAValveOpensAfterAFlood(t *testing.T) {
	t.Parallel()
	flood, calm := even(4000), even(500)
	late := 0
	v := newValve(2 * time.Millisecond)
	q := simulate(v, time.Millisecond, 10*time.Second, func(at time.Duration) time.Duration {
		if at < 5*time.Second {
			return flood(at)
		}
		late++
		return calm(at)
	})
	if refused := q.refused - 3*5000; refused > 10 { // three of four of the flood's
		t.Errorf("%d of %d were refused after the flood", refused, late)
	}
	if v.standing {
		t.Error("it still takes the queue for one that stands")
	}
}

// Many callers of an agent that needs long for each, but handles them side by side, are no queue.
func TestAValveLetsParallelWorkThrough(t *testing.T) {
	t.Parallel()
	v := newValve(300 * time.Millisecond)
	const needs, gap = 100 * time.Millisecond, time.Millisecond
	for at := time.Duration(0); at < 10*time.Second; at += gap {
		if at >= needs {
			v.leave(at, needs)
		}
		if !v.enter(at) {
			t.Fatalf("refused after %v with %d inside", at, v.inside)
		}
	}
}
