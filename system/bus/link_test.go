package bus_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/system/bus"
	"toll/wire/envelope"
	"toll/wire/frame"
)

// over runs f for every way.
func over(t *testing.T, cfg bus.Config, f func(t *testing.T, w *way)) {
	t.Parallel()
	for _, name := range []string{"inproc", "direct", "routed", "nats", "zmtp", "zmtp-proxy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newWay(t, name, cfg))
		})
	}
}

func code(err error) envelope.Code {
	c, _ := envelope.CodeOf(err)
	return c
}

func TestEveryCallerGetsItsOwnReply(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		for _, quick := range []bool{true, false} {
			r := bus.NewResponder(echo, w.cfg)
			s := w.serve(fmt.Sprintf("node-%v", quick), r, quick)
			l := w.link(s.addr)
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					ctx := within(t, 60*time.Second)
					c := newCall(fmt.Sprintf("node-%v", quick), "")
					for j := range 50 {
						want := strings.Repeat(fmt.Sprintf("%d.%d ", i, j), 1+j*7)
						c.Body = []byte(want)
						if err := l.Call(ctx, c); err != nil || string(c.Answer) != want {
							t.Errorf("%.40q, %v; want %.40q", c.Answer, err, want)
							return
						}
					}
				})
			}
			wg.Wait()
			if n := r.Counts().Answered; n != 1000 {
				t.Errorf("answered %d of 1000", n)
			}
		}
	})
}

// What a handler does wrong is told its caller, over every way alike, and hurts nobody else.
func TestFailuresReachTheCaller(t *testing.T) {
	over(t, bus.Config{MaxFrame: 1 << 16}, func(t *testing.T, w *way) {
		r := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
			switch string(r.Body) {
			case "panic":
				panic("on purpose")
			case "error":
				return nil, errors.New("cannot")
			case "typed":
				return dst, fmt.Errorf("wrapped: %w", envelope.Suspended)
			case "large":
				return append(dst, make([]byte, 1<<17)...), nil
			case "short":
				return dst[:0], nil
			}
			return append(dst, r.Body...), nil
		}, w.cfg)
		s := w.serve("node", r, true)
		l := w.link(s.addr)
		for _, c := range []struct {
			body string
			code envelope.Code
			text string
		}{
			{"panic", envelope.Crashed, "agent node: agent_crashed: panic: on purpose"},
			{"error", envelope.Failed, "agent node: failed: cannot"},
			{"typed", envelope.Suspended, "agent node: suspended: wrapped: suspended"},
			{"large", envelope.Failed, "agent node: failed: the reply has 131084 bytes, at most 65536 are sent"},
			{"short", envelope.Failed, "agent node: failed: bus: the handler returned less than it was given"},
			{strings.Repeat("x", 1<<17), envelope.Failed, ""},
			{"fine", 0, ""},
		} {
			call := newCall("node", c.body)
			err := l.Call(within(t, 60*time.Second), call)
			if code(err) != c.code || c.text != "" && err.Error() != c.text {
				t.Errorf("%.20q: got %v, want %s", c.body, err, c.text)
			}
			if c.code == 0 && string(call.Answer) != c.body {
				t.Errorf("%q", call.Answer)
			}
		}
		if n := r.Counts(); n.Panics != 1 || n.Oversized != 1 || n.Answered != 1 || n.Failed != 5 {
			t.Errorf("%+v", n)
		}
		long := newCall("node", "x")
		long.Op = strings.Repeat("o", 256)
		if err := l.Call(within(t, time.Second), long); code(err) != envelope.Failed {
			t.Errorf("an operation of 256 bytes: %v", err)
		}
	})
}

func TestATellIsAcknowledged(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		var got atomic.Int64
		r := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
			if string(r.Body) == "full" {
				return dst, envelope.MailboxFull
			}
			got.Add(1)
			return append(dst, "nobody reads this"...), nil
		}, w.cfg)
		l := w.link(w.serve("node", r, true).addr)
		q := newCall("node", "fine").Request
		if err := l.Tell(within(t, 60*time.Second), &q); err != nil || got.Load() != 1 {
			t.Errorf("%v, %d runs", err, got.Load())
		}
		q.Body = []byte("full")
		if err := l.Tell(within(t, 60*time.Second), &q); code(err) != envelope.MailboxFull {
			t.Error(err)
		}
		if n := r.Counts(); n.Told != 1 || n.Failed != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// A request whose deadline is over is not run, however it came; its caller has gone anyway.
func TestExpiredWorkIsNotRun(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		if w.name == "inproc" {
			return // nothing waits between caller and handler
		}
		entered, release := make(chan struct{}), make(chan struct{})
		var runs atomic.Int64
		r := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
			if runs.Add(1) == 1 {
				close(entered)
				<-release // the reading goroutine is held up, as that of a stopped process
			}
			return dst, nil
		}, w.cfg)
		l := w.link(w.serve("node", r, true).addr)
		var first, late sync.WaitGroup
		first.Go(func() { l.Call(within(t, 60*time.Second), newCall("node", "first")) })
		<-entered
		for range 5 {
			late.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				if err := l.Call(ctx, newCall("node", "late")); code(err) != envelope.Deadline {
					t.Error(err)
				}
			})
		}
		late.Wait()
		close(release)
		first.Wait()
		if err := l.Call(within(t, 60*time.Second), newCall("node", "last")); err != nil {
			t.Error(err)
		}
		if n := r.Counts(); runs.Load() != 2 || n.Expired != 5 {
			t.Errorf("%d runs, %+v", runs.Load(), n)
		}
	})
}

// A keyed request that is sent again is answered again, and run once: while it is being run, afterwards, and after a failure.
func TestAKeyedRequestRunsOnce(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		var runs atomic.Int64
		gate := make(chan struct{})
		r := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
			n := runs.Add(1)
			<-gate
			if string(r.Body) == "fail" {
				return dst, envelope.Suspended
			}
			return fmt.Appendf(dst, "run %d", n), nil
		}, w.cfg)
		l := w.link(w.serve("node", r, false).addr)
		var wg sync.WaitGroup
		ask := func(body string, number uint64) (string, error) {
			c := newCall("node", body)
			c.Key = frame.Key{Sender: 7, Number: number}
			err := l.Call(within(t, 60*time.Second), c)
			return string(c.Answer), err
		}
		for range 8 {
			wg.Go(func() {
				if got, err := ask("x", 1); got != "run 1" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		until(t, func() bool { return r.Counts().Repeated == 7 })
		close(gate)
		wg.Wait()
		if got, err := ask("x", 1); got != "run 1" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := ask("x", 2); got != "run 2" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		for range 2 {
			if _, err := ask("fail", 3); code(err) != envelope.Suspended {
				t.Error(err)
			}
		}
		if runs.Load() != 3 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// until waits for a state that other goroutines bring about.
func until(t testing.TB, what func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t, 60*time.Second); !what(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it never came to be")
		}
	}
}

// Answers are kept for being asked again, within bounds.
func TestAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	r := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
		runs.Add(1)
		return append(dst, make([]byte, 1000)...), nil
	}, bus.Config{Remember: 10, Known: 5000})
	l := bus.NewInproc(r)
	for i := range uint64(100) {
		c := newCall("x", "")
		c.Key = frame.Key{Sender: 1, Number: i + 1}
		if err := l.Call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	c := newCall("x", "")
	c.Key = frame.Key{Sender: 1, Number: 100}
	if err := l.Call(t.Context(), c); err != nil || runs.Load() != 100 {
		t.Errorf("the last was run again: %d runs, %v", runs.Load(), err)
	}
	c.Key.Number = 1
	if err := l.Call(t.Context(), c); err != nil || runs.Load() != 101 {
		t.Errorf("the first was still known: %d runs, %v", runs.Load(), err)
	}
}

// Deadlines far away, and in the past, are kept as they are.
func TestDeadlinesOfAnySize(t *testing.T) {
	t.Parallel()
	r := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
		_, ok := r.Expires()
		return fmt.Append(dst, ok), nil
	}, bus.Config{})
	l := bus.NewInproc(r)
	for d, want := range map[time.Duration]string{0: "false", math.MaxInt64: "true", time.Hour: "true"} {
		ctx := t.Context()
		if d > 0 {
			ctx = within(t, d)
		}
		c := newCall("x", "")
		if err := l.Call(ctx, c); err != nil || string(c.Answer) != want {
			t.Errorf("%v: %q, %v", d, c.Answer, err)
		}
	}
}
