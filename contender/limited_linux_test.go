package contender_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"toll/contender"
	"toll/contender/limits"
	"toll/contender/place"
)

// limited starts an act under limits where this machine can hold them.
func limited(t *testing.T, act string, l limits.Limits) *contender.Process {
	t.Helper()
	s := spec(t, act)
	s.Limits = l
	p, err := contender.Start(t.Context(), s)
	if errors.Is(err, limits.ErrUnavailable) && os.Getenv("TOLL_RUN_ALL") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p
}

func TestLimitsAreInForceOnTheWholeTree(t *testing.T) {
	t.Parallel()
	want := limits.Limits{CPUs: .5, Memory: 256 << 20}
	p := limited(t, "good", want)
	got, err := p.Limited()
	if err != nil || got.Limits != want || got.Mechanism == contender.Unlimited || got.MemoryPeak == 0 && got.Mechanism == limits.CgroupV1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	free := start(t, spec(t, "good"))
	if got, err := free.Limited(); err != nil || got.Mechanism != contender.Unlimited || got.UsageKnown {
		t.Errorf("without limits: %+v, %v", got, err)
	}
}

func TestTheEndSaysThatMemoryRanOut(t *testing.T) {
	t.Parallel()
	p := limited(t, "hungry", limits.Limits{CPUs: 1, Memory: 64 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p.Ask(ctx, []byte("eat"))
	select {
	case <-p.Done():
	case <-ctx.Done():
		t.Fatal("200 MB fit below a limit of 64 MiB")
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "hungry: ended by itself (signal: killed, it reached its memory limit, 64MiB)") {
		t.Errorf("got %v", err)
	}
}

func TestALimitThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	s := spec(t, "good")
	s.Limits, s.AllowUnlimited = limits.Limits{CPUs: -1}, true
	if _, err := contender.Start(t.Context(), s); err == nil || err.Error() != "good: cpus: -1; expected 0.01 to 4096" {
		t.Errorf("got %v", err)
	}
}

func TestAProcessIsHeldToItsProcessors(t *testing.T) {
	t.Parallel()
	usable, err := place.Usable()
	if err != nil {
		t.Fatal(err)
	}
	s := spec(t, "good")
	s.Processors = usable[:1]
	p, err := contender.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(context.Background())
	u, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range u.PIDs {
		if err := s.Processors.InForce(pid); err != nil {
			t.Error(err)
		}
	}
	s.Processors = place.Set{1023}
	if _, err := contender.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "processors [1023]") {
		t.Errorf("a processor that is not there: %v", err)
	}
}
