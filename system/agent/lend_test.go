package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"toll/system/agent"
	"toll/wire/envelope"
)

// lent is what a caller who lends its goroutine learns: what Lend returns, or what it is freed with.
type lent struct {
	v    any
	err  error
	kept bool
}

// lend calls Lend on a goroutine of its own. Each channel has room for what it may receive.
func lend(ctx context.Context, r agent.Ref, m *envelope.Message) (returned, freed chan lent) {
	returned, freed = make(chan lent, 1), make(chan lent, 2)
	go func() {
		defer close(returned)
		v, err, kept := r.Lend(ctx, m, func(v any, err error) { freed <- lent{v, err, false} })
		returned <- lent{v, err, kept}
	}()
	return returned, freed
}

func TestALentGoroutineAnswersLikeAnAsk(t *testing.T) {
	t.Parallel()
	for typ, code := range map[string]envelope.Code{
		"echo": 0, "stop": 0, "error": envelope.Failed, "panic": envelope.Crashed, "fatal": envelope.Crashed,
	} {
		for _, inline := range []bool{false, true} {
			rt := newRuntime(t, agent.Config{})
			r := spawn(t, rt, "a", newScript(), agent.Spec{Inline: inline})
			v, err, kept := r.Lend(t.Context(), msg(typ), func(any, error) { t.Errorf("%s: freed, though the handler had returned", typ) })
			if !kept {
				t.Errorf("%s: not kept", typ)
			}
			if code != 0 {
				wantCode(t, err, code)
			} else if v != typ || err != nil {
				t.Errorf("%s: %v, %v", typ, v, err)
			}
		}
	}
}

func TestALentGoroutineIsFreedBeforeTheHandlerReturns(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		typ   string
		code  envelope.Code // 0 is the answer "first"
		ends  bool          // the goroutine
		late  int64
		cause func(cancel func(), r agent.Ref)
	}{
		"the caller's time is over": {"wait", envelope.Cancelled, false, 1, func(cancel func(), _ agent.Ref) { cancel() }},
		"the agent is killed": {"wait", envelope.Stopped, false, 0, func(_ func(), r agent.Ref) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			r.Stop(ctx, agent.Now)
		}},
		"the handler replies": {"twice", 0, false, 1, nil},
		"the handler exits":   {"goexit", envelope.Crashed, true, 0, nil},
	} {
		rt := newRuntime(t, agent.Config{})
		s := newScript()
		r := spawn(t, rt, "a", s, agent.Spec{Shutdown: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		returned, freed := lend(ctx, r, msg(x.typ))
		<-s.entered
		if x.cause != nil {
			x.cause(cancel, r)
		}
		got := <-freed
		if x.code == 0 {
			if got.v != "first" || got.err != nil {
				t.Errorf("%s: freed with %v, %v", name, got.v, got.err)
			}
		} else if code, _ := envelope.CodeOf(got.err); code != x.code {
			t.Errorf("%s: freed with %v; want %v", name, got.err, x.code)
		}
		close(s.gate)
		if back, returns := <-returned; returns == x.ends || back.kept {
			t.Errorf("%s: returned %v %+v", name, returns, back)
		}
		if len(freed) > 0 {
			t.Errorf("%s: freed twice", name)
		}
		if n := rt.Counts().LateReplies; n != x.late {
			t.Errorf("%s: %d late replies; want %d", name, n, x.late)
		}
		cancel()
	}
}

// Whether the handler sees the end first or the caller is freed first is open; that both do is not.
func TestAHandlerOnALentGoroutineSeesTheEndOfItsCaller(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	returned, freed := lend(ctx, r, msg("hang"))
	<-s.entered
	cancel()
	got := <-returned
	if !got.kept {
		got = <-freed
	}
	wantCode(t, got.err, envelope.Cancelled)
}

// Whoever finds the agent busy waits for it as by Ask, and the messages behind a lent goroutine's are handled when it goes.
func TestALentGoroutineHandlesItsOwnMessageOnly(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	s := newScript()
	r := spawn(t, rt, "a", s, agent.Spec{})
	first, _ := lend(t.Context(), r, msg("wait"))
	<-s.entered
	second, freed := lend(t.Context(), r, msg("echo"))
	waitFor(t, func() bool { return r.Queued() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	third, _ := lend(ctx, r, msg("echo"))
	waitFor(t, func() bool { return r.Queued() == 2 })
	cancel()
	if got := <-third; !got.kept || !errors.Is(got.err, envelope.Cancelled) {
		t.Errorf("who gives up while it waits: %+v", got)
	}
	close(s.gate)
	for name, c := range map[string]chan lent{"wait": first, "echo": second} {
		if got := <-c; !got.kept || got.err != nil || got.v != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if len(freed) > 0 {
		t.Error("freed, though its answer was its own")
	}
}

// ended is a context that calls what it was given whenever it is told to.
type ended struct {
	context.Context
	f func()
}

// AtEnd keeps f.
func (e *ended) AtEnd(f func()) { e.f = f }

func TestAnEndThatComesTooLateDoesNothing(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	r := spawn(t, rt, "a", newScript(), agent.Spec{})
	ctx := &ended{Context: t.Context()}
	v, err, kept := r.Lend(ctx, msg("echo"), func(any, error) { t.Error("freed") })
	ctx.f()
	if v != "echo" || err != nil || !kept || rt.Counts().LateReplies != 0 {
		t.Errorf("%v, %v, %v", v, err, kept)
	}
	if _, err, kept := r.Lend(t.Context(), msg("echo"), nil); err != nil || !kept {
		t.Error(err, kept)
	}
}
