package agent_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"toll/system/agent"
	"toll/wire/envelope"
)

// asWorker makes the test binary a worker.
const asWorker = "TOLL_TEST_AGENT_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	err := agent.ServeWorker(context.Background(), os.Stdin, os.Stdout, map[string]agent.Class{
		"script": {New: func(map[string]any) (agent.Handler, error) { return inWorker{newScript()}, nil }},
		"config": {New: func(c map[string]any) (agent.Handler, error) {
			if c["bad"] == true {
				return nil, errors.New("bad config")
			}
			return agent.HandlerFunc(func(*agent.Context, *envelope.Message) (any, error) { return c, nil }), nil
		}},
	})
	if err != nil {
		os.Exit(1)
	}
}

// inWorker is a script in a worker: it tells its process and can end it.
type inWorker struct{ *script }

func (w inWorker) Handle(c *agent.Context, m *envelope.Message) (any, error) {
	switch m.Type {
	case "exit":
		os.Exit(3)
	case "pid":
		return map[string]any{"pid": os.Getpid()}, nil
	case "unwritable":
		return map[string]any{"f": func() {}}, nil
	}
	return w.script.Handle(c, m)
}

func workers(t *testing.T, ps *agent.Processes) (*agent.Runtime, *agent.Dynamic) {
	t.Helper()
	t.Setenv(asWorker, "1")
	ps.Command = []string{os.Args[0]}
	rt := agent.New(agent.Config{})
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := ps.Close(); err != nil {
			t.Error(err)
		}
	})
	remote := func(map[string]any) (agent.Handler, error) { return nil, errors.New("not here") }
	d, err := rt.SuperviseDynamic(agent.DynamicSpec{Name: "d", Classes: map[string]agent.Class{
		"script": {New: remote, Isolation: ps}, "config": {New: remote, Isolation: ps}, "nope": {New: remote, Isolation: ps},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return rt, d
}

func TestAgentsInProcessesOfTheirOwn(t *testing.T) {
	for name, ps := range map[string]*agent.Processes{"cold": {}, "warm": {Warm: 2}} {
		t.Run(name, func(t *testing.T) {
			_, d := workers(t, ps)
			if err := ps.Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
			pids := make(map[any]bool)
			for range 3 {
				r, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "script", Name: "a"})
				if err != nil {
					t.Fatal(err)
				}
				v, err := r.Ask(t.Context(), msgMap("pid"))
				if err != nil {
					t.Fatal(err)
				}
				pids[v.(map[string]any)["pid"]] = true
				_, err = r.Ask(t.Context(), msgMap("error"))
				wantCode(t, err, envelope.Failed)
				if v, err := r.Ask(t.Context(), msgMap("x")); err != nil || v.(map[string]any)["n"] != int64(7) {
					t.Errorf("%v, %v", v, err)
				}
				_, err = r.Ask(t.Context(), msgMap("unwritable"))
				wantCode(t, err, envelope.Failed)
				_, err = r.Ask(t.Context(), &envelope.Message{Type: "x", Payload: 7}) // has no form on the wire
				wantCode(t, err, envelope.Failed)
				if err := r.Tell(t.Context(), msgMap("told")); err != nil {
					t.Error(err)
				}
				if err := d.Stop(t.Context(), "a", agent.All); err != nil {
					t.Error(err)
				}
			}
			// A warm worker hosts one agent after the other; a cold one has seen no other.
			if want := map[string]int{"cold": 3, "warm": 1}[name]; len(pids) != want {
				t.Errorf("%d processes, want %d", len(pids), want)
			}
		})
	}
}

func msgMap(typ string) *envelope.Message {
	return &envelope.Message{Type: typ, Payload: map[string]any{"n": 7}}
}

func TestAWorkersDeathIsItsAgentsCrash(t *testing.T) {
	ps := &agent.Processes{Warm: 1}
	rt, d := workers(t, ps)
	for _, how := range []string{"exit", "panic", "goexit", "fatal"} {
		r, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "script", Name: how})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Ask(t.Context(), msgMap(how))
		wantCode(t, err, envelope.Crashed)
		// It is transient: the next life has a process of its own.
		waitFor(t, func() bool {
			again, ok := rt.Lookup(how)
			return ok && again.Epoch() > r.Epoch() && again.State() == "running"
		})
		again, _ := rt.Lookup(how)
		if _, err := again.Ask(t.Context(), msgMap("x")); err != nil {
			t.Error(err)
		}
		if err := d.Despawn(t.Context(), how); err != nil {
			t.Error(err)
		}
	}
}

func TestDespawnEndsAWorkerThatIsBusy(t *testing.T) {
	ps := &agent.Processes{}
	rt, d := workers(t, ps)
	r, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "script", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	stuck := askLater(t.Context(), r, msgMap("wait"))
	waitFor(t, r.Busy)
	begin := time.Now()
	if err := d.Despawn(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, (<-stuck).err, envelope.Stopped)
	if c := rt.Counts(); c.Live != 0 || c.Zombies != 0 || c.Crashes != 0 {
		t.Errorf("%+v after %v", c, time.Since(begin))
	}
}

func TestWorkersAreBoundedAndConfigsTravel(t *testing.T) {
	ps := &agent.Processes{Max: 2}
	_, d := workers(t, ps)
	config := map[string]any{"name": "x", "n": int64(3)}
	r, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "config", Name: "a", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Ask(t.Context(), msgMap("x")); err != nil || v.(map[string]any)["n"] != int64(3) {
		t.Errorf("%v, %v", v, err)
	}
	for class, c := range map[string]map[string]any{"config": {"bad": true}, "nope": nil} {
		if _, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: class, Name: "b", Config: c}); !errors.Is(err, agent.StartFailed) {
			t.Errorf("%s: %v", class, err)
		}
	}
	if _, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "config", Name: "b"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = d.Spawn(ctx, &agent.SpawnRequest{Class: "config", Name: "c"})
	if err == nil {
		t.Error("a third process was started")
	}
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		wg.Go(func() {
			if err := d.Despawn(t.Context(), name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	waitFor(t, func() bool { return d.Len() == 0 })
	if _, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "config", Name: "c"}); err != nil {
		t.Error(err)
	}
	goroutines := runtime.NumGoroutine()
	if err := d.Despawn(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return runtime.NumGoroutine() <= goroutines })
}

func TestAWorkerEndsAtABadFrame(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"\x00\x00":                 "worker: reading a frame: unexpected EOF",
		"\xff\xff\xff\xff":         "worker: reading a frame: a frame is longer than a message may be",
		"\x00\x00\x00\x05\x81":     "worker: reading a frame: unexpected EOF",
		"\x00\x00\x00\x01\x80":     "worker: reading a frame: envelope: no type at byte 1",
		"\x00\x00\x00\x02\xc0\xc0": "worker: reading a frame: envelope: not a map at byte 1",
	} {
		err := agent.ServeWorker(t.Context(), strings.NewReader(in), io.Discard, nil)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

// Whatever comes through the pipe, the worker answers in frames or ends.
func FuzzServeWorker(f *testing.F) {
	frame := func(m *envelope.Message) []byte {
		b, err := m.AppendMsgpack(make([]byte, 4))
		if err != nil {
			f.Fatal(err)
		}
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		return b
	}
	spawn := frame(&envelope.Message{Type: "civitas.dynamic.spawn", Recipient: "a", CorrelationID: "1", Payload: map[string]any{"class": "echo"}})
	ask := frame(&envelope.Message{Type: "x", Recipient: "a", CorrelationID: "2"})
	f.Add(append(spawn, ask...))
	f.Add([]byte("\x00\x00\x00\x01\x80"))
	classes := map[string]agent.Class{"echo": {New: func(map[string]any) (agent.Handler, error) { return echo(), nil }}}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		agent.ServeWorker(t.Context(), bytes.NewReader(in), &out, classes)
		for rest := out.Bytes(); len(rest) > 0; {
			if len(rest) < 4 || int(binary.BigEndian.Uint32(rest)) > len(rest)-4 {
				t.Fatalf("half a frame: %q", rest)
			}
			n := int(binary.BigEndian.Uint32(rest))
			if _, err := envelope.DecodeMsgpack(rest[4:4+n], envelope.Limits{}); err != nil {
				t.Fatal(err)
			}
			rest = rest[4+n:]
		}
	})
}
