package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toll/system/agent"
	"toll/wire/envelope"
)

// Each test of this file is one way in which an agent runtime is known to fail its callers. None of them waits for a timeout:
// a caller that is not answered hangs until the test does.

func TestACrashAnswersItsCallerAndTheQueue(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"panic", "goexit", "fatal"} {
		rt := newRuntime(t, agent.Config{})
		s := newScript()
		r := spawn(t, rt, "a", s, agent.Spec{})
		_, err := r.Ask(t.Context(), msg(how))
		wantCode(t, err, envelope.Crashed)
		_, err = r.Ask(t.Context(), msg("late"))
		wantCode(t, err, envelope.Stopped)

		r = spawn(t, rt, "a", s, agent.Spec{})
		first := askLater(t.Context(), r, msg("wait"))
		for <-s.entered != "wait" {
		}
		if err := r.Tell(t.Context(), msg(how)); err != nil {
			t.Fatal(err)
		}
		var queued []chan asked
		for range 10 {
			queued = append(queued, askLater(t.Context(), r, msg("queued")))
		}
		waitFor(t, func() bool { return r.Queued() == 11 })
		close(s.gate)
		if a := <-first; a.err != nil {
			t.Error(a.err)
		}
		for _, q := range queued {
			wantCode(t, (<-q).err, envelope.Crashed)
		}
		if c := rt.Counts(); c.Crashes != 2 || c.DeadLetters != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// waitFor waits for a state that another goroutine reaches without a signal.
func waitFor(t *testing.T, reached func() bool) {
	t.Helper()
	for !reached() {
		if t.Context().Err() != nil {
			t.Fatal("not reached")
		}
		runtime.Gosched()
	}
}

func TestAFullMailboxHasOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, full := range []agent.Full{agent.Reject, agent.Block, agent.DropOldest} {
			rt := agent.New(agent.Config{})
			s := newScript()
			r := spawn(t, rt, "a", s, agent.Spec{Mailbox: 1, Full: full})
			begin := time.Now()
			first := askLater(t.Context(), r, msg("wait"))
			synctest.Wait()
			second := askLater(t.Context(), r, msg("queued"))
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			third := askLater(ctx, r, msg("third"))
			told := make(chan error, 1)
			go func() { told <- r.Tell(ctx, msg("told")) }()
			synctest.Wait()
			switch full {
			case agent.Reject:
				wantCode(t, (<-third).err, envelope.MailboxFull)
				wantCode(t, <-told, envelope.MailboxFull)
			case agent.Block:
				wantCode(t, (<-third).err, envelope.Deadline)
				wantCode(t, <-told, envelope.Deadline)
				if d := time.Since(begin); d != time.Second {
					t.Errorf("a deadline of 1 s was over after %v", d)
				}
			case agent.DropOldest:
				wantCode(t, (<-second).err, envelope.MailboxFull)
				if err := <-told; err != nil {
					t.Error(err)
				}
			}
			close(s.gate)
			if a := <-first; a.err != nil {
				t.Error(a.err)
			}
			cancel()
			if err := rt.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestABlockedCallerGetsThePlaceThatComesFree(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{Mailbox: 1, Full: agent.Block})
	first := askLater(t.Context(), r, msg("wait"))
	<-s.entered
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				err = r.Tell(t.Context(), msg("t"))
			} else {
				_, err = r.Ask(t.Context(), msg("a"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { return r.Queued() == 20 })
	close(s.gate)
	<-first
	wg.Wait()
	if _, err := r.Ask(t.Context(), msg("last")); err != nil || s.seen.Load() != 22 {
		t.Errorf("%v; %d messages handled", err, s.seen.Load())
	}
}

func TestDespawnAnswersWhoIsInFlightAndInTheQueue(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	d := dynamic(t, rt, agent.DynamicSpec{})
	r, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "script", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	inFlight := askLater(t.Context(), r, msg("hang"))
	waitFor(t, func() bool { return r.Busy() })
	queued := askLater(t.Context(), r, msg("queued"))
	waitFor(t, func() bool { return r.Queued() == 1 })
	if err := d.Despawn(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, (<-inFlight).err, envelope.Stopped)
	wantCode(t, (<-queued).err, envelope.Stopped)
	wantCode(t, d.Despawn(t.Context(), "a"), envelope.NotFound)
}

// A handler that does not look at its context can't be ended. It answers nobody any more, and is counted until it returns.
func TestAHandlerThatDoesNotReturnIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := agent.New(agent.Config{})
		s := newScript()
		r := spawn(t, rt, "a", s, agent.Spec{Shutdown: time.Second})
		inFlight := askLater(t.Context(), r, msg("wait"))
		synctest.Wait()
		begin := time.Now()
		if err := r.Stop(t.Context(), agent.Now); err != nil {
			t.Fatal(err)
		}
		wantCode(t, (<-inFlight).err, envelope.Stopped)
		if d := time.Since(begin); d != time.Second || rt.Counts().Zombies != 1 {
			t.Errorf("gone after %v; %+v", d, rt.Counts())
		}
		spawn(t, rt, "a", newScript(), agent.Spec{})
		close(s.gate)
		synctest.Wait()
		if c := rt.Counts(); c.Zombies != 0 || c.Live != 1 {
			t.Errorf("%+v", c)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingGrowsOver100kSpawns(t *testing.T) {
	rt := newRuntime(t, agent.Config{})
	d := dynamic(t, rt, agent.DynamicSpec{MaxPerSpawner: 10, MaxSpawnsPerSpawner: 1 << 30})
	cycle := func(from, to int) {
		for i := from; i < to; i++ {
			name := "child-" + strconv.Itoa(i)
			r, err := d.Spawn(t.Context(), &agent.SpawnRequest{ID: name, Spawner: "me", Class: "echo", Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if i%4 == 0 {
				if _, err := r.Ask(t.Context(), msg("x")); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Despawn(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(0, 1000)
	goroutines, heap := runtime.NumGoroutine(), liveHeap()
	cycle(1000, 101_000)
	waitFor(t, func() bool { return runtime.NumGoroutine() <= goroutines })
	if grown := liveHeap() - heap; grown > 256<<10 {
		t.Errorf("the live heap grew by %d bytes", grown)
	}
	if rt.Counts().Live != 0 || d.Len() != 0 || len(d.Children()) != 0 {
		t.Errorf("%+v, %d children", rt.Counts(), d.Len())
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one left in pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A crowd's memory is given back when it has gone, and one idle child is cheap.
func TestIdleChildrenAreSmall(t *testing.T) {
	rt := newRuntime(t, agent.Config{})
	d := dynamic(t, rt, agent.DynamicSpec{})
	before := liveHeap()
	const n = 20_000
	for i := range n {
		r, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "echo", Name: "child-" + strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Ask(t.Context(), msg("x")); err != nil {
			t.Fatal(err)
		}
	}
	if each := (liveHeap() - before) / n; each > 3<<10 {
		t.Errorf("an idle child holds %d bytes", each)
	} else {
		t.Logf("an idle child holds %d bytes", each)
	}
	for _, r := range d.Children() {
		if err := d.Despawn(t.Context(), r.Name()); err != nil {
			t.Fatal(err)
		}
	}
	if rest := liveHeap() - before; rest > n*32 {
		t.Errorf("%d bytes are left of %d children", rest, n)
	}
}

func TestANameIsFreeWhenItsAgentHasStoppedByItself(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	var last uint64
	for range 100 {
		r := spawn(t, rt, "a", newScript(), agent.Spec{})
		if r.Epoch() <= last {
			t.Fatalf("epoch %d after %d", r.Epoch(), last)
		}
		last = r.Epoch()
		if _, err := r.Ask(t.Context(), msg("stop")); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := rt.Call(t.Context(), &envelope.Message{Recipient: "a", Epoch: last})
		wantCode(t, err, envelope.NotFound)
	}
	r := spawn(t, rt, "a", newScript(), agent.Spec{})
	_, err := rt.Call(t.Context(), &envelope.Message{Recipient: "a", Epoch: last})
	wantCode(t, err, envelope.NotFound)
	if _, err := rt.Call(t.Context(), &envelope.Message{Recipient: "a", Epoch: r.Epoch()}); err != nil {
		t.Error(err)
	}
}

func TestAPoisonFrameIsCountedAndItsSenderQuarantined(t *testing.T) {
	t.Parallel()
	var quarantined atomic.Int64
	rt := newRuntime(t, agent.Config{Events: func(e agent.Event) {
		if e.Kind == agent.PeerQuarantined && e.Name == "bad" {
			quarantined.Add(1)
		}
	}})
	spawn(t, rt, "a", echo(), agent.Spec{})
	in := agent.NewInlet(rt, agent.Msgpack{}, 3)
	ask := &envelope.Message{Type: "t", Sender: "s", Recipient: "a", CorrelationID: "1", Payload: map[string]any{"n": int64(1)}}
	frame, err := ask.AppendMsgpack(nil)
	if err != nil {
		t.Fatal(err)
	}
	good := func(peer string) error {
		reply, err := in.Receive(t.Context(), peer, frame)
		if err == nil && (reply.CorrelationID != "1" || reply.Recipient != "s" || reply.Err() != nil) {
			t.Errorf("%+v", reply)
		}
		return err
	}
	for range 2 {
		if _, err := in.Receive(t.Context(), "bad", []byte{0xc1}); err == nil {
			t.Error("a bad frame was read")
		}
	}
	if err := good("bad"); err != nil {
		t.Error(err)
	}
	for range 3 {
		in.Receive(t.Context(), "bad", frame[:20])
	}
	if err := good("bad"); !errors.Is(err, agent.ErrQuarantined) || quarantined.Load() != 1 {
		t.Errorf("%v, %d", err, quarantined.Load())
	}
	if err := good("other"); err != nil {
		t.Error(err)
	}
	in.Release("bad")
	if err := good("bad"); err != nil || rt.Counts().Poison != 6 {
		t.Errorf("%v, %+v", err, rt.Counts())
	}
	ask.Recipient = "nobody"
	frame, _ = ask.AppendMsgpack(nil)
	reply, err := in.Receive(t.Context(), "other", frame)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, reply.Err(), envelope.NotFound)
}

func TestAPoisonMessageCostsAsManyLivesAsItMay(t *testing.T) {
	t.Parallel()
	for _, deliveries := range []int{1, 3} {
		var lives atomic.Int64
		s := newScript()
		rt := newRuntime(t, agent.Config{})
		_, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", MaxRestarts: 5, Children: []agent.Child{{
			Name: "a", New: func() (agent.Handler, error) { lives.Add(1); return s, nil }, Deliveries: deliveries,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		first, _ := rt.Lookup("a")
		held := askLater(t.Context(), first, msg("wait"))
		<-s.entered
		for _, typ := range []string{"panic", "after"} {
			if err := first.Tell(t.Context(), msg(typ)); err != nil {
				t.Fatal(err)
			}
		}
		close(s.gate)
		<-held
		for got := ""; got != "after"; got = <-s.entered { // the queue behind it survives
		}
		if n := lives.Load(); n != int64(deliveries)+1 {
			t.Errorf("%d lives for %d deliveries", n, deliveries)
		}
		dead := rt.DeadLetters()
		if len(dead) != 1 || dead[0].Message.Type != "panic" || !errors.Is(dead[0].Err, envelope.Crashed) || dead[0].Message.Attempt != deliveries {
			t.Errorf("%+v", dead)
		}
	}
}

// gated starts, and stops, when it is let.
type gated struct{ start, stop chan struct{} }

func (g *gated) Start(*agent.Context) error { <-g.start; return nil }

func (g *gated) Stop(*agent.Context, error) { <-g.stop }

func (g *gated) Handle(_ *agent.Context, m *envelope.Message) (any, error) { return m.Payload, nil }

func TestASlowStartOrStopHoldsUpNobody(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	g := &gated{make(chan struct{}), make(chan struct{})}
	d := dynamic(t, rt, agent.DynamicSpec{Classes: map[string]agent.Class{
		"gated": {New: func(map[string]any) (agent.Handler, error) { return g, nil }},
	}})
	done := make(chan error, 2)
	d.SpawnNowait(t.Context(), &agent.SpawnRequest{Class: "gated", Name: "slow"}, func(_ agent.Ref, err error) { done <- err })
	waitFor(t, func() bool { return rt.Counts().Live == 1 })
	others := func() {
		for i := range 10 {
			name := fmt.Sprint("quick", i)
			if _, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "echo", Name: name}); err != nil {
				t.Error(err)
			}
			if err := d.Despawn(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	}
	others()
	// What comes while it starts waits in its mailbox.
	r, _ := rt.Lookup("slow")
	early := askLater(t.Context(), r, msg("early"))
	waitFor(t, func() bool { return r.Queued() == 1 })
	close(g.start)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if a := <-early; a.v != "early" || a.err != nil {
		t.Errorf("%+v", a)
	}
	go func() { done <- d.Stop(context.Background(), "slow", agent.All) }()
	waitFor(t, func() bool { return r.State() == "stopping" })
	others()
	close(g.stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOneOfManyGetsAName(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	spawn(t, rt, "static", echo(), agent.Spec{})
	d := dynamic(t, rt, agent.DynamicSpec{MaxChildren: 1000})
	for round := range 50 {
		name := fmt.Sprint("n", round)
		var won, refused atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				switch _, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "echo", Name: name}); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, agent.DuplicateName):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || refused.Load() != 15 || d.Len() != round+1 {
			t.Fatalf("%d won, %d were refused; %d children", won.Load(), refused.Load(), d.Len())
		}
	}
	_, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "echo", Name: "static"})
	if !errors.Is(err, agent.DuplicateName) {
		t.Errorf("a static agent's name: %v", err)
	}
}

func TestASpawnThatIsGivenUpLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var orphans atomic.Int64
		rt := agent.New(agent.Config{Events: func(e agent.Event) {
			if e.Kind == agent.SpawnOrphaned {
				orphans.Add(1)
			}
		}})
		g := &gated{make(chan struct{}), make(chan struct{})}
		close(g.stop)
		d := dynamic(t, rt, agent.DynamicSpec{StartTimeout: time.Second, Restart: agent.Permanent, Classes: map[string]agent.Class{
			"gated": {New: func(map[string]any) (agent.Handler, error) { return g, nil }},
		}})
		begin := time.Now()
		_, err := d.Spawn(context.Background(), &agent.SpawnRequest{Class: "gated", Name: "a"})
		wantCode(t, err, envelope.Deadline)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = d.Spawn(ctx, &agent.SpawnRequest{Class: "gated", Name: "b"})
		wantCode(t, err, envelope.Deadline)
		if took := time.Since(begin); took != 2*time.Second || orphans.Load() != 2 {
			t.Errorf("given up after %v; %d orphans", took, orphans.Load())
		}
		close(g.start) // they come up late
		synctest.Wait()
		if rt.Counts().Live != 0 || d.Len() != 0 {
			t.Errorf("%+v, %d children", rt.Counts(), d.Len())
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestOneFullMailboxStallsNoOtherAgent(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	slow := spawn(t, rt, "slow", s, agent.Spec{Mailbox: 2})
	spawn(t, rt, "quick", echo(), agent.Spec{})
	in := rt.Inbound()
	held := askLater(t.Context(), slow, msg("wait"))
	<-s.entered
	full := 0
	for range 10 {
		if err := in.Tell(t.Context(), &envelope.Message{Type: "t", Recipient: "slow"}); errors.Is(err, envelope.MailboxFull) {
			full++
		}
		if _, err := in.Ask(t.Context(), &envelope.Message{Type: "t", Recipient: "quick", CorrelationID: "1"}); err != nil {
			t.Error(err)
		}
	}
	if full != 8 {
		t.Errorf("%d messages were refused, want 8", full)
	}
	if err := in.Tell(t.Context(), &envelope.Message{Type: "_agency.health_probe", Recipient: "slow", Priority: 1}); err != nil {
		t.Errorf("the control lane: %v", err)
	}
	close(s.gate)
	<-held
}

func TestExpiredWorkIsNotDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := agent.New(agent.Config{})
		s := newScript()
		r := spawn(t, rt, "a", s, agent.Spec{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := askLater(ctx, r, msg("hang")) // its context ends with the caller's
		synctest.Wait()
		second := askLater(ctx, r, msg("expired"))
		wantCode(t, (<-first).err, envelope.Deadline)
		wantCode(t, (<-second).err, envelope.Deadline)
		synctest.Wait()
		if n := s.seen.Load(); n != 1 || rt.Counts().Expired != 1 {
			t.Errorf("%d messages were handled; %+v", n, rt.Counts())
		}
		m := &envelope.Message{Type: "t", Recipient: "a", TTL: time.Second, CorrelationID: "1"}
		m.Stamp(time.Now())
		time.Sleep(3 * time.Second)
		_, err := rt.Inbound().Ask(t.Context(), m)
		wantCode(t, err, envelope.Deadline)
		if n := s.seen.Load(); n != 1 {
			t.Errorf("%d messages were handled", n)
		}
		m.Stamp(time.Now())
		m.Type, m.Timestamp = "hang", float64(time.Now().Unix())
		begin := time.Now()
		_, err = rt.Inbound().Ask(t.Context(), m)
		wantCode(t, err, envelope.Deadline)
		if d := time.Since(begin); d != time.Second {
			t.Errorf("a time to live of 1 s was over after %v", d)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownDrainsAnswersAndHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := agent.New(agent.Config{})
		s := newScript()
		r := spawn(t, rt, "a", s, agent.Spec{Shutdown: time.Minute})
		stuck := spawn(t, rt, "b", newScript(), agent.Spec{Shutdown: 2 * time.Second})
		inFlight, lost := askLater(t.Context(), r, msg("wait")), askLater(t.Context(), stuck, msg("wait"))
		synctest.Wait()
		queued, never := askLater(t.Context(), r, msg("queued")), askLater(t.Context(), stuck, msg("queued"))
		synctest.Wait()
		closed := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { closed <- rt.Close(ctx) }()
		synctest.Wait()
		_, err := r.Ask(t.Context(), msg("late"))
		wantCode(t, err, envelope.Stopped)
		if _, err := rt.Spawn(t.Context(), "c", echo(), agent.Spec{}); !errors.Is(err, agent.ShuttingDown) {
			t.Errorf("spawning: %v", err)
		}
		close(s.gate)
		if a := <-inFlight; a.err != nil {
			t.Error(a.err)
		}
		if a := <-queued; a.err != nil {
			t.Error(a.err)
		}
		wantCode(t, <-closed, envelope.Deadline)
		wantCode(t, (<-lost).err, envelope.Stopped)
		wantCode(t, (<-never).err, envelope.Stopped)
		if err := stuck.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if c := rt.Counts(); c.Live != 0 || c.Zombies != 1 {
			t.Errorf("%+v", c)
		}
		stuckEnds(stuck)
	})
}

// stuckEnds lets the handler that was left behind return, for the bubble to end.
func stuckEnds(r agent.Ref) { close(r.Handler().(*script).gate) }

func TestLateAndSecondRepliesAreCounted(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{})
	r.Ask(t.Context(), msg("twice"))
	ctx, cancel := context.WithCancel(t.Context())
	late := askLater(ctx, r, msg("wait"))
	waitFor(t, r.Busy)
	cancel()
	wantCode(t, (<-late).err, envelope.Cancelled)
	close(s.gate)
	if _, err := r.Ask(t.Context(), msg("next")); err != nil {
		t.Error(err)
	}
	if n := rt.Counts().LateReplies; n != 2 {
		t.Errorf("%d late or second replies, want 2", n)
	}
}

func TestEverythingIsBoundedByDefault(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{MaxAgents: 2, DeadLetters: 3})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{})
	held := askLater(t.Context(), r, msg("wait"))
	<-s.entered
	accepted := 0
	for range 1100 {
		if r.Tell(t.Context(), msg("t")) == nil {
			accepted++
		}
	}
	if accepted != 1000 {
		t.Errorf("a mailbox took %d messages", accepted)
	}
	spawn(t, rt, "b", echo(), agent.Spec{})
	if _, err := rt.Spawn(t.Context(), "c", echo(), agent.Spec{}); !errors.Is(err, agent.MaxAgents) {
		t.Errorf("a third agent: %v", err)
	}
	for _, name := range []string{"", string(make([]byte, 256))} {
		if _, err := rt.Spawn(t.Context(), name, echo(), agent.Spec{}); !errors.Is(err, agent.BadName) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(context.Background(), agent.Now) }()
	wantCode(t, (<-held).err, envelope.Stopped)
	close(s.gate)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if n := len(rt.DeadLetters()); n != 3 || rt.Counts().DeadLetters != 1000 {
		t.Errorf("%d dead letters are kept of %d", n, rt.Counts().DeadLetters)
	}
}

// dynamic makes a dynamic supervisor of the classes echo and script besides those of spec.
func dynamic(t *testing.T, rt *agent.Runtime, spec agent.DynamicSpec) *agent.Dynamic {
	t.Helper()
	spec.Name = "d"
	classes := map[string]agent.Class{
		"echo":   {New: func(map[string]any) (agent.Handler, error) { return echo(), nil }},
		"script": {New: func(map[string]any) (agent.Handler, error) { return newScript(), nil }},
	}
	for name, c := range spec.Classes {
		classes[name] = c
	}
	spec.Classes = classes
	d, err := rt.SuperviseDynamic(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
