package hub_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"toll/fleet"
	"toll/fleet/hub"
)

// wants fails unless the run ended as it should.
func (r *rig) wants(out *fleet.Report, verdict, event string) {
	r.t.Helper()
	if !strings.HasPrefix(out.Verdict.String(), verdict) || !strings.Contains(r.events(out), event) {
		r.t.Errorf("verdict %q, want %q; events, among which should be %q:\n%s", out.Verdict, verdict, event, r.events(out))
	}
}

// TestMain lets the tests of this package run side by side: they wait, they do not compute.
func TestMain(m *testing.M) {
	if url := os.Getenv(stillWorker); url != "" {
		workStill(url)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestAFleetMeasures(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 4, 3, nil)
	for range 4 {
		r.join(nil)
	}
	out := r.wait(c)
	r.wants(out, "complete", "")
	if out.SlicesGot != 12 || out.Slices != 12 || out.WorkersComplete != 4 {
		t.Errorf("%d of %d slices, %d workers", out.SlicesGot, out.Slices, out.WorkersComplete)
	}
	for i := range r.ended {
		if err := <-r.ended[i]; err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
}

// Fault 20: a worker is killed.
func TestAKilledWorkerDegradesTheRun(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 3, 30, func(cfg *fleet.Config) { cfg.Rejoin = 5 * time.Second })
	for range 3 {
		r.join(nil)
	}
	r.after(c, 3500*time.Millisecond, r.cancel[1])
	out := r.wait(c)
	r.wants(out, "degraded: worker w2 lost at ", "given up")
	if out.Merged < 1 || out.Merged > 5 {
		t.Errorf("%d slices are merged; the worker was killed at 3.5 s", out.Merged)
	}
}

func TestARunGoesOnWithLessLoadIfAsked(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 3, 10, func(cfg *fleet.Config) { cfg.OnLoss, cfg.Rejoin = fleet.Continue, 4*time.Second })
	for range 3 {
		r.join(nil)
	}
	r.after(c, 2500*time.Millisecond, r.cancel[1])
	out := r.wait(c)
	r.wants(out, "degraded: worker w2 lost at ", "given up")
	if out.Merged != 10 || out.WorkersComplete != 2 || out.SlicesGot >= out.Slices {
		t.Errorf("%d slices are merged of 10; %d workers complete, %d of %d slices", out.Merged, out.WorkersComplete, out.SlicesGot, out.Slices)
	}
}

// Fault 20: the coordinator, and with it the server, is started anew.
func TestACoordinatorThatIsStartedAnewGoesOn(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 3, 8, nil)
	for range 3 {
		r.join(nil)
	}
	r.after(c, 2500*time.Millisecond, func() {
		c.Close()
		r.server.Close()
	})
	addr := r.addr
	<-time.After(1500 * time.Millisecond)
	r.serve(addr)
	out := r.wait(r.conduct())
	r.wants(out, "complete", "started anew")
}

// Two coordinators of one run: the first one finds that it has been replaced, at the latest when it has something to save.
func TestARunHasOneCoordinator(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 2, 3, nil)
	r.join(nil)
	deadline := time.After(20 * time.Second)
	for rep := c.Report(); rep == nil || len(rep.Members) == 0; rep = c.Report() {
		select {
		case <-deadline:
			t.Fatal("no worker came")
		case <-time.After(50 * time.Millisecond):
		}
	}
	second := r.conduct()
	r.join(nil)
	if _, err := c.Wait(t.Context()); !errors.Is(err, hub.ErrTaken) {
		t.Errorf("the first coordinator ended with %v", err)
	}
	c.Close()
	r.wants(r.wait(second), "complete", "")
}

// Fault 20: a worker's wall clock is set.
func TestAClockThatIsSetChangesNothing(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 2, 6, nil)
	var stepped atomic.Int64
	r.join(func(cfg *hub.WorkConfig) { cfg.Stepped = func() time.Duration { return time.Duration(stepped.Load()) } })
	r.join(nil)
	r.after(c, time.Second, func() { stepped.Store(int64(5 * time.Second)) })
	r.after(c, 1500*time.Millisecond, func() { stepped.Store(int64(-5 * time.Second)) })
	out := r.wait(c)
	r.wants(out, "complete", "wall clock was set by +5.000 s")
	r.wants(out, "complete", "wall clock was set by -10.000 s")
}

// Fault 20: slices come twice, beyond the stream's own window of duplicates.
func TestDuplicatesAreMergedOnce(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 2, 5, nil)
	r.join(nil)
	r.join(nil)
	nc, err := nats.Connect(r.url())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	r.after(c, 1500*time.Millisecond, func() {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Error(err)
			return
		}
		s, err := js.Stream(t.Context(), "toll-"+r.cfg.Run)
		if err != nil {
			t.Error(err)
			return
		}
		m, err := s.GetMsg(t.Context(), 1)
		if err != nil {
			t.Error(err)
			return
		}
		for range 3 {
			if _, err := js.Publish(t.Context(), m.Subject, m.Data); err != nil {
				t.Error(err)
			}
		}
	})
	out := r.wait(c)
	r.wants(out, "complete", "")
	if out.Duplicates < 3 {
		t.Errorf("%d duplicates, want 3 at least", out.Duplicates)
	}
}

// Fault 20: a slice is missing, and its worker has lost it as well.
func TestASliceThatIsMissingIsNoResult(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 2, 5, nil)
	dir := t.TempDir()
	r.join(func(cfg *hub.WorkConfig) { cfg.Dir = dir })
	r.join(nil)
	r.after(c, 2500*time.Millisecond, func() {
		c.Close()
		r.forget()
		if err := os.Truncate(dir+"/"+r.cfg.Run+"-w1.slices", 10); err != nil {
			t.Error(err)
		}
	})
	r.wants(r.wait(r.conduct()), "refused: worker w1: slice ", "refused")
}

// forget deletes the stream.
func (r *rig) forget() {
	nc, err := nats.Connect(r.url())
	if err != nil {
		r.t.Error(err)
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		r.t.Error(err)
		return
	}
	if err := js.DeleteStream(r.t.Context(), "toll-"+r.cfg.Run); err != nil {
		r.t.Error(err)
	}
}

// Fault 21: the stream is deleted while the run goes on.
func TestADeletedStreamIsBuiltAgainFromTheWorkersFiles(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 3, 6, nil)
	for range 3 {
		r.join(nil)
	}
	r.after(c, 2500*time.Millisecond, func() { r.forget() })
	r.wants(r.wait(c), "complete", "")
}

// Fault 21: stream and bucket are gone when the coordinator is started anew; it has the roster in its folder's bucket only.
func TestADeletedStreamAndARestartAreBuiltAgain(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 3, 7, nil)
	for range 3 {
		r.join(nil)
	}
	r.after(c, 2500*time.Millisecond, func() {
		c.Close()
		r.forget()
	})
	out := r.wait(r.conduct())
	r.wants(out, "complete", "started anew")
	if out.SlicesGot != out.Slices {
		t.Errorf("%d of %d slices", out.SlicesGot, out.Slices)
	}
}

// A partition of five seconds that heals: the worker is out of reach, its load goes on, and everything arrives.
func TestAPartitionThatHealsLosesNothing(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 3, 9, nil)
	p := newTube(t, r.addr)
	r.join(nil)
	r.join(func(cfg *hub.WorkConfig) { cfg.URL = "nats://" + token + "@" + p.addr })
	r.join(nil)
	r.after(c, 1500*time.Millisecond, func() { p.set(true) })
	<-time.After(5 * time.Second)
	p.set(false)
	out := r.wait(c)
	r.wants(out, "complete", "lost at")
	r.wants(out, "complete", "back after")
}

// Faults 5 and 6: a connection that looks well and carries nothing any more is given up by the worker, which asks when nothing comes.
func TestALineThatIsDeadIsGivenUp(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 2, 13, nil)
	p := newTube(t, r.addr)
	r.join(nil)
	r.join(func(cfg *hub.WorkConfig) { cfg.URL = "nats://" + token + "@" + p.addr })
	r.after(c, 1500*time.Millisecond, p.kill)
	out := r.wait(c)
	r.wants(out, "complete", "w2: lost at")
	r.wants(out, "complete", "w2: back after")
}

func TestAWorkerOfAnotherBuildIsRefused(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 1, 3, func(cfg *fleet.Config) { cfg.Build.Version = "v2" })
	defer c.Close()
	r.join(func(cfg *hub.WorkConfig) { cfg.Hello.Build.Version = "v1" })
	err := <-r.ended[0]
	if !errors.Is(err, hub.ErrLeft) || !strings.Contains(err.Error(), "the worker is toll v1 , the coordinator v2") {
		t.Errorf("the worker ended with %v", err)
	}
}

func TestWhoHasNoTokenDoesNotGetIn(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 1, 3, nil)
	defer c.Close()
	err := hub.Work(t.Context(), hub.WorkConfig{Access: hub.Access{URL: "nats://wrong@" + r.addr}, Dir: t.TempDir(), Generator: new(maker), Patience: time.Second})
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("%v", err)
	}
}

func TestAnInterruptedRunKeepsWhatAllDelivered(t *testing.T) {
	t.Parallel()
	r, c := begin(t, 2, 20, nil)
	r.join(nil)
	r.join(nil)
	r.after(c, 2500*time.Millisecond, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := c.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.wants(out, "stopped: interrupted", "")
	if out.Merged < 1 || out.Merged > 10 {
		t.Errorf("%d slices are merged", out.Merged)
	}
	c.Close()
}
