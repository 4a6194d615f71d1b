package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/record"
)

// errLaunched is why a row whose calls each start a process has no counters.
var errLaunched = errors.New("each call starts a process of its own")

// launches is a contender that each call starts anew: what a host pays that runs a server per call. Starting it, until it
// answers, is in the window; ending it is not.
type launches struct {
	spec   contender.Spec
	target func(p *contender.Process, wire *driver.Wire) load.Target

	mu   sync.Mutex
	used lab.Usage // guarded by mu: of all processes that have ended, RSS and threads the largest
}

// launchEach makes the entry. trial is the first process: it has shown that the contender can be started.
func launchEach(ctx context.Context, s seat, spec contender.Spec, trial *contender.Process) (*lab.Entry, error) {
	c := s.contender
	if c.Version == "" {
		c.Version = trial.Ready().Version
	}
	if err := trial.Stop(ctx); err != nil {
		return nil, err
	}
	l := &launches{spec: spec, target: s.line}
	wire := new(driver.Wire)
	return &lab.Entry{
		Contender: c, Role: s.role, Connections: "per-caller", Process: l,
		Target:  load.TargetFunc(func(context.Context) (load.Caller, error) { return &launch{launches: l}, nil }),
		Metered: load.TargetFunc(func(context.Context) (load.Caller, error) { return &launch{launches: l, wire: wire}, nil }),
		Wire:    func() (out, in int64) { return wire.Out.Load(), wire.In.Load() },
	}, nil
}

// Usage sums what the processes have used.
func (l *launches) Usage() (lab.Usage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, nil
}

// Counters says why there are none.
func (*launches) Counters(context.Context) (lab.Counters, error) { return lab.Counters{}, errLaunched }

// Stop has nothing to end: each caller has ended its last process.
func (*launches) Stop(context.Context) error { return nil }

func (l *launches) add(u contender.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used.CPU += u.CPU
	l.used.User += u.User
	l.used.System += u.System
	l.used.RSSPeak = max(l.used.RSSPeak, u.RSSPeak)
	l.used.Threads = max(l.used.Threads, u.Threads)
}

// A launch is one VU.
type launch struct {
	*launches
	wire *driver.Wire
	p    *contender.Process
}

// Prepare ends the process of the last call.
func (l *launch) Prepare(ctx context.Context) error { return l.end(ctx) }

// Call starts a process and makes one call.
func (l *launch) Call(ctx context.Context, m record.Mark) error {
	p, err := contender.Start(ctx, l.spec)
	if err != nil {
		return record.Fail(record.Connect, err)
	}
	l.p = p
	c, err := l.target(p, l.wire).Open(ctx)
	if err != nil {
		return record.Fail(record.Connect, err)
	}
	return c.Call(ctx, m)
}

// Close ends the process of the last call.
func (l *launch) Close() error { return l.end(context.Background()) }

func (l *launch) end(ctx context.Context) error {
	if l.p == nil {
		return nil
	}
	p := l.p
	l.p = nil
	u, err := p.Usage()
	if err == nil {
		l.add(u)
	}
	if stopErr := p.Stop(ctx); stopErr != nil {
		return fmt.Errorf("ending a call's process: %w", stopErr)
	}
	return nil
}
