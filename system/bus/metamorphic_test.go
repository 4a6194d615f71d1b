package bus_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/system/bus"
	"toll/wire/envelope"
)

var metamorphicSeed = flag.Uint64("bus.seed", 0, "seed of the script of TestTheSameScriptHasTheSameHistory; 0: a new one")

// A step is one thing that a script does. Each is over before the next begins, so what happens does not depend on time.
type step struct {
	do   string
	name string // of an agent
	node string
	n    int
}

// script draws steps: sends, asks, handlers that fail and panic, names that move, nodes that crash and come back, and callers
// that connect anew.
func script(r *rand.Rand, steps int) []step {
	var out []step
	for range steps {
		s := step{name: fmt.Sprintf("agent-%d", r.IntN(3)), node: fmt.Sprintf("node-%d", r.IntN(2)), n: r.IntN(100)}
		switch v := r.IntN(100); {
		case v < 40:
			s.do = "ask"
		case v < 60:
			s.do = "tell"
		case v < 66:
			s.do = "fail"
		case v < 72:
			s.do = "panic"
		case v < 82:
			s.do = "move"
		case v < 88:
			s.do = "crash"
		case v < 95:
			s.do = "start"
		default:
			s.do = "reconnect"
		}
		out = append(out, s)
	}
	return out
}

// A world is nodes over one way, and a caller.
type world struct {
	t      *testing.T
	way    *way
	table  *bus.Table
	nodes  map[string]*member
	caller *member
	serial int
}

func newWorld(t *testing.T, name string) *world {
	w := &world{t: t, way: newWay(t, name, bus.Config{}), table: bus.NewTable(), nodes: make(map[string]*member)}
	w.caller = w.way.join("caller", w.table)
	return w
}

// counter is an agent that adds numbers; what it has is lost with its node.
func counter() func(context.Context, *envelope.Message) (any, error) {
	total := int64(0)
	return func(_ context.Context, m *envelope.Message) (any, error) {
		p, _ := m.Payload.(map[string]any)
		n, _ := p["n"].(int64)
		switch m.Type {
		case "fail":
			return nil, fmt.Errorf("cannot add %d", n)
		case "panic":
			panic(fmt.Sprintf("on %d", n))
		}
		total += n
		return map[string]any{"total": total}, nil
	}
}

// run makes a step and says what came of it.
func (w *world) run(s step) string {
	m := &envelope.Message{Type: s.do, Sender: "caller", Recipient: s.name, Payload: map[string]any{"n": int64(s.n)}}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch s.do {
	case "ask", "fail", "panic":
		reply, err := w.caller.Ask(ctx, m)
		if err != nil {
			return outcome(err)
		}
		return fmt.Sprint(reply.Payload, " from ", reply.Sender)
	case "tell":
		return outcome(w.caller.Tell(ctx, m))
	case "move":
		to := w.nodes[s.node]
		for _, from := range w.nodes {
			if from != to {
				from.Deregister(ctx, s.name)
			}
		}
		if to == nil {
			return "no such node"
		}
		to.agents.set(s.name, counter())
		_, err := to.Register(ctx, s.name, nil)
		return outcome(err)
	case "crash":
		if n := w.nodes[s.node]; n != nil {
			n.served.stop()
			n.Close()
			w.table.Expire(s.node)
			delete(w.nodes, s.node)
		}
	case "start":
		if w.nodes[s.node] == nil {
			w.nodes[s.node] = w.way.join(s.node, w.table)
		}
	case "reconnect":
		w.caller.Close()
		w.serial++
		w.caller = w.way.join(fmt.Sprintf("caller-%d", w.serial), w.table)
	}
	return "done"
}

// outcome is an error's code. Whether a process that is not there was not found or not reached is the way's own affair.
func outcome(err error) string {
	switch c := code(err); {
	case err == nil:
		return "done"
	case c == envelope.NotFound || c == envelope.Unreachable:
		return "not there"
	case c == 0:
		return "refused"
	default:
		return err.Error()
	}
}

// The same script has the same history within a process, directly, through NATS and over ZMTP. A history that differs is
// run again by -bus.seed.
func TestTheSameScriptHasTheSameHistory(t *testing.T) {
	t.Parallel()
	seed := *metamorphicSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	steps := script(rand.New(rand.NewPCG(seed, 0)), 150)
	var first []string
	for _, name := range []string{"inproc", "direct", "nats", "zmtp"} {
		w := newWorld(t, name)
		var history []string
		for i, s := range steps {
			history = append(history, fmt.Sprintf("%d %s %s %s %d: %s", i, s.do, s.name, s.node, s.n, w.run(s)))
		}
		if first == nil {
			first = history
			continue
		}
		if d := cmp.Diff(first, history); d != "" {
			t.Errorf("-bus.seed=%d: in-process and %s differ:\n%s", seed, name, d)
		}
	}
	answered := 0
	for _, h := range first {
		if len(h) > 0 && h[len(h)-1] != 'e' {
			answered++
		}
	}
	t.Logf("seed %d: %d steps, %d with an answer or a failure", seed, len(steps), answered)
}
