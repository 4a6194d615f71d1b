//go:build unix

package suite_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"toll/contender"
	"toll/system"
	"toll/system/bus"
	"toll/wire/envelope"
)

// A worker is a bus worker in a process of its own, and how to reach it.
type worker struct {
	t       *testing.T
	carrier string
	broker  string
	addr    string
	process *contender.Process
}

// overWorkers runs f with a worker over each carrier that has one.
func overWorkers(t *testing.T, f func(t *testing.T, w *worker)) {
	t.Parallel()
	for _, carrier := range []string{system.Direct, system.DirectMailbox, system.Routed, system.NATS, system.ZMTP, system.ZMTPProxy} {
		t.Run(carrier, func(t *testing.T) {
			t.Parallel()
			w := &worker{t: t, carrier: carrier}
			if len(system.BusProcesses(carrier)) == 2 {
				w.broker = process(t, "bus-broker", "--carrier", carrier).Ready().Addr
			}
			w.start("")
			f(t, w)
		})
	}
}

// start starts the worker's process, at an address that it had before or anywhere.
func (w *worker) start(addr string) {
	w.t.Helper()
	args := []string{"bus-worker", "--carrier", w.carrier}
	if w.broker != "" {
		args = append(args, "--at", w.broker)
	} else if addr != "" {
		args = append(args, "--addr", strings.TrimPrefix(addr, "tcp://"))
	}
	w.process = process(w.t, args...)
	w.addr = w.process.Ready().Addr
}

func (w *worker) signal(s syscall.Signal) {
	w.t.Helper()
	u, err := w.process.Usage()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := syscall.Kill(u.PIDs[0], s); err != nil {
		w.t.Fatal(err)
	}
}

// stop stops the worker as a debugger would, and returns when it answers no more.
func (w *worker) stop(l bus.Link) {
	w.t.Helper()
	w.signal(syscall.SIGSTOP)
	until(w.t, "it has stopped", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		return codeOf(ask(ctx, l, bus.NewCall("target", "test", "ping"), 50)) == envelope.Deadline
	})
}

func (w *worker) client() *system.BusClient {
	c := system.NewBusClient(w.carrier, w.addr, "", false)
	w.t.Cleanup(func() { c.Close() })
	return c
}

// Fault 1: a worker that is stopped makes callers' deadlines pass; when it goes on, it runs nothing that has expired, and no
// late reply is taken for another's.
func TestAStoppedWorkerGoesOn(t *testing.T) {
	overWorkers(t, func(t *testing.T, w *worker) {
		l, err := w.client().Link(within(t, 60*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		c := bus.NewCall("target", "test", "ping")
		if err := ask(within(t, 60*time.Second), l, c, 1); err != nil {
			t.Fatal(err)
		}
		w.stop(l)
		for n := range uint64(5) {
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
			if err := ask(ctx, l, c, 100+n); codeOf(err) != envelope.Deadline {
				t.Errorf("while it is stopped: %v", err)
			}
			cancel()
		}
		w.signal(syscall.SIGCONT)
		for n := range uint64(300) {
			if err := ask(within(t, 60*time.Second), l, c, 1000+n); err != nil {
				t.Fatalf("call %d after it goes on: %v", n, err)
			}
		}
	})
}

// Faults 2 and 3: when a worker is killed exactly the calls in flight fail, at once where the connection says so; later ones
// are told that nobody is there; and a worker that is started in its place is found.
func TestAKilledWorkerIsReplaced(t *testing.T) {
	overWorkers(t, func(t *testing.T, w *worker) {
		client := w.client()
		l, err := client.Link(within(t, 60*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(within(t, 60*time.Second), l, bus.NewCall("target", "test", "ping"), 1); err != nil {
			t.Fatal(err)
		}
		w.stop(l)
		const inFlight = 10
		var failed, answered atomic.Int64
		var wg sync.WaitGroup
		limit := 60 * time.Second
		if w.carrier == system.ZMTPProxy || w.carrier == system.NATS {
			limit = time.Second // who publishes to a broker learns of a worker's end by waiting
		}
		for n := range uint64(inFlight) {
			wg.Go(func() {
				err := ask(within(t, limit), l, bus.NewCall("target", "test", "ping"), 100+n)
				switch codeOf(err) {
				case 0:
					answered.Add(1)
				case envelope.Unreachable, envelope.Deadline, envelope.NotFound: // the last, when it came after the worker had gone
					failed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		w.signal(syscall.SIGKILL)
		wg.Wait()
		if failed.Load() != inFlight {
			t.Errorf("%d of %d calls in flight failed, %d were answered", failed.Load(), inFlight, answered.Load())
		}
		again := bus.NewCall("target", "test", "ping")
		if w.carrier != system.ZMTPProxy {
			// The deadline is far away: a failure other than it is one that came at once.
			if err := ask(within(t, 60*time.Second), l, again, 200); codeOf(err) != envelope.Unreachable && codeOf(err) != envelope.NotFound {
				t.Errorf("with nobody there: %v", err)
			}
		}
		w.start(w.addr)
		until(t, "the new worker answers", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			l, err := client.Link(ctx)
			return err == nil && ask(ctx, l, again, 300) == nil
		})
	})
}

// A drain of the worker's process loses nothing that it had taken.
func TestAWorkerThatEndsAnswersWhatItHas(t *testing.T) {
	overWorkers(t, func(t *testing.T, w *worker) {
		l, err := w.client().Link(within(t, 60*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var wrong atomic.Int64
		var wg sync.WaitGroup
		for v := range uint64(4) {
			wg.Go(func() {
				c := bus.NewCall("target", "test", "ping")
				for n := uint64(0); ; n++ {
					err := ask(within(t, 2*time.Second), l, c, v<<32|n)
					if _, bad := err.(*wrongReply); bad {
						wrong.Add(1)
					}
					if err != nil {
						return
					}
				}
			})
		}
		if err := w.process.Stop(within(t, 60*time.Second)); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if wrong.Load() > 0 {
			t.Errorf("%d wrong replies", wrong.Load())
		}
	})
}
