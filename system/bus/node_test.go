package bus_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/system/bus"
	"toll/wire/envelope"
)

// agents are the local side of a node in tests: functions by name.
type agents struct {
	mu  sync.Mutex
	fns map[string]func(ctx context.Context, m *envelope.Message) (any, error)
}

func (a *agents) set(name string, f func(ctx context.Context, m *envelope.Message) (any, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fns == nil {
		a.fns = make(map[string]func(context.Context, *envelope.Message) (any, error))
	}
	a.fns[name] = f
}

// Ask runs the function.
func (a *agents) Ask(ctx context.Context, m *envelope.Message) (*envelope.Message, error) {
	a.mu.Lock()
	f := a.fns[m.Recipient]
	a.mu.Unlock()
	if f == nil {
		return nil, envelope.NotFound
	}
	v, err := f(ctx, m)
	if err != nil {
		return nil, err
	}
	return m.Reply(v), nil
}

// Tell runs the function.
func (a *agents) Tell(ctx context.Context, m *envelope.Message) error {
	_, err := a.Ask(ctx, m)
	return err
}

// A member is a node that is served over a way.
type member struct {
	*bus.Node
	agents *agents
	served served
}

// join starts a node. dir nil means that names are announced to peers.
func (w *way) join(name string, dir bus.Directory, peers ...string) *member {
	w.t.Helper()
	a := new(agents)
	m := &member{agents: a}
	late := &lateDirectory{Directory: dir}
	dial := w.dialer()
	cfg := bus.NodeConfig{Name: name, Local: a, Config: w.cfg, Every: 300 * time.Millisecond, Peers: peers, Durable: w.durable,
		Dial: func(ctx context.Context, o bus.Owner) (bus.Link, error) { return dial(ctx, o.Addr) }}
	if dir != nil {
		cfg.Directory = late
	} else {
		cfg.Addr = w.reserve()
	}
	m.Node = bus.NewNode(cfg)
	w.t.Cleanup(func() { m.Close() })
	if dir == nil {
		m.served = w.serveAt(cfg.Addr, m.Responder())
	} else {
		m.served = w.serve(name, m.Responder(), false)
		late.at.Store(&m.served.addr)
	}
	return m
}

// lateDirectory fills in the address of a node that was made before it was served.
type lateDirectory struct {
	bus.Directory
	at atomic.Pointer[string]
}

// Claim fills in the address.
func (d *lateDirectory) Claim(ctx context.Context, name string, o bus.Owner, lost func()) (uint64, error) {
	o.Addr = *d.at.Load()
	return d.Directory.Claim(ctx, name, o, lost)
}

func ask(t testing.TB, n *bus.Node, to string, seq int) (map[string]any, error) {
	t.Helper()
	reply, err := n.Ask(within(t, 60*time.Second), &envelope.Message{Type: "ping", Recipient: to, Sender: "test", Payload: map[string]any{"seq": int64(seq)}})
	if err != nil {
		return nil, err
	}
	p, _ := reply.Payload.(map[string]any)
	return p, nil
}

// pong is an agent that echoes a number and says where it runs.
func pong(where string) func(context.Context, *envelope.Message) (any, error) {
	return func(_ context.Context, m *envelope.Message) (any, error) {
		return map[string]any{"echo": m.Payload.(map[string]any)["seq"], "from": where}, nil
	}
}

func TestAgentsAreAskedByName(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		if w.name == "routed" {
			return // a router routes the names that a worker has attached with, not those of a directory
		}
		table := bus.NewTable()
		server, client := w.join("server", table), w.join("client", table)
		server.agents.set("target", pong("server"))
		server.agents.set("failing", func(context.Context, *envelope.Message) (any, error) { return nil, errors.New("cannot") })
		if _, err := server.Register(t.Context(), "target", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Register(t.Context(), "failing", nil); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if p, err := ask(t, client.Node, "target", i); err != nil || p["echo"] != int64(i) || p["from"] != "server" {
				t.Fatalf("%v, %v", p, err)
			}
		}
		if _, err := ask(t, client.Node, "failing", 1); err == nil || err.Error() != "agent failing: failed: cannot" {
			t.Error(err)
		}
		if _, err := ask(t, client.Node, "nobody", 1); code(err) != envelope.NotFound {
			t.Error(err)
		}
		if err := client.Tell(within(t, 60*time.Second), &envelope.Message{Type: "ping", Recipient: "target", Payload: map[string]any{"seq": 1}}); err != nil {
			t.Error(err)
		}
		if err := client.Tell(within(t, 60*time.Second), &envelope.Message{Type: "ping", Recipient: "failing"}); code(err) != envelope.Failed {
			t.Error(err)
		}
		if _, err := client.Ask(t.Context(), &envelope.Message{Type: "x"}); code(err) != envelope.NotFound {
			t.Error(err)
		}
		if _, err := client.Ask(t.Context(), &envelope.Message{Type: "x", Recipient: "target", Payload: "text"}); code(err) != envelope.Failed {
			t.Error(err)
		}
	})
}

// A name that has moved is found again, and what the old owner refused has not been run there.
func TestANameMoves(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		if w.name == "routed" {
			return // names are the router's there
		}
		table := bus.NewTable()
		a, b, client := w.join("a", table), w.join("b", table), w.join("client", table)
		a.agents.set("target", pong("a"))
		b.agents.set("target", pong("b"))
		first, err := a.Register(t.Context(), "target", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := ask(t, client.Node, "target", 1); err != nil || p["from"] != "a" {
			t.Fatal(p, err)
		}
		if _, err := b.Register(t.Context(), "target", nil); !errors.Is(err, bus.ErrTaken) {
			t.Errorf("a name was taken from its living owner: %v", err)
		}
		table.Expire("a")
		second, err := b.Register(t.Context(), "target", nil)
		if err != nil || second <= first {
			t.Fatalf("epoch %d after %d, %v", second, first, err)
		}
		for i := range 10 {
			if p, err := ask(t, client.Node, "target", i); err != nil || p["from"] != "b" {
				t.Fatal(p, err)
			}
		}
		stale := &envelope.Message{Type: "ping", Recipient: "target", Epoch: first, Payload: map[string]any{"seq": 1}}
		if _, err := client.Ask(t.Context(), stale); code(err) != envelope.NotFound {
			t.Errorf("an ask of the old epoch: %v", err)
		}
	})
}

// A drain loses nothing: names move, what is being answered is answered, what comes late is asked elsewhere.
func TestADrainLosesNothing(t *testing.T) {
	over(t, bus.Config{}, func(t *testing.T, w *way) {
		if w.name == "routed" {
			return
		}
		table := bus.NewTable()
		a, b, client := w.join("a", table), w.join("b", table), w.join("client", table)
		for _, m := range []*member{a, b} {
			m.agents.set("target", pong("x"))
		}
		if _, err := a.Register(t.Context(), "target", nil); err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for c := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := askUntilFound(t, client.Node, c<<20|i); err != nil {
						t.Errorf("lost an ask: %v", err)
						return
					}
					asked.Add(1)
				}
			})
		}
		until(t, func() bool { return asked.Load() > 50 })
		if err := a.Drain(within(t, 60*time.Second)); err != nil {
			t.Error(err)
		}
		if _, err := b.Register(t.Context(), "target", nil); err != nil {
			t.Fatal(err)
		}
		at := asked.Load()
		until(t, func() bool { return asked.Load() > at+50 })
		close(stop)
		wg.Wait()
		if _, err := a.Register(t.Context(), "other", nil); code(err) != envelope.Stopped {
			t.Errorf("a drained node took a name: %v", err)
		}
	})
}

// askUntilFound asks again while the name has no owner, which is how a caller bridges a move.
func askUntilFound(t testing.TB, n *bus.Node, seq int) error {
	for {
		p, err := ask(t, n, "target", seq)
		switch c := code(err); {
		case err == nil && p["echo"] != int64(seq):
			return fmt.Errorf("asked %d, got %v", seq, p)
		case err == nil:
			return nil
		case c != envelope.NotFound && c != envelope.Stopped:
			return err
		}
	}
}

func TestNamesInABucket(t *testing.T) {
	t.Parallel()
	w := newWay(t, "nats", bus.Config{})
	const ttl = 3 * time.Second
	dir := func() *bus.KV {
		n, err := bus.DialNATS(within(t, 60*time.Second), bus.NATSConfig{URL: w.url}, bus.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := bus.NewKV(within(t, 60*time.Second), n, ttl)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close(); n.Close() })
		return d
	}
	da, db, dc := dir(), dir(), dir()
	a, b, client := w.join("a", da), w.join("b", db), w.join("client", dc)
	a.agents.set("target", pong("a"))
	b.agents.set("target", pong("b"))
	first, err := a.Register(t.Context(), "target", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Register(t.Context(), "target", nil); !errors.Is(err, bus.ErrTaken) {
		t.Errorf("two owners: %v", err)
	}
	if p, err := ask(t, client.Node, "target", 1); err != nil || p["from"] != "a" {
		t.Fatal(p, err)
	}
	again, err := a.Register(t.Context(), "target", nil)
	if err != nil || again <= first {
		t.Errorf("a node that starts again has epoch %d after %d, %v", again, first, err)
	}
	da.Close() // it does not renew any more, as one that is cut off
	var second uint64
	until(t, func() bool {
		second, err = b.Register(t.Context(), "target", nil)
		return err == nil
	})
	if second <= again {
		t.Errorf("epoch %d after %d", second, again)
	}
	if p, err := ask(t, client.Node, "target", 2); err != nil || p["from"] != "b" {
		// The old owner still answers under the old epoch, which the caller remembers; a refusal makes it look again.
		t.Log(p, err)
	}
	if err := b.Deregister(t.Context(), "target"); err != nil {
		t.Error(err)
	}
	if _, err := db.Lookup(t.Context(), "target", true); code(err) != envelope.NotFound {
		t.Errorf("after its release: %v", err)
	}
}

// An owner that can't renew its claim stops answering before another may take it.
func TestAnOwnerThatIsCutOffStopsAnswering(t *testing.T) {
	t.Parallel()
	b, err := bus.StartBroker(bus.BrokerConfig{Store: filepath.Join(t.TempDir(), "js")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	n, err := bus.DialNATS(within(t, 60*time.Second), bus.NATSConfig{URL: b.URL()}, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	d, err := bus.NewKV(within(t, 60*time.Second), n, 600*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	lost := make(chan struct{})
	if _, err := d.Claim(t.Context(), "target", bus.Owner{Node: "a"}, func() { close(lost) }); err != nil {
		t.Fatal(err)
	}
	b.Close()
	select {
	case <-lost:
	case <-within(t, 60*time.Second).Done():
		t.Error("it still believes that it owns the name")
	}
}

// Without a broker, nodes tell each other names; after a partition the higher epoch wins and the loser is told.
func TestNamesAreAnnounced(t *testing.T) {
	t.Parallel()
	w := newWay(t, "direct", bus.Config{})
	a := w.join("a", nil)
	b := w.join("b", nil, a.served.addr)
	client := w.join("client", nil, b.served.addr)
	a.agents.set("target", pong("a"))
	b.agents.set("target", pong("b"))
	lost := make(chan struct{})
	first, err := a.Register(t.Context(), "target", func() { close(lost) })
	if err != nil {
		t.Fatal(err)
	}
	// The client knows b, which has heard of it from a.
	until(t, func() bool {
		p, err := ask(t, client.Node, "target", 1)
		return err == nil && p["from"] == "a"
	})
	if _, err := b.Register(t.Context(), "target", nil); !errors.Is(err, bus.ErrTaken) {
		t.Errorf("two owners: %v", err)
	}
	// A node that could not reach the others owns the name too, and meets them.
	apart := w.join("apart", nil)
	apart.agents.set("target", pong("apart"))
	for range 3 {
		if _, err := apart.Register(t.Context(), "target", nil); err != nil {
			t.Fatal(err)
		}
	}
	bridge := w.join("bridge", nil, apart.served.addr, a.served.addr, b.served.addr)
	select {
	case <-lost:
	case <-within(t, 60*time.Second).Done():
		t.Fatal("the loser was not told")
	}
	until(t, func() bool {
		p, err := ask(t, client.Node, "target", 1)
		return err == nil && p["from"] == "apart"
	})
	until(t, func() bool {
		p, err := ask(t, bridge.Node, "target", 1)
		return err == nil && p["from"] == "apart"
	})
	stale := &envelope.Message{Type: "ping", Recipient: "target", Epoch: first}
	if _, err := client.Ask(within(t, 60*time.Second), stale); code(err) != envelope.NotFound {
		t.Errorf("an ask of the old epoch: %v", err)
	}
}
