package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/system/agent"
	"toll/wire/envelope"
)

// A logbook is what happened, in order.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *logbook) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.lines, " ")
	l.lines = nil
	return all
}

// A logged agent writes its life into a logbook.
type logged struct {
	name string
	log  *logbook
	fail func() error // of Start; nil for none
}

func (l *logged) Start(*agent.Context) error {
	if l.fail != nil {
		if err := l.fail(); err != nil {
			l.log.add("%s!", l.name)
			return err
		}
	}
	l.log.add("+%s", l.name)
	return nil
}

func (l *logged) Stop(_ *agent.Context, reason error) { l.log.add("-%s", l.name) }

func (l *logged) Handle(_ *agent.Context, m *envelope.Message) (any, error) {
	switch m.Type {
	case "panic":
		panic("boom")
	case "stop":
		return nil, agent.ErrStop
	}
	return m.Payload, nil
}

func children(log *logbook, names ...string) []agent.Child {
	var out []agent.Child
	for _, name := range names {
		out = append(out, agent.Child{Name: name, New: func() (agent.Handler, error) { return &logged{name: name, log: log}, nil }})
	}
	return out
}

// hit asks an agent by name and waits until what follows has happened.
func hit(t *testing.T, rt *agent.Runtime, name, typ string) error {
	t.Helper()
	_, err := rt.Call(t.Context(), &envelope.Message{Type: typ, Recipient: name})
	synctest.Wait()
	return err
}

func TestStrategies(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[agent.Strategy]string{
		agent.OneForOne:  "-b +b",
		agent.OneForAll:  "-b -d -c -a +a +b +c +d",
		agent.RestForOne: "-b -d -c +b +c +d",
	} {
		synctest.Test(t, func(t *testing.T) {
			rt, log := agent.New(agent.Config{}), new(logbook)
			s, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Strategy: strategy, Children: children(log, "a", "b", "c", "d")})
			if err != nil {
				t.Fatal(err)
			}
			if got := log.take(); got != "+a +b +c +d" {
				t.Errorf("start: %s", got)
			}
			wantCode(t, hit(t, rt, "b", "panic"), envelope.Crashed)
			if got := log.take(); got != want {
				t.Errorf("strategy %d: %s, want %s", strategy, got, want)
			}
			for _, name := range []string{"a", "b", "c", "d"} {
				if err := hit(t, rt, name, "x"); err != nil {
					t.Error(err)
				}
			}
			if err := s.Stop(t.Context()); err != nil || s.Wait() != nil {
				t.Error(err, s.Wait())
			}
			if got := log.take(); got != "-d -c -b -a" {
				t.Errorf("stop: %s", got)
			}
		})
	}
}

func TestRestartKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[agent.Restart][2]string{ // after a crash, after an orderly end
		agent.DefaultRestart: {"-a +a", "-a +a"},
		agent.Permanent:      {"-a +a", "-a +a"},
		agent.Transient:      {"-a +a", "-a"},
		agent.Temporary:      {"-a", "-a"},
	} {
		for i, typ := range []string{"panic", "stop"} {
			synctest.Test(t, func(t *testing.T) {
				rt, log := agent.New(agent.Config{}), new(logbook)
				cs := children(log, "a")
				cs[0].Restart = kind
				if _, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Children: cs}); err != nil {
					t.Fatal(err)
				}
				log.take()
				hit(t, rt, "a", typ)
				if got := log.take(); got != want[i] {
					t.Errorf("kind %d after %s: %s, want %s", kind, typ, got, want[i])
				}
				if err := rt.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A supervisor whose significant children have done their work ends in order; what crashed and is started again has not ended.
func TestSignificantChildrenEndTheirSupervisor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		shutdown agent.AutoShutdown
		kind     agent.Restart
		script   []string // agent:message
		want     []string
		over     bool
	}{
		{"any, transient ends", agent.AnySignificant, agent.Transient, []string{"b:stop"}, []string{"-b -d -c -a"}, true},
		{"any, transient crashes", agent.AnySignificant, agent.Transient, []string{"b:panic"}, []string{"-b +b"}, false},
		{"any, temporary crashes", agent.AnySignificant, agent.Temporary, []string{"c:panic"}, []string{"-c -d -b -a"}, true},
		{"any, another ends", agent.AnySignificant, agent.Transient, []string{"a:stop"}, []string{"-a +a"}, false},
		{"all, one ends", agent.AllSignificant, agent.Transient, []string{"b:stop"}, []string{"-b"}, false},
		{"all, both end", agent.AllSignificant, agent.Transient, []string{"b:stop", "c:stop"}, []string{"-b", "-c -d -a"}, true},
		{"all, one crashes between", agent.AllSignificant, agent.Transient, []string{"b:stop", "c:panic", "c:stop"}, []string{"-b", "-c +c", "-c -d -a"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt, log := agent.New(agent.Config{}), new(logbook)
				cs := children(log, "a", "b", "c", "d")
				for _, i := range []int{1, 2} {
					cs[i].Restart, cs[i].Significant = tt.kind, true
				}
				s, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Shutdown: tt.shutdown, Children: cs})
				if err != nil {
					t.Fatal(err)
				}
				log.take()
				for i, line := range tt.script {
					name, typ, _ := strings.Cut(line, ":")
					hit(t, rt, name, typ)
					if got := log.take(); got != tt.want[i] {
						t.Errorf("after %s: %s, want %s", line, got, tt.want[i])
					}
				}
				over := false
				select {
				case <-s.Done():
					over = true
				default:
				}
				if over != tt.over {
					t.Errorf("the supervisor has ended: %v, want %v", over, tt.over)
				}
				if err := rt.Close(t.Context()); err != nil || s.Wait() != nil {
					t.Error(err, s.Wait())
				}
			})
		})
	}
}

// For a parent an automatic shutdown is an orderly end: a permanent supervisor is started again, a transient one is not.
func TestAnAutomaticShutdownIsAnOrderlyEnd(t *testing.T) {
	t.Parallel()
	for kind, want := range map[agent.Restart]string{agent.Permanent: "-x -y +x +y", agent.Transient: "-x -y"} {
		synctest.Test(t, func(t *testing.T) {
			rt, log := agent.New(agent.Config{}), new(logbook)
			cs := children(log, "x", "y")
			cs[0].Restart, cs[0].Significant = agent.Temporary, true
			sub := agent.SupervisorSpec{Name: "sub", Shutdown: agent.AnySignificant, Children: cs}
			root, err := rt.Supervise(t.Context(), agent.SupervisorSpec{
				Name: "root", Children: append(children(log, "a"), agent.Child{Name: "sub", Supervisor: &sub, Restart: kind}),
			})
			if err != nil {
				t.Fatal(err)
			}
			log.take()
			hit(t, rt, "x", "stop")
			if got := log.take(); got != want {
				t.Errorf("kind %d: %s, want %s", kind, got, want)
			}
			if err := root.Stop(t.Context()); err != nil || root.Wait() != nil {
				t.Error(err, root.Wait())
			}
		})
	}
}

func TestSignificantNeedsAnEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind     agent.Restart
		shutdown agent.AutoShutdown
		want     string
	}{
		{agent.Permanent, agent.AnySignificant, "supervisor s: child a is significant and permanent; make it transient or temporary"},
		{agent.DefaultRestart, agent.AnySignificant, "supervisor s: child a is significant and permanent; make it transient or temporary"},
		{agent.Transient, agent.NeverShutdown, "supervisor s: child a is significant and nothing follows from it; set the supervisor's automatic shutdown"},
	} {
		cs := children(new(logbook), "a")
		cs[0].Restart, cs[0].Significant = tt.kind, true
		_, err := agent.New(agent.Config{}).Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Shutdown: tt.shutdown, Children: cs})
		if err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestIntensityIsAWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, log := agent.New(agent.Config{}), new(logbook)
		s, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", MaxRestarts: 2, Within: 10 * time.Second, Children: children(log, "a")})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 { // one each 5 s is two within any 10 s
			wantCode(t, hit(t, rt, "a", "panic"), envelope.Crashed)
			time.Sleep(5 * time.Second)
		}
		wantCode(t, hit(t, rt, "a", "panic"), envelope.Crashed)
		wantCode(t, hit(t, rt, "a", "panic"), envelope.Crashed)
		<-s.Done()
		var crash *agent.Crash
		if err := s.Wait(); !errors.Is(err, agent.ErrGaveUp) || !errors.As(err, &crash) {
			t.Errorf("got %v", err)
		}
		wantCode(t, hit(t, rt, "a", "x"), envelope.NotFound)
	})
}

func TestBackoffs(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		b    agent.Backoff
		want []time.Duration
	}{
		{agent.Backoff{}, []time.Duration{0, 0}},
		{agent.Backoff{Base: time.Second}, []time.Duration{time.Second, time.Second}},
		{agent.Backoff{Base: time.Second, Growth: agent.Linear}, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}},
		{agent.Backoff{Base: time.Second, Growth: agent.Exponential, Cap: 5 * time.Second}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}},
		{agent.Backoff{Base: time.Hour}, []time.Duration{time.Minute}},
	} {
		for i, want := range x.want {
			if got := x.b.Delay(i+1, 0.999); got != want {
				t.Errorf("%+v: restart %d after %v, want %v", x.b, i+1, got, want)
			}
		}
	}
	jitter := agent.Backoff{Base: 8 * time.Second, Growth: agent.Exponential, Jitter: 0.25, Cap: 9 * time.Second}
	for random, want := range map[float64]time.Duration{0: 8 * time.Second, 0.25: 8500 * time.Millisecond, 0.99: 9 * time.Second} {
		if got := jitter.Delay(1, random); got != want {
			t.Errorf("jitter %v: %v, want %v", random, got, want)
		}
	}
	if got := jitter.Delay(2000, 0.5); got != 9*time.Second {
		t.Errorf("after 2000 failures: %v", got)
	}
}

func TestBackoffIsWaitedAndSiblingsLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, log := agent.New(agent.Config{}), new(logbook)
		_, err := rt.Supervise(t.Context(), agent.SupervisorSpec{
			Name: "s", Backoff: agent.Backoff{Base: time.Second, Growth: agent.Exponential}, Children: children(log, "a", "b"),
		})
		if err != nil {
			t.Fatal(err)
		}
		log.take()
		hit(t, rt, "a", "panic")
		wantCode(t, hit(t, rt, "a", "x"), envelope.NotFound) // the name lives as long as its process
		time.Sleep(999 * time.Millisecond)
		hit(t, rt, "b", "panic") // is not held up by the wait for a
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := log.take(); got != "-a -b +a" {
			t.Errorf("after 1 s: %s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := log.take(); got != "+b" {
			t.Errorf("after 3 s: %s", got)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestEscalationRestartsTheWholeSubtree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, log := agent.New(agent.Config{}), new(logbook)
		sub := agent.SupervisorSpec{Name: "sub", MaxRestarts: -1, Children: children(log, "x", "y")}
		cs := append(children(log, "a"), agent.Child{Name: "sub", Supervisor: &sub}, children(log, "z")[0])
		root, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "root", MaxRestarts: 1, Children: cs})
		if err != nil {
			t.Fatal(err)
		}
		log.take()
		before, _ := rt.Lookup("y")
		hit(t, rt, "x", "panic")
		if got := log.take(); got != "-x -y +x +y" {
			t.Errorf("first escalation: %s", got)
		}
		after, ok := rt.Lookup("y")
		if !ok || after == before || after.Epoch() <= before.Epoch() {
			t.Error("y was not restarted")
		}
		hit(t, rt, "x", "panic")
		if got := log.take(); got != "-x -y -z -a" {
			t.Errorf("second escalation: %s", got)
		}
		if err := root.Wait(); !errors.Is(err, agent.ErrGaveUp) {
			t.Errorf("got %v", err)
		}
		if c := rt.Counts(); c.Live != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAStartThatFailsUndoesThoseBefore(t *testing.T) {
	t.Parallel()
	rt, log := newRuntime(t, agent.Config{}), new(logbook)
	cs := children(log, "a", "b", "c")
	for how, f := range map[string]func() error{
		"error": func() error { return errors.New("no") }, "panic": func() error { panic("no") },
	} {
		cs[2].New = func() (agent.Handler, error) { return &logged{"c", log, f}, nil }
		_, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Children: cs})
		if !errors.Is(err, agent.StartFailed) {
			t.Errorf("%s: %v", how, err)
		}
		if got := strings.TrimSuffix(log.take(), " c!"); !strings.HasPrefix(got, "+a +b") || !strings.HasSuffix(got, "-b -a") {
			t.Errorf("%s: %s", how, got)
		}
	}
	if n := rt.Counts().Live; n != 0 {
		t.Errorf("%d agents live", n)
	}
	if _, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Children: children(log, "a")}); err != nil {
		t.Error(err)
	}
	if _, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s"}); !errors.Is(err, agent.DuplicateName) {
		t.Errorf("a second supervisor of the name: %v", err)
	}
	if _, err := rt.Supervise(t.Context(), agent.SupervisorSpec{}); !errors.Is(err, agent.BadName) {
		t.Errorf("a supervisor without a name: %v", err)
	}
	if _, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "t", Children: []agent.Child{{Name: "q"}}}); err == nil {
		t.Error("a child of no kind was started")
	}
}

func TestAStartThatFailsOnRestartIsAnotherFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, log := agent.New(agent.Config{}), new(logbook)
		lives := 0
		s, err := rt.Supervise(t.Context(), agent.SupervisorSpec{
			Name: "s", MaxRestarts: 4, Backoff: agent.Backoff{Base: time.Second},
			Children: []agent.Child{{Name: "a", New: func() (agent.Handler, error) {
				lives++
				return &logged{"a", log, func() error {
					if lives > 1 && lives != 4 {
						return errors.New("not yet")
					}
					return nil
				}}, nil
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		first, _ := rt.Lookup("a")
		if err := first.Suspend(); err != nil {
			t.Fatal(err)
		}
		for _, typ := range []string{"panic", "kept"} {
			if err := first.Tell(t.Context(), msg(typ)); err != nil {
				t.Fatal(err)
			}
		}
		first.Resume()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if got := log.take(); got != "+a -a a! a!" {
			t.Errorf("got %s", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		last, ok := rt.Lookup("a")
		if !ok || log.take() != "+a" {
			t.Fatal("not restarted")
		}
		if n := rt.Counts().Handled; n != 1 { // the tell that waited behind the crash
			t.Errorf("%d messages were handled", n)
		}
		last.Tell(t.Context(), msg("panic"))
		time.Sleep(10 * time.Second)
		if err := s.Wait(); !errors.Is(err, agent.ErrGaveUp) {
			t.Error(err)
		}
	})
}

// What a window holds must not grow with the failures that it has seen.
func TestManyRestartsLeaveNothing(t *testing.T) {
	rt := newRuntime(t, agent.Config{DeadLetters: -1})
	s, err := rt.Supervise(t.Context(), agent.SupervisorSpec{
		Name: "s", MaxRestarts: 100, Within: time.Nanosecond,
		Children: []agent.Child{{Name: "a", New: func() (agent.Handler, error) { return newScript(), nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	crash := func(n int) {
		for range n {
			waitFor(t, func() bool { _, ok := rt.Lookup("a"); return ok })
			r, _ := rt.Lookup("a")
			if err := r.Tell(t.Context(), msg("panic")); err != nil {
				t.Fatal(err)
			}
			if err := r.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	crash(100)
	before := liveHeap()
	crash(5000)
	if grown := liveHeap() - before; grown > 128<<10 {
		t.Errorf("the live heap grew by %d bytes", grown)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDynamicLimits(t *testing.T) {
	t.Parallel()
	var vetoed error
	for name, x := range map[string]struct {
		spec agent.DynamicSpec
		req  agent.SpawnRequest
		want agent.Reason
	}{
		"max children":          {agent.DynamicSpec{MaxChildren: 2}, agent.SpawnRequest{}, agent.MaxChildren},
		"max spawns":            {agent.DynamicSpec{MaxSpawns: 2}, agent.SpawnRequest{}, agent.MaxSpawns},
		"max per spawner":       {agent.DynamicSpec{MaxPerSpawner: 2}, agent.SpawnRequest{}, agent.MaxPerSpawner},
		"max spawns of spawner": {agent.DynamicSpec{MaxSpawnsPerSpawner: 2}, agent.SpawnRequest{}, agent.MaxSpawnsPerSpawner},
		"max spawners":          {agent.DynamicSpec{MaxSpawnsPerSpawner: 9, MaxSpawners: 1}, agent.SpawnRequest{Spawner: "you"}, agent.MaxSpawners},
		"class":                 {agent.DynamicSpec{}, agent.SpawnRequest{Class: "nope"}, agent.UnknownClass},
		"allow-list":            {agent.DynamicSpec{Spawners: []string{"me"}}, agent.SpawnRequest{Spawner: "you"}, agent.NotAllowed},
		"veto": {agent.DynamicSpec{Veto: func(_ context.Context, r *agent.SpawnRequest) error {
			if r.Name == "c3" {
				vetoed = errors.New("not on a Sunday")
				return vetoed
			}
			return nil
		}}, agent.SpawnRequest{}, agent.Vetoed},
		"veto panics": {agent.DynamicSpec{Veto: func(_ context.Context, r *agent.SpawnRequest) error {
			if r.Name == "c3" {
				panic("oh")
			}
			return nil
		}}, agent.SpawnRequest{}, agent.Vetoed},
		"config": {agent.DynamicSpec{Classes: map[string]agent.Class{
			"picky": {New: func(map[string]any) (agent.Handler, error) { return nil, errors.New("no") }},
		}}, agent.SpawnRequest{Class: "picky"}, agent.BadConfig},
		"config panics": {agent.DynamicSpec{Classes: map[string]agent.Class{
			"picky": {New: func(map[string]any) (agent.Handler, error) { panic("no") }},
		}}, agent.SpawnRequest{Class: "picky"}, agent.BadConfig},
		"start": {agent.DynamicSpec{Classes: map[string]agent.Class{
			"bad": {New: func(map[string]any) (agent.Handler, error) {
				return &logged{"x", new(logbook), func() error { return errors.New("no") }}, nil
			}},
		}}, agent.SpawnRequest{Class: "bad"}, agent.StartFailed},
	} {
		rt := newRuntime(t, agent.Config{})
		d := dynamic(t, rt, x.spec)
		for i := range 2 {
			if _, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "echo", Spawner: "me", Name: fmt.Sprint("c", i)}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		x.req.Name = "c3"
		if x.req.Class == "" {
			x.req.Class = "echo"
		}
		if x.req.Spawner == "" {
			x.req.Spawner = "me"
		}
		_, err := d.Spawn(t.Context(), &x.req)
		var r *agent.Refusal
		if !errors.Is(err, x.want) || !errors.As(err, &r) || r.Name != "c3" {
			t.Errorf("%s: %v", name, err)
		}
		if name == "veto" && !errors.Is(err, vetoed) {
			t.Errorf("the veto's own error is lost: %v", err)
		}
		if d.Len() != 2 {
			t.Errorf("%s: %d children", name, d.Len())
		}
		// A place that came free can be taken again, except for what counts a lifetime.
		if err := d.Despawn(t.Context(), "c0"); err != nil {
			t.Error(err)
		}
		_, err = d.Spawn(t.Context(), &agent.SpawnRequest{Class: "echo", Spawner: "me", Name: "c0"})
		if lifetime := x.want == agent.MaxSpawns || x.want == agent.MaxSpawnsPerSpawner; lifetime != (err != nil) {
			t.Errorf("%s: after a despawn: %v", name, err)
		}
	}
}

func TestSpawnIDsAreIdempotent(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	g := &gated{make(chan struct{}), make(chan struct{})}
	close(g.stop)
	made := 0
	d := dynamic(t, rt, agent.DynamicSpec{Classes: map[string]agent.Class{
		"gated": {New: func(map[string]any) (agent.Handler, error) { made++; return g, nil }},
	}})
	var wg sync.WaitGroup
	refs := make([]agent.Ref, 8)
	for i := range refs {
		wg.Go(func() {
			var err error
			if refs[i], err = d.Spawn(t.Context(), &agent.SpawnRequest{ID: "7", Class: "gated", Name: "a"}); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { return rt.Counts().Live == 1 })
	close(g.start)
	wg.Wait()
	if made != 1 || slices.Index(refs, refs[0]) != 0 || slices.ContainsFunc(refs, func(r agent.Ref) bool { return r != refs[0] }) {
		t.Errorf("%d children were made: %v", made, refs)
	}
	if err := d.Despawn(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if r, err := d.Spawn(t.Context(), &agent.SpawnRequest{ID: "7", Class: "gated", Name: "a"}); err != nil || r == refs[0] {
		t.Errorf("after the child has gone: %v", err)
	}
}

func TestADynamicChildIsRestartedAndExhausted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		rt := agent.New(agent.Config{Events: func(e agent.Event) {
			if e.Supervisor == "d" {
				log.add("%s", e.Kind)
			}
		}})
		d := dynamic(t, rt, agent.DynamicSpec{MaxRestarts: 2})
		first, err := d.Spawn(t.Context(), &agent.SpawnRequest{Class: "script", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		first.Suspend()
		first.Tell(t.Context(), msg("panic"))
		first.Tell(t.Context(), msg("kept"))
		first.Resume()
		synctest.Wait()
		second, ok := rt.Lookup("a")
		if !ok || second.Epoch() <= first.Epoch() {
			t.Fatal("not restarted")
		}
		if got := second.Handler().(*script).seen.Load(); got != 1 {
			t.Errorf("%d messages reached the next life, want the one behind the poison", got)
		}
		wantCode(t, hit(t, rt, "a", "panic"), envelope.Crashed)
		wantCode(t, hit(t, rt, "a", "panic"), envelope.Crashed)
		wantCode(t, hit(t, rt, "a", "x"), envelope.NotFound)
		want := "spawn_admitted spawn_ready restarted restarted restarts_exhausted"
		if got := log.take(); got != want || d.Len() != 0 {
			t.Errorf("%s; %d children", got, d.Len())
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSpawnIntoAndTimings(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, agent.Config{})
	log := new(logbook)
	_, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "s", Children: []agent.Child{{Name: "d", Dynamic: &agent.DynamicSpec{
		Name: "d", Classes: map[string]agent.Class{"c": {New: func(map[string]any) (agent.Handler, error) { return &logged{"c", log, nil}, nil }}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	var spawn, stop agent.Timing
	r, err := rt.SpawnInto(t.Context(), "d", &agent.SpawnRequest{Class: "c", Name: "x", Timing: &spawn})
	if err != nil {
		t.Fatal(err)
	}
	d, ok := rt.Dynamic("d")
	if !ok {
		t.Fatal("no dynamic supervisor d")
	}
	if err := d.StopRef(t.Context(), r, agent.All, &stop); err != nil {
		t.Fatal(err)
	}
	for step := agent.Admit; step <= agent.Ready; step++ {
		if spawn.Took[step] <= 0 {
			t.Errorf("%v took %v", step, spawn.Took[step])
		}
	}
	if stop.Took[agent.Gone] <= 0 || spawn.Total <= 0 || stop.Total != 0 {
		t.Errorf("%+v, %+v", spawn, stop)
	}
	if _, err := rt.SpawnInto(t.Context(), "nobody", &agent.SpawnRequest{Class: "c", Name: "x"}); err == nil {
		t.Error("spawned into nobody")
	}
	if d := cmp.Diff("+c -c", log.take()); d != "" {
		t.Error(d)
	}
}
