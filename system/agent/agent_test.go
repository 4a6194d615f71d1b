package agent_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/system/agent"
	"toll/wire/envelope"
)

// A script is a handler whose messages say what it does.
type script struct {
	gate    chan struct{} // "wait" waits for it
	entered chan string   // receives the type of each message that it handles, when not nil
	busy    atomic.Int32
	seen    atomic.Int64
}

func newScript() *script { return &script{gate: make(chan struct{}), entered: make(chan string, 100)} }

func (s *script) Handle(c *agent.Context, m *envelope.Message) (any, error) {
	if s.busy.Add(1) != 1 {
		panic("two messages at a time")
	}
	defer s.busy.Add(-1)
	s.seen.Add(1)
	select {
	case s.entered <- m.Type:
	default:
	}
	switch m.Type {
	case "wait":
		<-s.gate
	case "hang":
		<-c.Context().Done()
		return nil, c.Context().Err()
	case "panic":
		panic("boom")
	case "goexit":
		runtime.Goexit()
	case "fatal":
		return nil, agent.Fatal(errors.New("beyond repair"))
	case "error":
		return nil, errors.New("no such thing")
	case "stop":
		return m.Payload, agent.ErrStop
	case "twice":
		if err := c.Reply("first", nil); err != nil {
			return nil, err
		}
		return nil, c.Reply("second", nil)
	}
	return m.Payload, nil
}

func msg(typ string) *envelope.Message { return &envelope.Message{Type: typ, Payload: typ} }

func spawn(t *testing.T, rt *agent.Runtime, name string, h agent.Handler, spec agent.Spec) agent.Ref {
	t.Helper()
	r, err := rt.Spawn(t.Context(), name, h, spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newRuntime(t *testing.T, cfg agent.Config) *agent.Runtime {
	t.Helper()
	rt := agent.New(cfg)
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if c := rt.Counts(); c.Live != 0 || c.Zombies != 0 {
			t.Errorf("after Close: %+v", c)
		}
	})
	return rt
}

// asked is an ask in progress.
type asked struct {
	v   any
	err error
}

func askLater(ctx context.Context, r agent.Ref, m *envelope.Message) chan asked {
	out := make(chan asked, 1)
	go func() {
		v, err := r.Ask(ctx, m)
		out <- asked{v, err}
	}()
	return out
}

func wantCode(t *testing.T, err error, code envelope.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got %v, want %v", err, code)
	}
}

func TestAskAndTell(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{false, true} {
		rt := newRuntime(t, agent.Config{})
		s := newScript()
		r := spawn(t, rt, "a", s, agent.Spec{Inline: inline})
		if v, err := r.Ask(t.Context(), msg("hello")); v != "hello" || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		if err := r.Tell(t.Context(), msg("told")); err != nil {
			t.Error(err)
		}
		if v, err := rt.Call(t.Context(), &envelope.Message{Type: "x", Recipient: "a", Payload: 7}); v != 7 || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		_, err := r.Ask(t.Context(), msg("error"))
		wantCode(t, err, envelope.Failed)
		if v, err := r.Ask(t.Context(), msg("twice")); v != "first" || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		if v, err := r.Ask(t.Context(), msg("stop")); v != "stop" || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		_, err = r.Ask(t.Context(), msg("late"))
		wantCode(t, err, envelope.Stopped)
		_, err = rt.Call(t.Context(), &envelope.Message{Recipient: "a"})
		wantCode(t, err, envelope.NotFound)
		if c := rt.Counts(); c.LateReplies != 1 || c.Handled != 6 {
			t.Errorf("%+v", c)
		}
	}
}

func TestOneAtATime(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{false, true} {
		rt := newRuntime(t, agent.Config{})
		plain := 0 // the race detector sees who else touches it
		r := spawn(t, rt, "a", agent.HandlerFunc(func(_ *agent.Context, m *envelope.Message) (any, error) {
			plain++
			return plain, nil
		}), agent.Spec{Inline: inline, Full: agent.Block, Mailbox: 4})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 500 {
					if i%3 == 0 {
						if err := r.Tell(t.Context(), msg("t")); err != nil {
							t.Error(err)
						}
					} else if _, err := r.Ask(t.Context(), msg("a")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if v, err := r.Ask(t.Context(), msg("last")); v != 8*500+1 || err != nil {
			t.Errorf("%v, %v", v, err)
		}
	}
}

func TestControlLaneIsServedFirst(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{Control: 1})
	first := askLater(t.Context(), r, msg("wait"))
	<-s.entered
	for _, m := range []*envelope.Message{msg("n1"), msg("n2"), {Type: "urgent", Priority: 1}} {
		if err := r.Tell(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, r.Tell(t.Context(), &envelope.Message{Type: "u2", Priority: 1}), envelope.MailboxFull)
	close(s.gate)
	<-first
	for _, want := range []string{"urgent", "n1", "n2"} {
		if got := <-s.entered; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSuspendedAgentsFailAsksAndKeepTells(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{})
	if err := r.Suspend(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Ask(t.Context(), msg("x"))
	wantCode(t, err, envelope.Suspended)
	if err := r.Tell(t.Context(), msg("kept")); err != nil {
		t.Fatal(err)
	}
	if n := s.seen.Load(); n != 0 {
		t.Errorf("%d messages were handled", n)
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := <-s.entered; got != "kept" {
		t.Error(got)
	}
	if _, err := r.Ask(t.Context(), msg("y")); err != nil {
		t.Error(err)
	}
	if err := r.Stop(t.Context(), agent.Now); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.Suspend(), envelope.Stopped)
	wantCode(t, r.Resume(), envelope.Stopped)
}

func TestWireParityCopiesWhatItCarries(t *testing.T) {
	t.Parallel()
	for _, codec := range []agent.Codec{agent.Msgpack{}, agent.JSON{}} {
		rt := newRuntime(t, agent.Config{Parity: codec})
		var got any
		r := spawn(t, rt, "a", agent.HandlerFunc(func(_ *agent.Context, m *envelope.Message) (any, error) {
			got = m.Payload
			return m.Payload, nil
		}), agent.Spec{})
		sent := map[string]any{"n": 7}
		v, err := r.Ask(t.Context(), &envelope.Message{Type: "t", Payload: sent})
		if err != nil {
			t.Fatal(err)
		}
		sent["n"] = 8
		if got.(map[string]any)["n"] != int64(7) || v.(map[string]any)["n"] != int64(7) {
			t.Errorf("%v, %v", got, v)
		}
		_, err = r.Ask(t.Context(), &envelope.Message{Type: "t", Payload: make(chan int)})
		wantCode(t, err, envelope.Failed)
	}
}

func TestJudges(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	j := &judged{verdicts: map[string]agent.Verdict{"skip": agent.Skip, "halt": agent.Halt, "retry": agent.Retry, "escalate": agent.Escalate}}
	r := spawn(t, rt, "a", j, agent.Spec{})
	_, err := r.Ask(t.Context(), msg("skip"))
	wantCode(t, err, envelope.Failed)
	m := msg("retry")
	_, err = r.Ask(t.Context(), m)
	wantCode(t, err, envelope.Crashed)
	if j.calls.Load() != 5 || m.Attempt != 3 {
		t.Errorf("%d calls, attempt %d", j.calls.Load(), m.Attempt)
	}
	r = spawn(t, rt, "a", j, agent.Spec{})
	_, err = r.Ask(t.Context(), msg("escalate"))
	wantCode(t, err, envelope.Crashed)
	r = spawn(t, rt, "a", j, agent.Spec{})
	_, err = r.Ask(t.Context(), msg("halt"))
	wantCode(t, err, envelope.Failed)
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if n := rt.Counts().Crashes; n != 2 {
		t.Errorf("%d crashes", n)
	}
}

type judged struct {
	verdicts map[string]agent.Verdict
	calls    atomic.Int64
}

func (j *judged) Handle(_ *agent.Context, m *envelope.Message) (any, error) {
	if j.calls.Add(1); m.Type == "skip" {
		panic("skipped")
	}
	return nil, errors.New("no")
}

func (j *judged) Judge(_ *agent.Context, m *envelope.Message, _ error) agent.Verdict {
	return j.verdicts[m.Type]
}

func TestStreams(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	emitted := make(chan error, 1)
	r := spawn(t, rt, "a", agent.HandlerFunc(func(c *agent.Context, m *envelope.Message) (any, error) {
		for i := 0; m.Type == "endless" || i < 50; i++ {
			if err := c.Emit(i); err != nil {
				emitted <- err
				return nil, err
			}
			if m.Type == "crash" && i == 20 {
				panic("boom")
			}
		}
		return nil, nil
	}), agent.Spec{})
	read := func(typ string) (n int, err error) {
		st, err := r.Stream(t.Context(), msg(typ), 4)
		if err != nil {
			t.Fatal(err)
		}
		for v, err := range st.All() {
			if err != nil {
				return n, err
			}
			if v != n {
				t.Errorf("value %v at place %d", v, n)
			}
			if n++; typ == "endless" && n == 30 {
				break
			}
		}
		return n, st.Err()
	}
	if n, err := read("fifty"); n != 50 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := read("endless"); n != 30 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := <-emitted; !errors.Is(err, envelope.Cancelled) {
		t.Errorf("the handler of a closed stream got %v", err)
	}
	if _, err := r.Ask(t.Context(), msg("ask")); !errors.Is(err, envelope.Failed) {
		t.Errorf("emitting to an ask: %v", err)
	}
	<-emitted
	n, err := read("crash")
	wantCode(t, err, envelope.Crashed)
	if n != 21 {
		t.Errorf("%d values before the crash, want 21", n)
	}
}

func TestStreamIsBoundedByItsWindow(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	var ahead, most atomic.Int64
	r := spawn(t, rt, "a", agent.HandlerFunc(func(c *agent.Context, _ *envelope.Message) (any, error) {
		for i := range 100 {
			if err := c.Emit(i); err != nil {
				return nil, err
			}
			most.Store(max(most.Load(), ahead.Add(1)))
		}
		return nil, nil
	}), agent.Spec{})
	st, err := r.Stream(t.Context(), msg("s"), 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := st.Next(); ok; _, ok = st.Next() {
		ahead.Add(-1)
		runtime.Gosched()
	}
	// One value is in the reader's hands and one in the handler's before they are counted.
	if most.Load() > 6 || st.Err() != nil {
		t.Errorf("the handler was %d values ahead of a window of 4; %v", most.Load(), st.Err())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	hang := spawn(t, rt, "b", newScript(), agent.Spec{})
	if st, err = hang.Stream(ctx, msg("hang"), 0); err != nil {
		t.Fatal(err)
	}
	if _, ok := st.Next(); ok || !errors.Is(st.Err(), envelope.Deadline) {
		t.Errorf("%v", st.Err())
	}
}
