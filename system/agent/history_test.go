package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"toll/system/agent"
	"toll/wire/envelope"
)

// A play is a random script of tells, asks, crashes, spawns, despawns, suspensions and stops against a runtime, in steps that
// are separated by quiescence, so that its history must be the same each time. Some steps are concurrent: of those each
// operation's outcome is compared with what is allowed for it, whatever the order was.
type play struct {
	t    *testing.T
	rnd  *rand.Rand
	rt   *agent.Runtime
	d    *agent.Dynamic
	log  []string
	mu   sync.Mutex
	said map[string][]string // what each agent handled in this step
}

// An actor writes down what it handles.
type actor struct {
	p    *play
	name string
	n    int // the race detector sees who else counts
}

func (a *actor) Handle(c *agent.Context, m *envelope.Message) (any, error) {
	a.n++
	a.p.mu.Lock()
	a.p.said[a.name] = append(a.p.said[a.name], m.Type)
	a.p.mu.Unlock()
	switch kind, _, _ := strings.Cut(m.Type, "-"); kind {
	case "crash":
		panic("boom")
	case "goexit":
		return nil, agent.Fatal(errors.New("fatal"))
	case "fail":
		return nil, errors.New("no")
	case "stop":
		return "stopped", agent.ErrStop
	}
	return m.Type, nil
}

const playNames = 5

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), rt: agent.New(agent.Config{}), said: make(map[string][]string)}
	restart := []agent.Restart{agent.Permanent, agent.Transient, agent.Temporary}[p.rnd.IntN(3)]
	full := []agent.Full{agent.Reject, agent.DropOldest}[p.rnd.IntN(2)]
	spec := agent.Spec{Mailbox: 1 + p.rnd.IntN(4), Full: full, Inline: p.rnd.IntN(2) == 0}
	var err error
	p.d, err = p.rt.SuperviseDynamic(agent.DynamicSpec{
		Name: "d", Restart: restart, MaxChildren: 4, MaxRestarts: 1 + p.rnd.IntN(3), Within: time.Hour,
		Classes: map[string]agent.Class{"actor": {New: func(c map[string]any) (agent.Handler, error) {
			return &actor{p: p, name: c["name"].(string)}, nil
		}, Spec: spec}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outcome is what an operation came to.
func outcome(v any, err error) string {
	var r *agent.Refusal
	switch {
	case errors.As(err, &r):
		return string(r.Reason)
	case err != nil:
		c, _ := envelope.CodeOf(err)
		return c.String()
	case v != nil:
		return fmt.Sprint(v)
	}
	return "ok"
}

// An act is one operation of a play.
type act struct {
	name, kind string
	n          int
}

func (a act) String() string { return a.kind + "(" + a.name + ")" }

func (p *play) draw(n int) act {
	kinds := []string{"spawn", "spawn", "tell", "tell", "ask", "ask", "ask", "crash", "tellcrash", "fail", "stop", "despawn", "drain", "suspend", "resume"}
	return act{"a" + strconv.Itoa(p.rnd.IntN(playNames)), kinds[p.rnd.IntN(len(kinds))], n}
}

// do performs one operation.
func (p *play) do(ctx context.Context, a act) string {
	message := func(kind string) *envelope.Message {
		return &envelope.Message{Type: kind + "-" + strconv.Itoa(a.n), Recipient: a.name}
	}
	switch a.kind {
	case "spawn":
		_, err := p.d.Spawn(ctx, &agent.SpawnRequest{Class: "actor", Name: a.name, Config: map[string]any{"name": a.name}})
		return outcome(nil, err)
	case "tell":
		return outcome(nil, p.rt.Tell(ctx, message("tell")))
	case "tellcrash":
		return outcome(nil, p.rt.Tell(ctx, message("crash")))
	case "ask", "crash", "fail", "stop":
		return outcome(p.rt.Call(ctx, message(a.kind)))
	case "despawn":
		return outcome(nil, p.d.Despawn(ctx, a.name))
	case "drain":
		return outcome(nil, p.d.Stop(ctx, a.name, agent.All))
	}
	r, ok := p.rt.Lookup(a.name)
	if !ok {
		return "not_found"
	}
	if a.kind == "suspend" {
		return outcome(nil, r.Suspend())
	}
	return outcome(nil, r.Resume())
}

// allowed are the outcomes that an operation may have beside others at the same time.
func allowed(kind string) []string {
	gone := []string{"not_found", "stopped", "agent_crashed"}
	switch kind {
	case "spawn":
		return []string{"ok", "duplicate_name", "max_children"}
	case "tell", "tellcrash":
		return append(gone, "ok", "mailbox_full")
	case "ask", "fail", "stop", "crash":
		return append(gone, "ok", "mailbox_full", "suspended", "failed", "deadline", kind)
	case "despawn", "drain":
		return append(gone, "ok")
	}
	return append(gone, "ok")
}

// step performs one operation, or several at the same time, waits until nothing moves and writes down what happened.
func (p *play) step(n int) {
	if p.rnd.IntN(4) > 0 {
		a := p.draw(n)
		out := p.within(a)
		synctest.Wait()
		p.note(fmt.Sprintf("%v: %s", a, out), true)
		return
	}
	acts := make([]act, 2+p.rnd.IntN(4))
	for i := range acts {
		acts[i] = p.draw(100*n + i)
	}
	var wg sync.WaitGroup
	for _, a := range acts {
		wg.Go(func() {
			out := p.within(a)
			kind, _, _ := strings.Cut(out, "-")
			if !slices.Contains(allowed(a.kind), kind) && kind != "stopped" {
				p.t.Errorf("%v beside %v: %s is not allowed", a, acts, out)
			}
		})
	}
	wg.Wait()
	synctest.Wait()
	// What is left depends on the order; the next steps need a known state.
	for i := range playNames {
		name := "a" + strconv.Itoa(i)
		for p.d.Despawn(context.Background(), name) == nil {
			synctest.Wait()
		}
	}
	synctest.Wait()
	p.mu.Lock()
	clear(p.said)
	p.mu.Unlock()
	p.note(fmt.Sprintf("%v", acts), false)
}

// within gives an operation a second: an ask of a suspended agent's queue must not end the play.
func (p *play) within(a act) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return p.do(ctx, a)
}

// note writes a line: the step, what each agent handled, and who lives.
func (p *play) note(step string, exact bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var live []string
	for _, r := range p.d.Children() {
		live = append(live, fmt.Sprintf("%s:%s:%d", r.Name(), r.State(), r.Queued()))
	}
	slices.Sort(live)
	line := step + " live=" + strings.Join(live, ",")
	if exact {
		var said []string
		for name, all := range p.said {
			said = append(said, name+"="+strings.Join(all, ","))
		}
		slices.SortFunc(said, cmp.Compare[string])
		c := p.rt.Counts()
		line += fmt.Sprintf(" said=%v crashes=%d", said, c.Crashes)
	}
	clear(p.said)
	p.log = append(p.log, line)
}

// perform plays a seed and returns its history; the crashes of concurrent steps are left out of it.
func perform(t *testing.T, seed uint64) (history []string) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, seed)
		base := int64(0)
		for n := range 40 {
			before := p.rt.Counts().Crashes
			p.step(n)
			last := &p.log[len(p.log)-1]
			if !strings.Contains(*last, "crashes=") {
				base += p.rt.Counts().Crashes - before
				continue
			}
			*last = strings.Replace(*last, fmt.Sprintf("crashes=%d", p.rt.Counts().Crashes), fmt.Sprintf("crashes=%d", p.rt.Counts().Crashes-base), 1)
		}
		if err := p.rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if c := p.rt.Counts(); c.Live != 0 || c.Zombies != 0 || p.d.Len() != 0 {
			t.Errorf("%+v, %d children", c, p.d.Len())
		}
		history = p.log
	})
	return history
}

// The same script gives the same history. HISTORY_SEEDS plays more of them, HISTORY_SEED one.
func TestTheSameScriptHasTheSameHistory(t *testing.T) {
	t.Parallel()
	from, n := uint64(1), uint64(25)
	if text := os.Getenv("HISTORY_SEEDS"); text != "" {
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		n = v
	}
	if text := os.Getenv("HISTORY_SEED"); text != "" {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		from, n = v, 1
	}
	for seed := from; seed < from+n; seed++ {
		first, second := perform(t, seed), perform(t, seed)
		if d := gocmp.Diff(first, second); d != "" || t.Failed() {
			t.Fatalf("seed %d: HISTORY_SEED=%d plays it again\n%s\n%s", seed, seed, strings.Join(first, "\n"), d)
		}
	}
}
