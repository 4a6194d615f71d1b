package suite

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"toll/certs"
	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// A house starts contenders through the one door and seats them in a set.
type house struct {
	plan    plan.Plan
	outside []contender.Manifest
	lacks   []result.Gap // contenders that nobody entered and that are not built
	ground  Ground
	dir     string // 0700; for sockets and fixtures
	sockets atomic.Int64
	remote  *remote           // the processes of a target; nil where they are ours
	digests map[string]string // by name: reading a program once is enough
	held    holding
	awake   wakefulness
}

// digest returns what of once, under a contender's name.
func (h *house) digest(name string, of func() (string, error)) (string, error) {
	if d, ok := h.digests[name]; ok {
		return d, nil
	}
	d, err := of()
	if err != nil {
		return "", err
	}
	if h.digests == nil {
		h.digests = make(map[string]string)
	}
	h.digests[name] = d
	return d, nil
}

// socket returns a path that no other server of the run has.
func (h *house) socket(name string) string {
	return filepath.Join(h.dir, fmt.Sprintf("%s-%d.sock", name, h.sockets.Add(1)))
}

// A seat is a contender that is to be started for a round.
type seat struct {
	contender   result.Contender
	role        string
	connections string // per-caller when empty
	unverified  bool
	tls         *result.TLS
	client      string // by which of several clients it is called
	clear       bool   // in the clear, in a phase whose other rows are encrypted
	spec        func() (contender.Spec, error)
	target      func(r contender.Ready, wire *driver.Wire) load.Target    // calls it over a connection
	engine      func(p *contender.Process) load.Target                    // or asks it over its standard input; it times itself
	idle        time.Duration                                             // > 0: its calls leave sessions behind, which it forgets after so long
	own         bool                                                      // it is no envelope of ours: a process that others share is not its
	line        func(p *contender.Process, wire *driver.Wire) load.Target // or calls it so, by our clock
	launch      bool                                                      // with line, each call starts a process of its own
	check       func() error                                              // of what it answered, after the last window; nil for none
	away        bool                                                      // what it calls is on another machine
	handles     bool                                                      // it counts the time of its handlers
	calling     bool                                                      // the engine calls others, which it has started

	// Of a contender with backends: what they are, and how it is started and called once it is known where they listen.
	backends  []backend
	specFor   func(at map[string]string) (contender.Spec, error)
	targetFor func(at map[string]string) func(contender.Ready, *driver.Wire) load.Target
	delay     time.Duration // within each operation, that its caller asks for
}

func (s seat) label() string {
	if s.role == result.Control {
		return s.contender.Name + " (control)"
	}
	return s.contender.Name
}

// open starts the seats side by side. One that can't be started is a failure of the set, or a gap when what it needs is
// not on this machine; the others are not touched.
func (h *house) open(ctx context.Context, s lab.Setting, seats []seat) lab.Set {
	entries := make([]*lab.Entry, len(seats))
	errs := make([]error, len(seats))
	h.hold(s.Concurrency)
	if h.plan.Processes == plan.Shared {
		return h.openShared(ctx, s, seats)
	}
	var wg sync.WaitGroup
	// In random order: what starts first is placed differently from what starts last.
	for _, i := range rand.New(rand.NewPCG(uint64(s.Seed), 3)).Perm(len(seats)) {
		if slices.Contains(s.Skip, seats[i].label()) {
			continue
		}
		wg.Go(func() { entries[i], errs[i] = h.start(ctx, seats[i]) })
	}
	wg.Wait()
	var set lab.Set
	for i, seat := range seats {
		switch err := errs[i]; {
		case entries[i] != nil:
			set.Entries = append(set.Entries, *entries[i])
		case errors.Is(err, contender.ErrMissing), isUnplaced(err):
			set.Gaps = append(set.Gaps, gap(s, seat.label(), err.Error()))
		case err != nil && ctx.Err() == nil:
			set.Failures = append(set.Failures, lab.Failure{Contender: seat.label(), Reason: err.Error()})
		}
	}
	return set
}

// An unplaced contender is one that the run's ground has no place for: a gap, and nothing went wrong.
type unplaced struct{ error }

func isUnplaced(err error) bool {
	_, ok := errors.AsType[*unplaced](err)
	return ok
}

func gap(s lab.Setting, contender, reason string) result.Gap {
	row := s.Case + " " + s.Phase + " " + contender
	if s.Phase == "" {
		row = s.Case + " " + contender
	}
	return result.Gap{Row: row, Reason: reason}
}

// start starts a seat's contender, and first what stands behind it.
func (h *house) start(ctx context.Context, s seat) (*lab.Entry, error) {
	if h.remote != nil && s.role != result.Null { // the null target is what the client itself costs, here
		return h.enter(s)
	}
	if len(s.backends) == 0 {
		return h.startAlone(ctx, s)
	}
	if _, err := s.spec(); err != nil { // before anything runs
		return nil, err
	}
	behind, at, err := h.startBackends(ctx, s)
	if err != nil {
		return nil, err
	}
	s.spec, s.target = func() (contender.Spec, error) { return s.specFor(at) }, s.targetFor(at)
	e, err := h.startAlone(ctx, s)
	if err != nil {
		return nil, errors.Join(err, stopBackends(ctx, behind))
	}
	e.Backends, e.Delay = behind, s.delay
	return e, nil
}

func (h *house) startAlone(ctx context.Context, s seat) (*lab.Entry, error) {
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	if err := h.ground.place(&spec, s); err != nil {
		return nil, &unplaced{err}
	}
	spec.Processors, spec.Behind = h.places(s)
	p, err := contender.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	if s.launch {
		e, err := launchEach(ctx, s, spec, p)
		if err == nil {
			e.ClientOn, e.ServerOn = h.held.Client, h.held.Contenders
		}
		return e, err
	}
	ready := p.Ready()
	c := s.contender
	if c.Version == "" {
		c.Version = ready.Version
	}
	e := &lab.Entry{
		Contender: c, Role: s.role, Connections: cmp.Or(s.connections, "per-caller"), TLS: s.tls, Clear: s.clear, Unverified: s.unverified,
		Client: s.client, Process: process{p, s.check}, Idle: s.idle, Handles: s.handles, ClientOn: h.held.Client, ServerOn: h.held.Contenders,
	}
	if s.line != nil {
		wire := new(driver.Wire)
		e.Connections, e.Target, e.Metered = "shared", s.line(p, nil), s.line(p, wire)
		e.Wire = func() (out, in int64) { return wire.Out.Load(), wire.In.Load() }
		return e, nil
	}
	if s.engine != nil {
		e.Connections, e.CalleeClock, e.Target = cmp.Or(s.connections, "shared"), true, s.engine(p)
		e.Calling, e.Away = s.calling, s.away
		if e.ClientOn, e.ServerOn = spec.Processors, spec.Processors; s.calling {
			e.ServerOn = spec.Behind
		}
		return e, nil
	}
	wire := new(driver.Wire)
	e.Target, e.Metered = s.target(ready, nil), s.target(ready, wire)
	e.Wire = func() (out, in int64) { return wire.Out.Load(), wire.In.Load() }
	return e, nil
}

// process is a contender's process as the lab sees it.
type process struct {
	p     *contender.Process
	check func() error // nil for none
}

// Usage converts what the door reports.
func (p process) Usage() (lab.Usage, error) {
	u, err := p.p.Usage()
	if err != nil {
		return lab.Usage{}, err
	}
	l, err := p.p.Limited()
	return lab.Usage{
		CPU: u.CPU, User: u.User, System: u.System, RSSPeak: u.RSSPeak, Threads: u.Threads,
		Limited: lab.Limited{
			Mechanism: l.Mechanism, Throttled: l.Throttled, MemoryPeak: l.MemoryPeak, OOMKills: l.OOMKills, Known: l.UsageKnown,
		},
	}, err
}

// Counters asks the process for its own counts.
func (p process) Counters(ctx context.Context) (lab.Counters, error) {
	s, err := p.p.Stats(ctx)
	if err != nil {
		return lab.Counters{}, err
	}
	if !s.AllocsKnown {
		return lab.Counters{Heap: s.Heap, GOMAXPROCS: s.GOMAXPROCS}, errors.New("its stats do not count allocations")
	}
	return lab.Counters{Allocs: s.Allocs, AllocBytes: s.AllocBytes, Heap: s.Heap, GOMAXPROCS: s.GOMAXPROCS}, nil
}

// Handled asks the process how often its handlers were called and how long they took.
func (p process) Handled(ctx context.Context) (int64, time.Duration, error) {
	s, err := p.p.Stats(ctx)
	if err == nil && !s.HandledKnown {
		err = errors.New("its stats do not count the time of its handlers")
	}
	return s.Handled, time.Duration(s.HandlerNS), err
}

// Collect asks the process to collect its garbage and for its counts.
func (p process) Collect(ctx context.Context) (lab.Counters, error) {
	s, err := p.p.Collect(ctx)
	if err == nil && !s.HeapKnown {
		err = errors.New("it does not count its heap")
	}
	return lab.Counters{Heap: s.Heap, Stack: s.Stack}, err
}

// Stop ends the process. What is wrong with what it answered, too, is its failure.
func (p process) Stop(ctx context.Context) error {
	err := p.p.Stop(ctx)
	if p.check != nil {
		err = errors.Join(p.check(), err)
	}
	return err
}

// authority makes a certificate authority for this run, leaves a server's certificate in the house's folder and returns what
// a client trusts.
func (h *house) authority() (*tls.Config, error) {
	a, err := certs.New(time.Now)
	if err != nil {
		return nil, err
	}
	pair, err := a.Server("127.0.0.1", "localhost", h.ground.host())
	if err != nil {
		return nil, err
	}
	if _, _, err := pair.WriteFiles(h.dir, "server"); err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS13}, nil
}

// fixture writes a file of the house, once.
func (h *house) fixture(name string, data []byte) (string, error) {
	file := filepath.Join(h.dir, name)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", fmt.Errorf("fixture: %w", err)
	}
	return file, nil
}
