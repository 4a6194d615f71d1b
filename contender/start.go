package contender

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"toll/contender/owner"
)

// markName is the environment variable by which every process of a contender's tree is known, also one that has left its
// parent, its session and its process group.
const markName = "TOLL_CONTENDER"

// Start starts a contender and returns once it is ready. On an error nothing of it is left: an ErrMissing when it is not on
// this machine, an ErrNotReady when it ran and did not come to be ready, else why it could not be run.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := s.checkEndpointFree(ctx); err != nil {
		return nil, err
	}
	p, err := launch(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		p.discard(ctx)
		return nil, err
	}
	p.kin.census() // a daemon may have left its parent by now
	return p, nil
}

// launch runs the command and the goroutines that listen to it.
func launch(ctx context.Context, s Spec) (*Process, error) {
	p := &Process{
		spec: s, mark: markName + "=" + string(owner.Self()) + "-" + rand.Text(),
		done: make(chan struct{}), turn: make(chan struct{}, 1),
		words: tail{copy: s.Stderr},
	}
	if err := p.command(ctx); err != nil {
		return nil, err
	}
	if err := p.confine(); err != nil {
		return nil, err
	}
	p.out, p.err = newLines(nil), newLines(p.words.add)
	p.expectReady()

	var pipes pipes
	defer pipes.closeTheirs()
	if err := pipes.open(); err != nil {
		p.free()
		return nil, fmt.Errorf("%s: pipes: %w", s.Name, err)
	}
	p.pipes = &pipes
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes.theirs[0], pipes.theirs[1], pipes.theirs[2]
	started := make(chan error)
	p.running.Go(func() { p.run(started) })
	if err := <-started; err != nil {
		pipes.closeOurs()
		p.free()
		return nil, startFailure(s.Name, p.cmd.Path, err)
	}
	p.running.Go(func() { p.out.read(pipes.ours[1]) })
	p.running.Go(func() { p.err.read(pipes.ours[2]) })
	return p, nil
}

// command makes the exec.Cmd.
func (p *Process) command(ctx context.Context) error {
	s := p.spec
	env := append(os.Environ(), s.Env...)
	if s.Image != "" {
		box, err := newContainer(ctx, s, p.mark)
		if err != nil {
			return err
		}
		p.box = box
		p.cmd = exec.Command(box.runtime, box.run...)
	} else {
		program, err := s.program()
		if err != nil {
			return err
		}
		p.cmd = exec.Command(program, s.Command[1:]...)
		p.cmd.Dir = s.Dir
		env = append(env, p.mark)
	}
	p.cmd.Env = env
	p.cmd.SysProcAttr = ownGroup()
	return nil
}

func startFailure(name, program string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("%s: %s can't be run: %w", name, program, err)
}

// run starts the child and waits for it.
func (p *Process) run(started chan<- error) {
	var enter []enterer
	if p.spec.Hop != nil {
		enter = append(enter, p.spec.Hop.Enter)
	}
	if g := p.limiting(); g != nil {
		enter = append(enter, g.Enter)
	}
	if p.placed() {
		enter = append(enter, p.spec.Processors.Enter)
	}
	onThread(p.cmd, enter, func(err error) {
		if err == nil {
			p.kin.root(p.cmd.Process.Pid, p.mark)
		}
		started <- err
		if err != nil {
			return
		}
		p.cmd.Wait() // its error is in ProcessState
		p.mu.Lock()
		p.crashed = p.crashed || !p.stopping
		p.mu.Unlock()
		p.excess = p.tooLarge()
		close(p.done)
	})
}

// settle waits until the child is ready, dead, overdue or given up.
func (p *Process) settle(ctx context.Context) error {
	overdue, cancel := context.WithTimeout(ctx, p.spec.ReadyTimeout)
	defer cancel()
	err := p.awaitReady(overdue)
	if g := p.limiting(); err == nil && g != nil {
		err = g.InForce(p.cmd.Process.Pid)
	}
	if err == nil && p.placed() {
		err = p.spec.Processors.InForce(p.cmd.Process.Pid)
	}
	if err == nil && p.placed() && len(p.spec.Behind) > 0 {
		err = p.placeBehind()
	}
	if err == nil && p.box != nil {
		err = p.unbox(overdue)
	}
	if err == nil {
		err = p.nameVersion(overdue)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: given up before it was ready: %w", p.spec.Name, context.Cause(ctx))
	case overdue.Err() != nil:
		err = fmt.Errorf("not ready after %v; waited for %s%s", p.spec.ReadyTimeout, p.awaited(), lastWords(p.words.String()))
	}
	if crash, ok := errors.AsType[*CrashError](err); ok {
		err = fmt.Errorf("ended before it was ready (%w)%s", statusOnly{crash}, lastWords(crash.Stderr))
	}
	return &notReadyError{p.spec.Name, err}
}

// statusOnly prints as a crash's status, so that a sentence names its contender once.
type statusOnly struct{ *CrashError }

// Error returns the status.
func (e statusOnly) Error() string { return e.Status }

// Unwrap returns the whole error.
func (e statusOnly) Unwrap() error { return e.CrashError }

// discard ends a child that did not come to be ready.
func (p *Process) discard(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel() // no waiting: straight to SIGKILL
	p.Stop(ctx)
}

// nameVersion fills in the version from the manifest's command where nothing else says it.
func (p *Process) nameVersion(ctx context.Context) error {
	if p.spec.Version != "" {
		p.ready.Version = p.spec.Version
	}
	if p.ready.Version != "" || len(p.spec.VersionCommand) == 0 {
		return nil
	}
	s := p.spec
	s.Command = s.VersionCommand
	program, err := s.program()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, s.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Dir, p.cmd.Env, time.Second
	said := make([]byte, 0, maxQuote)
	cmd.Stdout = &bounded{&said}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("version_command %s: %w", strings.Join(s.Command, " "), err)
	}
	first, _, _ := bytes.Cut(said, []byte("\n"))
	p.ready.Version = string(bytes.TrimSpace(first))
	return nil
}

// bounded keeps the beginning of what is written to it, as much as there is room for.
type bounded struct{ b *[]byte }

// Write never fails.
func (w *bounded) Write(p []byte) (int, error) {
	room := cap(*w.b) - len(*w.b)
	*w.b = append(*w.b, p[:min(len(p), room)]...)
	return len(p), nil
}

// pipes are a child's three streams. They are files of ours and not exec's, because a grandchild that keeps one open must
// not keep us waiting.
type pipes struct{ ours, theirs [3]*os.File }

func (p *pipes) open() error {
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeOurs()
			return err
		}
		p.ours[i], p.theirs[i] = r, w
		if i == 0 {
			p.ours[i], p.theirs[i] = w, r
		}
	}
	return nil
}

func (p *pipes) closeOurs() {
	for _, f := range p.ours {
		if f != nil {
			f.Close()
		}
	}
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		if f != nil {
			f.Close()
		}
	}
}

// readyLine is a contender's first line. Keys that we do not know are its own affair.
type readyLine struct {
	Ready      string `json:"ready"`
	Version    string `json:"version"`
	Name       string `json:"name"`
	Language   string `json:"language"`
	SDK        string `json:"sdk"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

func parseReady(l line) (Ready, error) {
	if l.cut {
		return Ready{}, fmt.Errorf("its first line on stdout has more than %d bytes and begins %s; expected %s", maxLine, quote(l.text), wantReady)
	}
	var r readyLine
	if err := json.Unmarshal(l.text, &r); err != nil || r.Ready == "" {
		return Ready{}, fmt.Errorf("its first line on stdout is %s; expected %s, or a probe in the manifest", quote(l.text), wantReady)
	}
	addr, path, err := splitAddr(r.Ready)
	if err != nil {
		return Ready{}, fmt.Errorf("its ready line: %w", err)
	}
	return Ready{
		Addr: addr, Path: path, Version: r.Version, Name: r.Name, Language: r.Language, SDK: r.SDK, GOMAXPROCS: r.GOMAXPROCS,
	}, nil
}

const wantReady = `the ready line, {"ready":ADDR,"version":…}`
