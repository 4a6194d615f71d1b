package env

import (
	"math"
	"runtime"
	"time"

	"toll/lab/record"
	"toll/lab/result"
)

const (
	batches     = 8 // of which the cheapest counts: what else ran can only add
	shortSleep  = time.Millisecond
	sleeps      = 60
	sleepBudget = 150 * time.Millisecond // on a machine that oversleeps, fewer sleeps are made
)

// LabCost measures what the lab itself costs on this machine, in less than 300 ms. Costs are the cheapest of several
// batches, so they are what a call pays at least; lateness is what 60 sleeps of 1 ms saw, its p99 therefore their largest.
func LabCost() result.LabCost {
	step := clockStep()
	target := min(max(20*step, 200*time.Microsecond), 5*time.Millisecond)
	late := sleepLateness()
	return result.LabCost{
		ClockNS:      result.Round3(cheapest(target, timeClockPairs)),
		ClockStepNS:  float64(step),
		RecordNS:     result.Round3(cheapest(target, timeRecording)),
		RecordAllocs: recordAllocs(),
		SleepLateP50: result.Round3(float64(late.Quantile(.5)) / 1e3),
		SleepLateP99: result.Round3(float64(late.Quantile(.99)) / 1e3),
		MeterReadNS:  result.Round3(cheapest(target, timeMeter)),
	}
}

// cheapest returns the least time (ns) that one of n repeats took, with n so large that a batch takes the target time.
func cheapest(target time.Duration, batch func(n int) time.Duration) float64 {
	n := 1
	for n < 1<<20 && batch(n) < target {
		n *= 2
	}
	least := math.Inf(1)
	for range batches {
		least = min(least, float64(batch(n))/float64(n))
	}
	return least
}

// timeClockPairs reads the clock as a window of lab/load does.
func timeClockPairs(n int) time.Duration {
	base := time.Now()
	var took time.Duration
	for range n {
		start := time.Since(base)
		took += time.Since(base) - start
	}
	all := time.Since(base)
	runtime.KeepAlive(took)
	return all
}

// clockStep returns the smallest step that the clock was seen to make: its grain, or the time a reading takes if that is
// longer.
func clockStep() time.Duration {
	const steps, budget = 2000, 5 * time.Millisecond
	base := time.Now()
	least := time.Duration(math.MaxInt64)
	last := time.Since(base)
	for seen := 0; seen < steps; {
		now := time.Since(base)
		if now > last {
			least = min(least, now-last)
			seen++
		}
		if last = now; now > budget && seen > 0 {
			break
		}
	}
	return least
}

// timeRecording records latencies of some spread, with raw samples kept.
func timeRecording(n int) time.Duration {
	s := new(record.Shard)
	s.KeepRaw(n)
	base := time.Now()
	recordSome(s, n)
	return time.Since(base)
}

func recordSome(s *record.Shard, n int) {
	d := time.Duration(1)
	for range n {
		d = d*1103515245 + 12345
		s.Done(50_000+d&(1<<16-1), nil)
	}
}

// recordAllocs takes the least of a few tries, for other goroutines may allocate meanwhile.
func recordAllocs() float64 {
	const tries, n = 4, 4096
	least := uint64(math.MaxUint64)
	for range tries {
		s := new(record.Shard)
		s.KeepRaw(n)
		before := record.ReadMeter()
		recordSome(s, n)
		least = min(least, record.ReadMeter().Sub(before).Allocs)
	}
	return result.Round3(float64(least) / n)
}

func timeMeter(n int) time.Duration {
	base := time.Now()
	for range n {
		record.ReadMeter()
	}
	return time.Since(base)
}

func sleepLateness() *record.Hist {
	h := new(record.Hist)
	base := time.Now()
	for range sleeps {
		start := time.Since(base)
		time.Sleep(shortSleep)
		end := time.Since(base)
		h.Record(int64(end - start - shortSleep))
		if end > sleepBudget {
			break
		}
	}
	return h
}
