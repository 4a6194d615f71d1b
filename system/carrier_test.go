package system_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"toll/system/agent"
	"toll/system/bus"
	"toll/wire/envelope"
)

var (
	_ agent.Carrier = (*bus.Node)(nil)
	_ bus.Local     = agent.Carrier(nil)
)

// A house is a process' runtime and node, served over one way.
type house struct {
	runtime *agent.Runtime
	node    *bus.Node
}

// serving has a node's responder served and returns its address and how others dial it.
type serving func(t *testing.T, name string, r *bus.Responder) (addr string)

// ways are the ways between processes that a test can have within its own.
func carrierWays(t *testing.T) map[string]struct {
	serve serving
	dial  func(ctx context.Context, o bus.Owner) (bus.Link, error)
} {
	t.Helper()
	b, err := bus.StartBroker(bus.BrokerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	n, err := bus.DialNATS(t.Context(), bus.NATSConfig{URL: b.URL()}, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	listen := func(t *testing.T) net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return map[string]struct {
		serve serving
		dial  func(ctx context.Context, o bus.Owner) (bus.Link, error)
	}{
		"direct": {func(t *testing.T, _ string, r *bus.Responder) string {
			s, l := bus.NewServer(r, false), listen(t)
			var wg sync.WaitGroup
			wg.Go(func() { s.Serve(l) })
			t.Cleanup(func() { s.Shutdown(context.Background()); wg.Wait() })
			return "tcp://" + l.Addr().String()
		}, func(ctx context.Context, o bus.Owner) (bus.Link, error) {
			return bus.DialDirect(ctx, o.Addr, nil, bus.Config{})
		}},
		"zmtp": {func(t *testing.T, _ string, r *bus.Responder) string {
			s, err := bus.NewZMTPServer(r, false, nil)
			l := listen(t)
			if err = errors.Join(err, s.Serve(l)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Shutdown(context.Background()) })
			return "tcp://" + l.Addr().String()
		}, func(ctx context.Context, o bus.Owner) (bus.Link, error) {
			return bus.DialZMTP(ctx, o.Addr, nil, bus.Config{})
		}},
		"nats": {func(t *testing.T, name string, r *bus.Responder) string {
			s, err := n.Serve(t.Context(), name, r, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Shutdown(context.Background()) })
			return name
		}, func(ctx context.Context, o bus.Owner) (bus.Link, error) { return n.Link(ctx, o.Addr) }},
	}
}

// The runtime asks agents of another process as it asks its own, over every carrier; what goes wrong there has the same code
// here.
func TestTheRuntimeRunsOverEveryCarrier(t *testing.T) {
	t.Parallel()
	for way, w := range carrierWays(t) {
		t.Run(way, func(t *testing.T) {
			table := bus.NewTable()
			move := func(name string) *house {
				h := &house{}
				late := &addressed{Directory: table}
				local := new(carried)
				h.node = bus.NewNode(bus.NodeConfig{Name: name, Directory: late, Dial: w.dial, Local: local})
				h.runtime = agent.New(agent.Config{Carrier: h.node})
				local.Carrier = h.runtime.Inbound()
				late.addr = w.serve(t, name, h.node.Responder())
				t.Cleanup(func() { h.node.Close(); h.runtime.Close(context.Background()) })
				return h
			}
			here, there := move("here"), move("there")
			handler := agent.HandlerFunc(func(_ *agent.Context, m *envelope.Message) (any, error) {
				switch m.Type {
				case "crash":
					panic("on purpose")
				case "fail":
					return nil, errors.New("cannot")
				}
				return map[string]any{"echo": m.Payload}, nil
			})
			if _, err := there.runtime.Spawn(t.Context(), "target", handler, agent.Spec{}); err != nil {
				t.Fatal(err)
			}
			if _, err := there.node.Register(t.Context(), "target", nil); err != nil {
				t.Fatal(err)
			}
			call := func(kind string) (any, error) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				return here.runtime.Call(ctx, &envelope.Message{Type: kind, Sender: "test", Recipient: "target", Payload: map[string]any{"n": int64(1)}})
			}
			for range 3 {
				v, err := call("ping")
				if p, _ := v.(map[string]any); err != nil || p["echo"].(map[string]any)["n"] != int64(1) {
					t.Fatalf("%v, %v", v, err)
				}
			}
			if _, err := call("fail"); !errors.Is(err, envelope.Failed) {
				t.Errorf("a handler's failure: %v", err)
			}
			if err := here.runtime.Tell(t.Context(), &envelope.Message{Type: "ping", Recipient: "target"}); err != nil {
				t.Errorf("a tell: %v", err)
			}
			if _, err := call("crash"); !errors.Is(err, envelope.Crashed) {
				t.Errorf("a crash: %v", err)
			}
			if _, err := call("ping"); !errors.Is(err, envelope.NotFound) {
				t.Errorf("after the crash: %v", err)
			}
		})
	}
}

// carried is a Local that is known after the node is.
type carried struct{ agent.Carrier }

// addressed fills in the address of a node that was made before it was served.
type addressed struct {
	bus.Directory
	addr string
}

// Claim fills in the address.
func (d *addressed) Claim(ctx context.Context, name string, o bus.Owner, lost func()) (uint64, error) {
	o.Addr = d.addr
	return d.Directory.Claim(ctx, name, o, lost)
}
