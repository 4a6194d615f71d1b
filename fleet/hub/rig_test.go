package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"toll/fleet"
	"toll/fleet/hub"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// A maker is a generator that makes up what it measures, in real time, and remembers every value.
type maker struct {
	number int
	leg    fleet.Leg
	local  load.Load

	mu   sync.Mutex
	raw  [][]int64 // guarded by mu: by slice
	fail int64     // guarded by mu
}

// settings are those of every run here: an open load of some seconds.
func settings(seconds int) plan.Settings {
	return plan.Settings{Model: plan.Open, Rate: 400, Duration: plan.Duration(time.Duration(seconds) * time.Second), Concurrency: []int{1}, Rounds: 1, Blocks: 1}
}

func (g *maker) Prepare(_ context.Context, a *fleet.Assignment) error {
	var seconds int
	if _, err := fmt.Sscanf(string(a.Text), "%d seconds", &seconds); err != nil {
		return err
	}
	g.number, g.leg = a.Segment.Number, fleet.NewLeg(settings(seconds))
	g.local = g.leg.Of(a.Segment)
	return nil
}

func (g *maker) Calibrate(context.Context) (fleet.Calibration, error) {
	return fleet.Calibration{Rate: 1000, NoNull: "made up"}, nil
}

func (g *maker) Arm(context.Context) error { return nil }

func (g *maker) Run(ctx context.Context, deliver func(load.Slice)) (load.Outcome, error) {
	begin := time.Now()
	r := rand.New(rand.NewPCG(uint64(g.number), 3))
	sheet := load.NewSheet(g.local)
	var out load.Outcome
	for _, s := range sheet.Slices() {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(time.Until(begin.Add(s.To))):
		}
		var raw []int64
		for range 100 {
			v := 1 + r.Int64N(1<<(10+r.IntN(20)))
			s.Shard.Sent(time.Duration(v), 0, nil)
			raw = append(raw, v)
		}
		s.Shard.Sent(time.Millisecond, 0, errors.New("made up"))
		out.Arrivals += 101
		g.mu.Lock()
		g.raw, g.fail = append(g.raw, raw), g.fail+1
		g.mu.Unlock()
		deliver(s)
	}
	out.Elapsed = time.Since(begin)
	return out, nil
}

func (g *maker) Close() error { return nil }

// A rig is a server, a coordinator and workers in this process, over real connections.
type rig struct {
	t       *testing.T
	server  *hub.Server
	store   string
	addr    string
	cfg     fleet.Config
	makers  []*maker
	cancel  []context.CancelFunc
	ended   []chan error
	workers sync.WaitGroup
}

const token = "a-token-of-the-tests"

func (r *rig) url() string { return "nats://" + token + "@" + r.addr }

// begin starts the server and the coordinator.
func begin(t *testing.T, workers, seconds int, change func(*fleet.Config)) (*rig, *hub.Conductor) {
	t.Helper()
	r := &rig{t: t, store: t.TempDir()}
	r.serve("")
	r.cfg = fleet.Config{Run: strings.NewReplacer("/", "-", ",", "", " ", "-").Replace(t.Name())[:min(len(t.Name()), 60)], Plan: fmt.Appendf(nil, "%d seconds", seconds), Settings: settings(seconds), Workers: workers, Seed: 1}
	if change != nil {
		change(&r.cfg)
	}
	t.Cleanup(func() {
		for _, stop := range r.cancel {
			stop()
		}
		r.workers.Wait()
		r.server.Close()
	})
	return r, r.conduct()
}

func (r *rig) serve(addr string) {
	r.t.Helper()
	s, err := hub.StartServer(hub.ServerConfig{Addr: addr, Store: r.store, Token: token})
	if err != nil {
		r.t.Fatal(err)
	}
	r.server, r.addr = s, s.Addr()
}

func (r *rig) conduct() *hub.Conductor {
	r.t.Helper()
	c, err := hub.Conduct(r.t.Context(), hub.Access{URL: r.url()}, r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// join starts a worker.
func (r *rig) join(change func(*hub.WorkConfig)) {
	g := new(maker)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := hub.WorkConfig{Access: hub.Access{URL: r.url()}, ID: fmt.Sprint("w", len(r.makers)+1), Dir: r.t.TempDir(), Generator: g, Hello: fleet.Hello{Host: fleet.Machine{GOMAXPROCS: 2}}}
	if change != nil {
		change(&cfg)
	}
	r.makers, r.cancel, r.ended = append(r.makers, g), append(r.cancel, cancel), append(r.ended, make(chan error, 1))
	i := len(r.makers) - 1
	r.workers.Go(func() { r.ended[i] <- hub.Work(ctx, cfg) })
}

// wait waits until the run is over, and compares what is merged with what was made, value by value.
func (r *rig) wait(c *hub.Conductor) *fleet.Report {
	r.t.Helper()
	out, err := c.Wait(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		r.t.Error(err)
	}
	if out.Verdict.Word == fleet.Refused {
		return out
	}
	want, got := new(record.Hist), new(record.Hist)
	for _, g := range r.makers {
		g.mu.Lock()
		for n, raw := range g.raw {
			if n < out.Merged {
				for _, v := range raw {
					want.Record(v)
				}
			}
		}
		g.mu.Unlock()
	}
	for _, g := range out.Groups {
		got.Merge(&g.Shard.Latency)
	}
	if out.OnLoss == fleet.Invalidate && !got.Equal(want) {
		r.t.Errorf("%s, but %d values are merged and %d were made, or others", out.Verdict, got.Count(), want.Count())
	}
	return out
}

func (r *rig) events(out *fleet.Report) string {
	var b strings.Builder
	for _, e := range out.Events {
		fmt.Fprintf(&b, "%.1f %s: %s\n", e.At.Seconds(), e.Worker, e.What)
	}
	return b.String()
}

// after calls f so long after the start.
func (r *rig) after(c *hub.Conductor, d time.Duration, f func()) {
	r.t.Helper()
	select {
	case <-c.Started():
	case <-c.Done():
		r.t.Fatalf("it ended before it started: %v", c.Report().Verdict)
	}
	done := make(chan struct{})
	time.AfterFunc(2*time.Second+d, func() { f(); close(done) }) // the start lies two seconds ahead
	<-done
}

// A tube is a connection's way through this process; while it is cut, nothing passes and nobody is told.
type tube struct {
	addr string
	mu   sync.Mutex
	cond *sync.Cond
	cut  bool // guarded by mu
	made int  // guarded by mu: connections so far
	dead int  // guarded by mu: so many of them, the first ones, carry nothing any more
}

func newTube(t *testing.T, to string) *tube {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tube{addr: l.Addr().String()}
	p.cond = sync.NewCond(&p.mu)
	t.Cleanup(func() { l.Close(); p.set(false) })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				continue
			}
			p.mu.Lock()
			n := p.made
			p.made++
			p.mu.Unlock()
			for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
				go func() {
					io.Copy(way[1], gated{way[0], p, n})
					way[0].Close()
					way[1].Close()
				}()
			}
		}
	}()
	return p
}

func (p *tube) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.cond.Broadcast()
}

// kill lets the connections that there are carry nothing any more; new ones do.
func (p *tube) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = p.made
}

type gated struct {
	net.Conn
	tube   *tube
	number int
}

func (g gated) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	g.tube.mu.Lock()
	defer g.tube.mu.Unlock()
	for g.tube.cut {
		g.tube.cond.Wait()
	}
	if g.number < g.tube.dead && err == nil {
		return g.swallow(b)
	}
	return n, err
}

// swallow reads for as long as something comes, and passes none of it on. The tube's lock is held.
func (g gated) swallow(b []byte) (int, error) {
	g.tube.mu.Unlock()
	defer g.tube.mu.Lock()
	for {
		if _, err := g.Conn.Read(b); err != nil {
			return 0, err
		}
	}
}
