package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"toll/system/bus"
	"toll/wire/envelope"
	"toll/wire/frame"
)

// stored is a NATS server that stores, with a node of each side.
func stored(t *testing.T, cfg bus.DurableConfig) (w *way, d *bus.Durable, join func(name string) *member) {
	t.Helper()
	w = newWay(t, "nats", bus.Config{})
	n, err := bus.DialNATS(within(t, 60*time.Second), bus.NATSConfig{URL: w.url}, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if d, err = n.NewDurable(within(t, 60*time.Second), cfg); err != nil {
		t.Fatal(err)
	}
	table := bus.NewTable()
	return w, d, func(name string) *member {
		w.durable = d
		return w.join(name, table)
	}
}

// A durable message waits for whoever has its name, runs once though it is sent twice, and outlives the node that had the name.
func TestADurableMessageIsDelivered(t *testing.T) {
	t.Parallel()
	_, _, join := stored(t, bus.DurableConfig{Wait: time.Second})
	client := join("client")
	send := func(i int) {
		for range 2 {
			m := &envelope.Message{ID: fmt.Sprintf("id-%d", i), Type: "add", Recipient: "target", Payload: map[string]any{"n": i}}
			if err := client.TellDurable(within(t, 60*time.Second), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	var mu sync.Mutex
	got := make(map[int64]int)
	count := func(_ context.Context, m *envelope.Message) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		got[m.Payload.(map[string]any)["n"].(int64)]++
		return nil, nil
	}
	all := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(got) == n
		}
	}
	for i := range 10 {
		send(i) // nobody has the name yet
	}
	for round := range 3 {
		m := join(fmt.Sprintf("node-%d", round))
		m.agents.set("target", count)
		if _, err := m.Register(t.Context(), "target", nil); err != nil {
			t.Fatal(err)
		}
		until(t, all(10+10*round))
		if err := m.Deregister(t.Context(), "target"); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			send(10 + 10*round + i)
		}
	}
	for n, times := range got {
		if times != 1 {
			t.Errorf("message %d ran %d times", n, times)
		}
	}
	if err := join("other").TellDurable(t.Context(), &envelope.Message{Type: "x"}); code(err) != envelope.NotFound {
		t.Errorf("without a recipient: %v", err)
	}
}

// What fails is run again, and after its attempts it is a dead letter that can be looked at; the next ones are run.
func TestWhatCantBeHandledIsADeadLetter(t *testing.T) {
	t.Parallel()
	_, d, join := stored(t, bus.DurableConfig{Attempts: 3, Wait: time.Second})
	m := join("node")
	var mu sync.Mutex
	runs := make(map[string]int)
	m.agents.set("target", func(_ context.Context, m *envelope.Message) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[m.Type]++
		if m.Type == "poison" || m.Type == "shy" && runs["shy"] < 2 {
			return nil, errors.New("cannot")
		}
		return nil, nil
	})
	if _, err := m.Register(t.Context(), "target", nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"poison", "shy", "fine"} {
		msg := &envelope.Message{Type: kind, Sender: "s", Recipient: "target"}
		if err := m.TellDurable(within(t, 60*time.Second), msg); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return runs["fine"] == 1 && runs["poison"] == 3 && runs["shy"] == 2
	})
	until(t, func() bool {
		dead, err := d.DeadLetters(within(t, 60*time.Second), "target", 10)
		return err == nil && len(dead) == 1 && dead[0].Op == "poison" && dead[0].From == "s"
	})
	if err := d.Tell(t.Context(), &frame.Request{To: "x"}); code(err) != envelope.Failed {
		t.Errorf("without a key: %v", err)
	}
}

// A store that is gone is an error for who sends, not a message that is silently lost.
func TestAStoreThatIsGoneIsToldTheSender(t *testing.T) {
	t.Parallel()
	w, _, join := stored(t, bus.DurableConfig{})
	client := join("client")
	tell := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return client.TellDurable(ctx, &envelope.Message{Type: "t", Recipient: "target"})
	}
	if err := tell(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.path, "js")); err != nil {
		t.Fatal(err)
	}
	w.broker.Close()
	if err := tell(); code(err) != envelope.Unreachable && code(err) != envelope.Deadline {
		t.Errorf("got %v", err)
	}
}
