package contender

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"toll/contender/limits"
)

const (
	termGrace = time.Second            // from SIGTERM to SIGKILL
	leakGrace = 300 * time.Millisecond // for the rest of a tree to follow the process at its root
	killGrace = 5 * time.Second        // for SIGKILL to take effect
)

// A Process is a contender that runs. Its methods are safe for concurrent use. It must be stopped.
type Process struct {
	spec  Spec
	ready Ready
	mark  string     // NAME=value in the environment of the whole tree
	box   *container // nil unless it runs in one
	cmd   *exec.Cmd
	pipes *pipes

	out, err *lines
	words    tail
	turn     chan struct{}  // held by who writes to stdin and waits for an answer
	broken   error          // guarded by turn: why no more can be asked
	mute     error          // guarded by turn: why no more stats are asked for
	running  sync.WaitGroup // our goroutines
	done     chan struct{}  // closed once the child has ended, and crashed and excess are final
	excess   string         // what a process that ended had too much of; ", it reached …"

	mu                sync.Mutex
	stopping, crashed bool          // guarded by mu
	group             *limits.Group // guarded by mu; nil unless it runs under limits

	kin kin

	stopOnce sync.Once
	stopErr  error
	ended    ending
}

// ending is what it took to end a process.
type ending int

const (
	byItself ending = iota
	onStdin
	onTerm
	onKill
)

// Ready returns what the process said when it was ready.
func (p *Process) Ready() Ready { return p.ready }

// Done is closed when the process has ended, by itself or because it was stopped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns a *CrashError once the process has ended by itself, else nil.
func (p *Process) Err() error {
	p.mu.Lock()
	crashed := p.crashed
	p.mu.Unlock()
	if !crashed {
		return nil
	}
	<-p.done
	return p.crash()
}

// crash describes the end of a process that has ended.
func (p *Process) crash() *CrashError {
	return &CrashError{p.spec.Name, p.cmd.ProcessState.String() + p.excess, p.words.String()}
}

// Stop ends the process and everything it started: it closes stdin and waits, then sends SIGTERM, then SIGKILL. A process
// with a probe does not speak our contract and gets SIGTERM at once. When ctx ends, Stop stops waiting and kills. It
// returns a *CrashError if the process had ended by itself before, and a *LeakError if something outlived it; calls after
// the first return the same.
func (p *Process) Stop(ctx context.Context) error {
	p.stopOnce.Do(func() { p.stopErr = p.stop(ctx) })
	return p.stopErr
}

func (p *Process) stop(ctx context.Context) error {
	p.mu.Lock()
	// Who waits for it may not have run yet: its end is its own all the same.
	p.crashed = p.crashed || !p.stopping && ended(p.cmd.Process.Pid)
	p.stopping = true
	crashed := p.crashed
	p.mu.Unlock()
	p.kin.census() // who is below the root now belongs to it, whatever becomes of the root
	errs := []error{p.end(ctx, crashed)}
	if p.box != nil {
		errs = append(errs, p.box.remove(ctx))
	}
	errs = append(errs, p.sweep(), p.free())
	p.drain(ctx)
	if crashed {
		errs[0] = p.crash()
	}
	p.pipes.closeOurs()
	p.waitRunning()
	return errors.Join(errs...)
}

// end ends the child itself.
func (p *Process) end(ctx context.Context, crashed bool) error {
	p.pipes.ours[0].Close()
	if crashed {
		<-p.done
		return nil
	}
	conforms := p.spec.Probe == Probe{}
	if p.ended = onStdin; conforms && p.gone(ctx, p.spec.StopTimeout) {
		return nil
	}
	patience := termGrace
	if !conforms {
		patience = p.spec.StopTimeout
	}
	p.ended = onTerm
	p.terminate()
	if p.gone(ctx, patience) {
		return nil
	}
	p.ended = onKill
	p.kill()
	if !p.gone(context.WithoutCancel(ctx), killGrace) {
		return fmt.Errorf("%s: pid %d does not end, not even by SIGKILL", p.spec.Name, p.cmd.Process.Pid)
	}
	return nil
}

// gone reports whether the child ended within d.
func (p *Process) gone(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// sweep kills what outlived the child and names it. A tree may take a moment to fall.
func (p *Process) sweep() error {
	left := p.kin.outlived(leakGrace)
	if len(left) == 0 {
		return nil
	}
	return &LeakError{Name: p.spec.Name, Processes: left, Surviving: !p.kin.killAll(killGrace)}
}

// drain waits a moment for the rest of what a child that has ended wrote.
func (p *Process) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leakGrace)
	defer cancel()
	for _, l := range []*lines{p.out, p.err} {
		select {
		case <-l.over:
		case <-ctx.Done():
		}
	}
	// Both streams end with the process, but it is reaped a moment later.
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

// waitRunning waits for our goroutines, unless the child is one that can't be killed.
func (p *Process) waitRunning() {
	select {
	case <-p.done:
		p.running.Wait()
	default:
	}
}

// Usage is what a process tree has used since it was started, and what it holds now.
type Usage struct {
	CPU          time.Duration // user and system time, to the nanosecond; of children that have ended, to 10 ms
	User, System time.Duration // its two kinds as the system counts them, in steps of 10 ms
	RSSPeak      int64         // bytes: the sum of the peaks of the processes that live, the largest sum seen so far
	Threads      int
	PIDs         []int
}

// Usage reads what the tree has used: the process, everything below it, and what once was below it. Where the system does
// not say, the error is ErrUnsupported; after the end it is os.ErrProcessDone.
func (p *Process) Usage() (Usage, error) {
	select {
	case <-p.done:
		return Usage{}, fmt.Errorf("%s: usage: %w", p.spec.Name, os.ErrProcessDone)
	default:
	}
	u, err := p.kin.usage()
	if err != nil {
		return Usage{}, fmt.Errorf("%s: usage: %w", p.spec.Name, err)
	}
	return u, nil
}
