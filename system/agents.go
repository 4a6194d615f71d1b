package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/trace"

	"toll/system/agent"
)

// Agents is what Start(ctx, "agents", …) needs beside an address.
type Agents struct {
	Topology string    // file
	Spans    io.Writer // receives a line of JSON for each message handled; nil makes no spans
}

// Kit returns the classes and the places that topologies of this program can name: echo, fib, counter, relay and series, in this
// process, or in one that is kept started (warm) or started for each child (cold). done ends the processes.
func Kit() (kit agent.Kit, done func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return kit, nil, fmt.Errorf("our own binary: %w", err)
	}
	command := []string{self, "serve", "agent-worker"}
	warm, cold := &agent.Processes{Command: command, Warm: warmWorkers}, &agent.Processes{Command: command}
	kit = agent.Kit{Classes: classes(), Isolations: map[string]agent.Isolation{"warm": warm, "cold": cold}}
	return kit, func() error { return errors.Join(warm.Close(), cold.Close()) }, nil
}

// classes are those that the program knows by name.
func classes() map[string]agent.Class {
	return map[string]agent.Class{
		"child": childClass(false, new(atomic.Int64)),
		"echo": {New: func(map[string]any) (agent.Handler, error) {
			return agent.HandlerFunc(func(_ *agent.Context, m *agent.Message) (any, error) { return m.Payload, nil }), nil
		}},
		"fib":     {New: func(map[string]any) (agent.Handler, error) { return agent.HandlerFunc(answerFib), nil }},
		"counter": {New: func(map[string]any) (agent.Handler, error) { return new(counter), nil }},
		"relay":   {New: newRelay},
		"series":  {New: func(map[string]any) (agent.Handler, error) { return agent.HandlerFunc(emitSeries), nil }},
	}
}

// maxFib bounds the n of fib: more take minutes.
const maxFib = 40

// answerFib answers {"n":20} with {"result":6765}, by naive recursion: work that keeps a core busy.
func answerFib(c *agent.Context, m *agent.Message) (any, error) {
	n, ok := number(m.Payload, "n")
	if !ok || n < 0 || n > maxFib {
		return nil, fmt.Errorf("n: expected 0 to %d", maxFib)
	}
	var f func(n int64) int64
	f = func(n int64) int64 {
		if n < 2 {
			return n
		}
		if n == 20 && c.Expired() { // nobody waits any more
			return 0
		}
		return f(n-1) + f(n-2)
	}
	return map[string]any{"result": f(n)}, nil
}

// number returns a payload's integer, whichever codec it came through.
func number(payload any, key string) (int64, bool) {
	p, _ := payload.(map[string]any)
	switch v := p[key].(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		return int64(v), v == float64(int64(v))
	}
	return 0, false
}

// maxSeries bounds the n of series.
const maxSeries = 1_000_000

// emitSeries answers {"n":3} with a stream of {"i":0}, {"i":1} and {"i":2}. The number may come from a path, as text.
func emitSeries(c *agent.Context, m *agent.Message) (any, error) {
	n, ok := number(m.Payload, "n")
	if p, _ := m.Payload.(map[string]any); !ok && p != nil {
		text, _ := p["n"].(string)
		v, err := strconv.ParseInt(text, 10, 64)
		n, ok = v, err == nil
	}
	if !ok || n < 0 || n > maxSeries {
		return nil, fmt.Errorf("n: expected 0 to %d", maxSeries)
	}
	for i := range n {
		if err := c.Emit(map[string]any{"i": i}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// A counter counts its messages.
type counter struct{ n int64 }

// Handle counts one more, unless it is only asked; "crash" makes it fail.
func (c *counter) Handle(_ *agent.Context, m *agent.Message) (any, error) {
	switch m.Type {
	case "crash":
		return nil, agent.Fatal(errors.New("told to crash"))
	case "get":
	default:
		c.n++
	}
	return map[string]any{"count": c.n}, nil
}

// newRelay makes an agent that has another one answer: {"to":NAME} says which.
func newRelay(config map[string]any) (agent.Handler, error) {
	to, _ := config["to"].(string)
	if to == "" {
		return nil, errors.New(`config "to": expected the name of an agent`)
	}
	return agent.HandlerFunc(func(c *agent.Context, m *agent.Message) (any, error) {
		if to == c.Self().Name() {
			return nil, errors.New("it would wait for itself")
		}
		return c.Runtime().Call(c.Context(), c.Derive(to, m.Type, m.Payload))
	}), nil
}

// agents serves a topology: its agents, and what can be seen of them.
type agents struct {
	rt    *agent.Runtime
	root  *agent.Supervisor
	http  *http.Server
	ended []func() error
}

// buildAgents starts a topology.
func buildAgents(ctx context.Context, a Agents) (_ *agents, err error) {
	data, err := os.ReadFile(a.Topology)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	kit, done, err := Kit()
	if err != nil {
		return nil, err
	}
	s := &agents{ended: []func() error{done}}
	t, err := agent.ParseTopology(a.Topology, data, kit)
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	var cfg agent.Config
	if a.Spans != nil {
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(a.Spans))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("spans: %w", err), s.end())
		}
		provider := trace.NewTracerProvider(trace.WithBatcher(exporter))
		s.ended = append(s.ended, func() error { return provider.Shutdown(context.Background()) })
		cfg.Observer = agent.Spans(provider)
	}
	s.rt = agent.New(t.Config(cfg))
	if s.root, err = t.Run(ctx, s.rt, kit); err != nil {
		return nil, errors.Join(err, s.rt.Close(ctx), s.end())
	}
	s.http = &http.Server{
		Handler: agent.Inspect(s.rt), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	return s, nil
}

func (s *agents) end() error {
	var errs []error
	for _, f := range s.ended {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// Serve answers on l until Shutdown, and then returns nil. When the root supervisor gives up it returns why.
func (s *agents) Serve(l net.Listener) error {
	go func() {
		<-s.root.Done()
		s.http.Close()
	}()
	err := s.http.Serve(l)
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	select {
	case <-s.root.Done():
		return s.root.Wait()
	default:
		return nil
	}
}

// Shutdown stops listening, then the agents: those that have not ended when ctx does are stopped hard.
func (s *agents) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return errors.Join(err, s.rt.Close(ctx), s.end())
}

// onLoopback refuses an address that others could reach: what is served there asks for no credentials.
func onLoopback(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host == "" || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil // a malformed address is refused where it is listened on
	}
	return fmt.Errorf("address %s: whoever reaches it can look into the agents and end them; want one on loopback", addr)
}
