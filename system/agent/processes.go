package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"toll/wire/envelope"
)

// Processes run each agent in a process of its own: a child that speaks [ServeWorker]'s side of a pipe. It must not be copied
// once it has been used, and be closed.
type Processes struct {
	Command []string // the worker's program and its arguments
	Warm    int      // idle workers that are kept started; 0 starts one for each spawn
	Max     int      // processes at a time, idle ones included; 256 when 0. A spawn waits for its turn
	Reuse   int      // agents that one worker may host one after the other, orderly ends provided; 1000 when 0, with Warm only

	once  sync.Once
	turns chan struct{} // one for each process there may be

	mu     sync.Mutex
	idle   []*worker // guarded by mu
	closed bool      // guarded by mu
	wg     sync.WaitGroup
}

// grace is how long a worker may take to end once its input has been closed.
const grace = 2 * time.Second

func (ps *Processes) prepare() {
	ps.once.Do(func() {
		if ps.Max <= 0 {
			ps.Max = 256
		}
		if ps.Reuse <= 0 {
			ps.Reuse = 1000
		}
		if ps.Warm == 0 {
			ps.Reuse = 1
		}
		ps.turns = make(chan struct{}, ps.Max)
	})
}

// Fill starts workers until Warm of them are idle. A spawn that finds none starts one for itself.
func (ps *Processes) Fill(ctx context.Context) error {
	ps.prepare()
	for {
		ps.mu.Lock()
		full := ps.closed || len(ps.idle) >= ps.Warm
		ps.mu.Unlock()
		if full {
			return nil
		}
		w, err := ps.begin(ctx)
		if err != nil {
			return err
		}
		ps.put(w)
	}
}

// Handler makes the handler that stands for an agent in a worker.
func (ps *Processes) Handler(class string, config map[string]any) (Handler, error) {
	ps.prepare()
	return &remote{ps: ps, class: class, config: config}, nil
}

// begin starts a worker.
func (ps *Processes) begin(ctx context.Context) (*worker, error) {
	select {
	case ps.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for one of %d processes to end: %w", ps.Max, ctx.Err())
	}
	cmd := exec.Command(ps.Command[0], ps.Command[1:]...)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		<-ps.turns
		return nil, fmt.Errorf("starting worker %s: %w", ps.Command[0], err)
	}
	return &worker{cmd: cmd, in: in, out: out}, nil
}

// take returns an idle worker, or a new one.
func (ps *Processes) take(ctx context.Context) (*worker, error) {
	ps.mu.Lock()
	if n := len(ps.idle); n > 0 {
		w := ps.idle[n-1]
		ps.idle = ps.idle[:n-1]
		ps.mu.Unlock()
		return w, nil
	}
	closed := ps.closed
	ps.mu.Unlock()
	if closed {
		return nil, errors.New("the workers have been closed")
	}
	return ps.begin(ctx)
}

// put takes a worker back whose agent has ended in order; one that is not to be used again is ended.
func (ps *Processes) put(w *worker) {
	ps.mu.Lock()
	keep := !ps.closed && w.uses < ps.Reuse && len(ps.idle) < ps.Warm
	if keep {
		ps.idle = append(ps.idle, w)
	}
	ps.mu.Unlock()
	if !keep {
		ps.end(w)
	}
}

// end closes a worker's input and waits for its end; one that does not end is killed.
func (ps *Processes) end(w *worker) {
	w.in.Close()
	timer := time.AfterFunc(grace, w.kill)
	w.cmd.Wait()
	timer.Stop()
	<-ps.turns
}

// Close ends the idle workers and waits for those that are ending. Agents that still run keep theirs until they end.
func (ps *Processes) Close() error {
	ps.prepare()
	ps.mu.Lock()
	ps.closed = true
	idle := ps.idle
	ps.idle = nil
	ps.mu.Unlock()
	for _, w := range idle {
		ps.wg.Go(func() { ps.end(w) })
	}
	ps.wg.Wait()
	return nil
}

// A worker is a child process that hosts an agent.
type worker struct {
	cmd           *exec.Cmd
	in            io.WriteCloser
	out           io.ReadCloser
	inBuf, outBuf []byte
	uses          int
}

func (w *worker) kill() { w.cmd.Process.Kill() }

// call asks the worker. An error that carries no code means that the pipe broke.
func (w *worker) call(m *envelope.Message) (v any, err error) {
	if w.outBuf, err = writeFrame(w.in, w.outBuf, m); err != nil {
		if _, told := envelope.CodeOf(err); told {
			return nil, err
		}
		return nil, fmt.Errorf("worker: %w", err)
	}
	reply, buf, err := readFrame(w.out, w.inBuf)
	w.inBuf = buf
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrClosed):
		return nil, errors.New("worker: its process has ended")
	case err != nil:
		return nil, fmt.Errorf("worker: %w", err)
	case reply.Err() != nil:
		return nil, reply.Err()
	}
	return reply.Payload, nil
}

// A remote is the handler of an agent in a worker.
type remote struct {
	ps     *Processes
	class  string
	config map[string]any
	w      *worker // nil before Start and after the end
	over   bool    // the agent ended in order: the worker can host another
}

// Start gets a worker and spawns the agent there.
func (r *remote) Start(c *Context) error {
	spawn := &envelope.Message{Type: spawnType, Recipient: c.p.name, CorrelationID: "spawn", Payload: map[string]any{
		"class": r.class, "config": r.config,
	}}
	for {
		w, err := r.ps.take(c.Context())
		if err != nil {
			return err
		}
		r.w = w
		w.uses++
		c.p.onKill(w.kill)
		_, err = w.call(spawn)
		if _, told := envelope.CodeOf(err); err == nil || told || w.uses == 1 || c.p.wasKilled() {
			return err
		}
		r.ps.end(w) // it died while it was idle: take another
		r.w = nil
	}
}

// Handle has the agent in the worker handle m. When that agent has crashed, so has this one.
func (r *remote) Handle(c *Context, m *envelope.Message) (any, error) {
	if m.Recipient != c.p.name || m.CorrelationID == "" || m.Epoch != 0 {
		copied := *m
		m = &copied
		m.Recipient, m.Epoch = c.p.name, 0
		if m.CorrelationID == "" {
			m.CorrelationID = "tell" // an answer says that it is done
		}
	}
	v, err := r.w.call(m)
	if code, ok := envelope.CodeOf(err); err != nil && (!ok || code == envelope.Crashed || code == envelope.Stopped || code == envelope.NotFound) {
		return nil, Fatal(err)
	}
	return v, err
}

// Stop ends the agent in the worker, unless it has failed.
func (r *remote) Stop(c *Context, reason error) {
	if reason != nil || c.p.wasKilled() {
		return
	}
	_, err := r.w.call(&envelope.Message{Type: despawnType, Recipient: c.p.name, CorrelationID: "despawn"})
	r.over = err == nil
}

// release gives the worker back. It is called once.
func (r *remote) release() {
	switch {
	case r.w == nil:
	case r.over:
		r.ps.put(r.w)
	default:
		r.w.kill()
		r.ps.end(r.w)
	}
	r.w = nil
}

// onKill has f called when the process is stopped in the middle of a message, or while it starts.
func (p *process) onKill(f func()) {
	p.mu.Lock()
	p.extra().kill = f
	killed := p.killed
	p.mu.Unlock()
	if killed {
		f()
	}
}

func (p *process) wasKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}
