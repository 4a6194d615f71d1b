package fleet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"toll/fleet"
	"toll/lab/plan"
	"toll/lab/record"
)

func busy(calls int) *record.Shard {
	s := new(record.Shard)
	r := rand.New(rand.NewPCG(1, 1))
	for range calls {
		s.Done(time.Duration(100_000+r.ExpFloat64()*200_000), nil)
	}
	return s
}

// What a worker pays for a slice beside publishing it.
func BenchmarkEncodeSlice(b *testing.B) {
	s := fleet.Slice{Run: "run", Worker: "w1", To: time.Second, Shard: busy(5000)}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(s.Encode())
	}
	b.ReportMetric(float64(n), "B/slice")
}

// What the coordinator pays for one: checked, decoded, merged.
func BenchmarkCoordinatorSlice(b *testing.B) {
	settings := plan.Settings{Model: plan.Closed, Duration: plan.Duration(24 * time.Hour), Concurrency: []int{2}, Rounds: 1, Blocks: 1}
	var c *fleet.Coordinator
	leg := fleet.NewLeg(settings)
	shard := busy(5000)
	b.ReportAllocs()
	n := len(leg.Times)
	for b.Loop() {
		b.StopTimer()
		if n == len(leg.Times) { // a day is over
			c, n = fleet.NewCoordinator(fleet.Config{Run: "run", Workers: 1, Settings: settings}), 0
			c.Handle(0, fleet.Message{From: "w1", Hello: &fleet.Hello{Life: "a"}})
		}
		t := leg.Times[n]
		body := fleet.Slice{Run: "run", Worker: "w1", N: n, From: t.From, To: t.To, Shard: shard}.Encode()
		b.StartTimer()
		c.HandleSlice(time.Duration(n)*time.Second, body)
		n++
	}
	if r := c.Report(); r.Merged != n {
		b.Fatalf("%d of %d slices are merged", r.Merged, n)
	}
}

// What a worker's beat costs the coordinator.
func BenchmarkCoordinatorBeat(b *testing.B) {
	c := fleet.NewCoordinator(fleet.Config{Run: "run", Workers: 1, Settings: shortSettings()})
	data := fleet.Message{From: "w1", Run: "run", Hello: &fleet.Hello{Life: "a"}, Beat: &fleet.Beat{Phase: fleet.Running, Life: "a", Elapsed: time.Second, Slices: 3}, Clock: &fleet.Clock{T1: 1, T2: 2, T3: 3}}.Encode()
	b.ReportAllocs()
	for b.Loop() {
		m, err := fleet.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		c.Handle(0, m)
	}
	b.ReportMetric(float64(len(data)), "B")
}
