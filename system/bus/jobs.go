package bus

import (
	"context"
	"fmt"
	"sync"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// jobs answers requests that come as messages, each on a goroutine of its own unless they are quick.
type jobs struct {
	responder *Responder
	quick     bool
	places    chan struct{}
	memory    sync.Pool // of *job

	mu       sync.Mutex
	stopping bool           // guarded by mu
	running  sync.WaitGroup // added to under mu
}

type job struct{ request, reply []byte }

func newJobs(r *Responder, quick bool) *jobs {
	return &jobs{responder: r, quick: quick, places: make(chan struct{}, r.cfg.InFlight)}
}

func (j *jobs) take() *job {
	if m, ok := j.memory.Get().(*job); ok {
		return m
	}
	return new(job)
}

// inline answers on the caller's goroutine; send must copy what it is given.
func (j *jobs) inline(b []byte, send func([]byte)) {
	m := j.take()
	defer j.memory.Put(m)
	reply, err := j.responder.respond(m.reply[:0], b)
	if m.reply = reply; err == nil && len(reply) > 0 {
		send(reply)
	}
}

// run answers b, which is copied, unless too much is being answered or we are stopping: then it is refused at once.
func (j *jobs) run(b []byte, send func([]byte)) {
	j.mu.Lock()
	stopping := j.stopping
	if !stopping {
		j.running.Add(1)
	}
	j.mu.Unlock()
	if stopping {
		j.refuse(b, send, envelope.Stopped, "is being drained")
		return
	}
	select {
	case j.places <- struct{}{}:
	default:
		j.running.Done()
		j.refuse(b, send, envelope.MailboxFull, "overloaded")
		return
	}
	m := j.take()
	m.request = append(m.request[:0], b...)
	go func() {
		defer j.running.Done()
		defer func() { <-j.places }()
		j.inline(m.request, send)
		if cap(m.request) <= 64<<10 {
			j.memory.Put(m)
		}
	}()
}

// refuse answers that a request was not taken.
func (j *jobs) refuse(b []byte, send func([]byte), code envelope.Code, why string) {
	var r frame.Received
	if r.Parse(b) != nil {
		return
	}
	j.responder.failed.Add(1)
	if r.ID != 0 {
		send(frame.AppendFailure(nil, r.ID, uint8(code), why))
	}
}

// drain refuses what comes from now on and waits for what is being answered.
func (j *jobs) drain(ctx context.Context) error {
	j.mu.Lock()
	j.stopping = true
	j.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		j.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("draining: %w", ctx.Err())
	}
}

// heartbeat probes a link that has nothing else to say, and ends it when no answer comes. stop ends the goroutine.
func heartbeat(every time.Duration, stop <-chan struct{}, answered func() int64, ask func(context.Context) error, end func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for seen := int64(-1); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := answered()
		if now != seen {
			seen = now
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*every)
		err := ask(ctx)
		cancel()
		if err != nil && answered() == seen {
			end(fmt.Errorf("bus: no answer to a heartbeat: %w", err))
			return
		}
	}
}
