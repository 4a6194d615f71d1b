package suite_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/contender/faults"
	"toll/system/agent"
	"toll/system/bus"
	"toll/wire/envelope"
)

// pair is a process with two agents, one that stands still until its gate opens and one that answers at once.
type pair struct {
	gate    chan struct{}
	runtime *agent.Runtime
	refs    map[string]agent.Ref
}

// slowMailbox is how many messages may wait for the slow agent.
const slowMailbox = 16

func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{gate: make(chan struct{}), runtime: agent.New(agent.Config{}), refs: make(map[string]agent.Ref)}
	for name, h := range map[string]agent.HandlerFunc{
		"slow": func(_ *agent.Context, m *envelope.Message) (any, error) { <-p.gate; return m.Payload, nil },
		"fast": func(_ *agent.Context, m *envelope.Message) (any, error) { return m.Payload, nil },
	} {
		ref, err := p.runtime.Spawn(context.Background(), name, h, agent.Spec{Mailbox: slowMailbox})
		if err != nil {
			t.Fatal(err)
		}
		p.refs[name] = ref
	}
	t.Cleanup(func() { p.runtime.Close(within(t, 60*time.Second)) })
	return p
}

func (p *pair) handle(dst []byte, r *bus.Request) ([]byte, error) {
	ref, ok := p.refs[string(r.To)]
	if !ok {
		return dst, &envelope.Failure{Code: envelope.NotFound}
	}
	ctx := context.Background()
	if until, ok := r.Expires(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	v, err := ref.Ask(ctx, &envelope.Message{Type: "ping", Recipient: string(r.To), Payload: append([]byte(nil), r.Body...)})
	if err != nil {
		return dst, err
	}
	return append(dst, v.([]byte)...), nil
}

// Fault 7, whole: an agent is offered far more than it handles. Its callers hear so long before their deadline, the memory of its
// process is bounded however many they are, and another agent of the same process is answered over the same connection
// meanwhile, every time.
func TestOneSlowAgentDoesNotHoldUpTheOthers(t *testing.T) {
	x := newPair(t)
	target := newTarget(t, x.handle, false, bus.Config{})
	d := target.dial(t, bus.Config{})
	var waiting, full atomic.Int64
	var wg sync.WaitGroup
	ctx := within(t, 60*time.Second) // far away: what is told before is told at once
	offer := func(n uint64) {
		switch err := ask(ctx, d, bus.NewCall("slow", "b", "c"), n); codeOf(err) {
		case envelope.MailboxFull:
			full.Add(1)
		case 0:
			waiting.Add(1)
		default:
			t.Error(err)
		}
	}
	for n := range uint64(slowMailbox + 1) { // one is handled, the others wait
		wg.Go(func() { offer(n) })
	}
	until(t, "its mailbox is full", func() bool { return x.refs["slow"].Queued() == slowMailbox })
	for n := range uint64(100) {
		offer(1000 + n)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var offers sync.WaitGroup
	for v := range uint64(20) {
		offers.Go(func() {
			for n := range uint64(250) {
				offer(v<<32 | n)
			}
		})
	}
	for n := range uint64(500) {
		if err := ask(ctx, d, bus.NewCall("fast", "b", "c"), n); err != nil {
			t.Fatalf("ask %d of the other agent: %v", n, err)
		}
	}
	offers.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes over 5000 offers", grown)
	}
	if full.Load() != 5100 {
		t.Errorf("%d of 5100 were told that it is overloaded", full.Load())
	}
	close(x.gate)
	wg.Wait()
	if waiting.Load() != slowMailbox+1 {
		t.Errorf("%d were answered in the end", waiting.Load())
	}
}

// What the other agent's callers see of it: their p99 alone and beside an agent whose mailbox is full and is offered more all
// the time. The expected is at most twice; it is a benchmark since a test may not fail on a busy machine.
func BenchmarkBesideASlowAgent(b *testing.B) {
	for _, beside := range []bool{false, true} {
		b.Run(fmt.Sprintf("beside=%v", beside), func(b *testing.B) {
			x := newPair(b)
			r := bus.NewResponder(x.handle, bus.Config{})
			s, l := bus.NewServer(r, false), listen(b)
			var wg sync.WaitGroup
			wg.Go(func() { s.Serve(l) })
			d, err := bus.DialDirect(b.Context(), "tcp://"+l.Addr().String(), nil, bus.Config{})
			if err != nil {
				b.Fatal(err)
			}
			stop := make(chan struct{})
			var load sync.WaitGroup
			if beside {
				for n := range uint64(slowMailbox + 1) {
					load.Go(func() { ask(context.Background(), d, bus.NewCall("slow", "b", "c"), n) })
				}
				load.Go(func() {
					tick := time.NewTicker(time.Millisecond)
					defer tick.Stop()
					for n := uint64(1 << 32); ; n++ {
						select {
						case <-stop:
							return
						case <-tick.C:
						}
						ask(context.Background(), d, bus.NewCall("slow", "b", "c"), n)
					}
				})
			}
			var took []time.Duration
			c := bus.NewCall("fast", "b", "c")
			n := uint64(0)
			for b.Loop() {
				at := time.Now()
				if err := ask(context.Background(), d, c, n); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
				n++
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100])/1000, "p99-µs")
			close(stop)
			close(x.gate)
			load.Wait()
			d.Close()
			s.Shutdown(context.Background())
			wg.Wait()
		})
	}
}

// Fault 10: what one sender sends over two connections may come in another order than it was sent. Each reply is that of its
// request all the same; and over one connection, which alone promises an order, requests are handled as they were sent.
func TestReplyAndRequestStayTogetherOverTwoConnections(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var handled []uint64
	x := newTarget(t, func(dst []byte, r *bus.Request) ([]byte, error) {
		mu.Lock()
		handled = append(handled, binary.LittleEndian.Uint64(r.Body))
		mu.Unlock()
		return append(dst, r.Body...), nil
	}, true, bus.Config{Heartbeat: -1})
	through := x.dial(t, bus.Config{Heartbeat: -1})
	direct, err := bus.DialDirect(within(t, 60*time.Second), "tcp://"+x.behind, nil, bus.Config{Heartbeat: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	x.proxy.Set(faults.Faults{Up: faults.Way{Stall: true}})
	const late = 50
	var wg sync.WaitGroup
	for n := range uint64(late) { // these stand before the proxy
		wg.Go(func() {
			if err := ask(within(t, 60*time.Second), through, bus.NewCall("a", "b", "c"), n); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range uint64(late) { // these overtake them
		if err := ask(within(t, 60*time.Second), direct, bus.NewCall("a", "b", "c"), 1000+n); err != nil {
			t.Error(err)
		}
	}
	x.proxy.Set(faults.Faults{Up: faults.Way{Delay: time.Millisecond, Jitter: time.Millisecond}})
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	for i, n := range handled[:late] {
		if n != 1000+uint64(i) {
			t.Fatalf("request %d over a connection was handled as number %d", n, i)
		}
	}
	if len(handled) != 2*late {
		t.Errorf("%d were handled", len(handled))
	}
	for _, n := range handled[late:] {
		if n >= late {
			t.Errorf("request %d came after those that were sent before it", n)
		}
	}
}
