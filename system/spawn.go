package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"toll/system/agent"
	"toll/wire/engine"
)

// Isolations returns where the children of the system spawn can run: in its process, there by agents that promise not to
// block, in a worker process that is kept warm, in one that is started for them.
func Isolations() []string { return []string{"goroutine", "inline", "warm", "cold"} }

// warmWorkers is how many processes are kept started for the isolation warm.
const warmWorkers = 8

// Worker is the side of a worker process: it hosts the agent that its parent spawns over stdin.
func Worker(ctx context.Context) error {
	return agent.ServeWorker(ctx, os.Stdin, os.Stdout, classes())
}

// buildSpawn makes the server that spawns on request.
func buildSpawn(ctx context.Context, isolation string) (*agent.SpawnServer, error) {
	class := childClass(isolation == "inline", new(atomic.Int64))
	if isolation == "" || isolation == "goroutine" || isolation == "inline" {
		return agent.NewSpawnServer(class, nil)
	}
	if !slices.Contains(Isolations(), isolation) {
		return nil, fmt.Errorf("isolation %q: want one of %s", isolation, strings.Join(Isolations(), ", "))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("our own binary: %w", err)
	}
	ps := &agent.Processes{Command: []string{self, "serve", "agent-worker"}}
	if isolation == "warm" {
		ps.Warm = warmWorkers
	}
	if err := ps.Fill(ctx); err != nil {
		return nil, errors.Join(err, ps.Close())
	}
	class.Isolation = ps
	return agent.NewSpawnServer(class, ps.Close)
}

// A child of the benchmark: it counts its start itself, and echoes.
type child struct{ started *atomic.Int64 }

// Start says that the child is there.
func (c child) Start(*agent.Context) error {
	c.started.Add(1)
	return nil
}

// Handle echoes.
func (c child) Handle(_ *agent.Context, m *agent.Message) (any, error) { return m.Payload, nil }

func childClass(inline bool, started *atomic.Int64) agent.Class {
	return agent.Class{
		New:  func(map[string]any) (agent.Handler, error) { return child{started}, nil },
		Spec: agent.Spec{Inline: inline},
	}
}

// spawnInput is what a question of the benchmark spawn says beside its case.
type spawnInput struct {
	Live int `json:"live"` // children that live meanwhile
}

// parseSpawn reads a question: n children at a time, or an ask when n is 0.
func parseSpawn(q engine.Question) (n int, in spawnInput, err error) {
	if len(q.Input) > 0 {
		if err := json.Unmarshal(q.Input, &in); err != nil {
			return 0, in, fmt.Errorf("input: %w", err)
		}
	}
	if in.Live < 0 || in.Live > 1<<20 {
		return 0, in, fmt.Errorf("input: live is %d; expected 0 to %d", in.Live, 1<<20)
	}
	if q.Case == "ask" {
		return 0, in, nil
	}
	text, ok := strings.CutPrefix(q.Case, "spawn/")
	text, _, _ = strings.Cut(text, "@")
	if n, err = strconv.Atoi(text); !ok || err != nil || n < 1 || n > 1024 {
		return 0, in, fmt.Errorf("case %q is none of this engine; expected ask or spawn/N", q.Case)
	}
	return n, in, nil
}

// timedEach is how many calls there are for each one whose steps are timed: reading the clock costs a tenth of a spawn.
const timedEach = 16

// spawnBench is the agent runtime as an engine. Its children live from question to question.
func spawnBench(inline bool) engine.Bench {
	var once sync.Once
	var b *spawnEngine
	return func(ctx context.Context, q engine.Question) (engine.Work, error) {
		n, in, err := parseSpawn(q)
		if err != nil {
			return engine.Work{}, err
		}
		once.Do(func() { b, err = newSpawnEngine(inline) })
		if err == nil {
			err = b.keep(ctx, in.Live)
		}
		switch {
		case err != nil:
			return engine.Work{}, err
		case n == 0:
			return b.asks(ctx, q)
		}
		return b.spawns(q, n), nil
	}
}

type spawnEngine struct {
	rt      *agent.Runtime
	d       *agent.Dynamic
	echo    agent.Ref
	live    int
	started atomic.Int64
	name    atomic.Int64
}

func newSpawnEngine(inline bool) (*spawnEngine, error) {
	b := &spawnEngine{rt: agent.New(agent.Config{})}
	class := childClass(inline, &b.started)
	var err error
	if b.d, err = b.rt.SuperviseDynamic(agent.DynamicSpec{Name: "children", Classes: map[string]agent.Class{"child": class}}); err != nil {
		return nil, err
	}
	b.echo, err = b.rt.Spawn(context.Background(), "echo", child{new(atomic.Int64)}, class.Spec)
	return b, err
}

// keep makes n children live.
func (b *spawnEngine) keep(ctx context.Context, n int) error {
	for ; b.live < n; b.live++ {
		if _, err := b.d.Spawn(ctx, &agent.SpawnRequest{Class: "child", Name: "live-" + strconv.Itoa(b.live)}); err != nil {
			return err
		}
	}
	for ; b.live > n; b.live-- {
		if err := b.d.Despawn(ctx, "live-"+strconv.Itoa(b.live-1)); err != nil {
			return err
		}
	}
	return nil
}

// asks prepares asks of one agent. Each caller has a context of its own, as callers do.
func (b *spawnEngine) asks(ctx context.Context, q engine.Question) (engine.Work, error) {
	messages := make([]agent.Message, q.Callers)
	contexts := make([]context.Context, q.Callers)
	cancels := make([]context.CancelFunc, q.Callers)
	for i := range messages {
		messages[i] = agent.Message{Type: "echo", Payload: &messages[i]}
		contexts[i], cancels[i] = context.WithCancel(ctx)
	}
	return engine.Work{
		Call: func(_ context.Context, caller, _ int, _ *engine.Parts) error {
			m := &messages[caller]
			v, err := b.echo.Ask(contexts[caller], m)
			if err == nil && v != m.Payload {
				err = &engine.Failure{Kind: "wrong_content", Err: fmt.Errorf("got %v", v)}
			}
			return err
		},
		Close: func() error {
			for _, cancel := range cancels {
				cancel()
			}
			return nil
		},
	}, nil
}

// spawns prepares calls that spawn n children, each ready before the next, and despawn them.
func (b *spawnEngine) spawns(q engine.Question, n int) engine.Work {
	before := b.started.Load()
	refs := make([][]agent.Ref, q.Callers)
	return engine.Work{
		Call: func(ctx context.Context, caller, i int, parts *engine.Parts) error {
			refs[caller] = refs[caller][:0]
			defer func() { clear(refs[caller]) }()
			var spawn, stop *agent.Timing
			if n == 1 && i/q.Callers%timedEach == 0 {
				spawn, stop = new(agent.Timing), new(agent.Timing)
			}
			for range n {
				name := "child-" + strconv.FormatInt(b.name.Add(1), 10)
				r, err := b.d.Spawn(ctx, &agent.SpawnRequest{Class: "child", Name: name, Timing: spawn})
				if err != nil {
					return err
				}
				refs[caller] = append(refs[caller], r)
			}
			for _, r := range refs[caller] {
				if err := b.d.StopRef(ctx, r, agent.Now, stop); err != nil {
					return err
				}
			}
			if spawn != nil {
				for s := agent.Admit; s <= agent.Ready; s++ {
					parts.Add(s.String(), spawn.Took[s])
				}
				parts.Add(agent.Gone.String(), stop.Took[agent.Stop]+stop.Took[agent.Gone])
			}
			return nil
		},
		Check: func() (int, error) {
			if got := b.started.Load() - before; got != int64(q.Calls*n) {
				return 0, fmt.Errorf("%d children said that they had started, %d were spawned", got, q.Calls*n)
			}
			if live := b.d.Len(); live != b.live {
				return 0, fmt.Errorf("%d children live, want %d", live, b.live)
			}
			return q.Calls, nil
		},
	}
}
