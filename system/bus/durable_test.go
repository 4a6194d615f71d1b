package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// Fault 21, the bus' part: a store that is deleted while messages are told and handled. Whatever the sender was told is kept was
// kept or is told again from the sender's own list: after the store has come back empty and the list was told once more, every
// message has run, and those that had run before did not run twice.
func TestAStoreThatWasDeletedIsFilledAgain(t *testing.T) {
	t.Parallel()
	const all = 60
	dir := t.TempDir()
	start := func(addr string) *bus.Broker {
		b, err := bus.StartBroker(bus.BrokerConfig{Addr: addr, Store: filepath.Join(dir, "js")})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	broker := start("")
	addr := strings.TrimPrefix(broker.URL(), "nats://")
	n, err := bus.DialNATS(within(t, 60*time.Second), bus.NATSConfig{URL: broker.URL()}, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	open := func() *bus.Durable {
		var d *bus.Durable
		until(t, func() bool { // the connection is made again by itself
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			var err error
			d, err = n.NewDurable(ctx, bus.DurableConfig{})
			return err == nil
		})
		return d
	}
	var mu sync.Mutex
	runs := make(map[string]int)
	r := bus.NewResponder(func(dst []byte, q *bus.Request) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[string(q.Body)]++
		return dst, nil
	}, bus.Config{})
	ran := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(runs)
	}
	tell := func(d *bus.Durable, i int) error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return d.Tell(ctx, &frame.Request{To: "target", From: "client", Op: "t", Body: fmt.Append(nil, i), Header: frame.Header{Key: frame.Key{Sender: 7, Number: uint64(i)}}})
	}
	d := open()
	for i := range all / 3 { // run before
		if err := tell(d, i); err != nil {
			t.Fatal(err)
		}
	}
	stop, err := d.Consume(within(t, 60*time.Second), "target", r)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return ran() == all/3 })
	stop()
	for i := all / 3; i < 2*all/3; i++ { // kept and not run
		if err := tell(d, i); err != nil {
			t.Fatal(err)
		}
	}
	broker.Close()
	if err := os.RemoveAll(filepath.Join(dir, "js")); err != nil {
		t.Fatal(err)
	}
	for i := 2 * all / 3; i < all; i += 10 { // nobody is there: the sender knows
		if err := tell(d, i); err == nil {
			t.Errorf("message %d was kept by a store that is gone", i)
		}
	}
	broker = start(addr)
	defer broker.Close()
	until(t, func() bool { return n.Connected() })
	if err := tell(d, 0); err == nil {
		t.Error("a message was kept by a store that has no streams any more")
	}
	d = open() // what knows its own list makes the store anew and tells all of it
	for i := range all {
		if err := tell(d, i); err != nil {
			t.Fatal(err)
		}
	}
	if stop, err = d.Consume(within(t, 60*time.Second), "target", r); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return ran() == all })
	stop()
	for body, times := range runs {
		if times != 1 {
			t.Errorf("message %s ran %d times", body, times)
		}
	}
}
