package env

import (
	"math"
	"testing"
	"time"
)

// Not parallel, so that the tests beside it don't count as the lab's cost.
func TestTheLabsCostIsMeasured(t *testing.T) {
	c := LabCost()
	for name, v := range map[string]float64{
		"clock": c.ClockNS, "clock step": c.ClockStepNS, "recording": c.RecordNS, "meter": c.MeterReadNS,
	} {
		if !(v > 0 && v < math.Inf(1)) {
			t.Errorf("%s costs %v ns", name, v)
		}
	}
	if c.SleepLateP50 < 0 || c.SleepLateP99 < c.SleepLateP50 {
		t.Errorf("sleeps were late by p50 %v, p99 %v", c.SleepLateP50, c.SleepLateP99)
	}
	if c.RecordAllocs != 0 {
		t.Errorf("recording a success allocates %v objects", c.RecordAllocs)
	}
}

func TestTheCheapestBatchCounts(t *testing.T) {
	t.Parallel()
	costs := []time.Duration{9, 7, 5, 6, 8, 9, 9, 9}
	calls := 0
	got := cheapest(100, func(n int) time.Duration {
		d := 50 * time.Duration(n) // two repeats reach the target
		if calls++; calls > 2 {
			d = costs[calls-3] * time.Duration(n)
		}
		return d
	})
	if got != 5 || calls != 2+batches {
		t.Errorf("%v ns after %d batches", got, calls)
	}
}
