package load_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// nothing is a target whose calls take no time.
type nothing struct{}

func (nothing) Open(context.Context) (load.Caller, error) { return nothing{}, nil }
func (nothing) Call(context.Context, record.Mark) error   { return nil }

// residentKB reads this process' resident memory.
func residentKB(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Logf("no resident memory to be read here: %v", err)
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Fatal("no VmRSS in /proc/self/status")
	return 0
}

// However many calls are made, none is kept: memory does not grow with them, and every one is in the count and in the
// quantiles (grafana/k6#763, rakyll/hey#112). .ci/long makes 50 million.
func TestMemoryDoesNotGrowWithTheCalls(t *testing.T) {
	calls := int64(3_000_000)
	if text := os.Getenv("TOLL_SAMPLES"); text != "" {
		var err error
		if calls, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	c := gather(t, nothing{}, 10)
	run := func(n int64) *record.Shard {
		out, err := c.Run(t.Context(), load.Load{Stages: plan.Hold(10, time.Hour), Calls: n, Slices: 20})
		if err != nil {
			t.Fatal(err)
		}
		return out.Shard()
	}
	run(1_200_000)
	before := residentKB(t)
	sum := run(calls)
	after := residentKB(t)
	if grown := after - before; grown >= 20<<10 {
		t.Errorf("%d calls grew the resident memory by %d KiB", calls, grown)
	}
	if sum.Latency.Count() != calls || sum.Failed() != 0 {
		t.Errorf("%d calls are counted, %d were made", sum.Latency.Count(), calls)
	}
	var in int64
	for _, n := range sum.Latency.Buckets() {
		in += n
	}
	if in != calls || sum.Latency.Quantile(1) != sum.Latency.Max() {
		t.Errorf("the quantiles are of %d calls, %d were made", in, calls)
	}
}
