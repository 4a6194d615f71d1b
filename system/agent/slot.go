package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/envelope"
)

// A slot is where one caller waits for its answer. Whoever takes it out of a mailbox, or out of the process that handles its
// message, answers it, once; state decides between that answer and a caller who gives up.
type slot struct {
	ready chan struct{} // one place: its answer is there
	state atomic.Uint32
	value any
	err   error
	ctx   context.Context
	tell  bool // its message is a tell: what the caller waits for is a place in the mailbox

	timed  bool        // whoever answers puts the time at which it began into value
	timer  *time.Timer // kept with the slot; nil until it was needed
	stream *Stream     // nil but for a stream

	free func(v any, err error) // of a caller who lent its goroutine; nil but for those
}

const (
	waiting uint32 = iota
	answered
	abandoned
	lent     // its caller handles the message itself, and is to be freed by an answer that comes before the handler returns
	returned // its caller has handled the message and knows the answer
)

// slots are kept from ask to ask. One that was abandoned is never kept: somebody may still hold it.
type slots struct{ pool sync.Pool }

func (ss *slots) get(ctx context.Context) *slot {
	s, _ := ss.pool.Get().(*slot)
	if s == nil {
		s = &slot{ready: make(chan struct{}, 1)}
	}
	s.ctx = ctx
	s.state.Store(waiting)
	return s
}

func (ss *slots) put(s *slot) {
	s.value, s.err, s.ctx, s.tell, s.timed, s.stream = nil, nil, nil, false, false, nil
	ss.pool.Put(s)
}

// answer gives the caller its answer. It returns false when the caller has gone.
func (s *slot) answer(v any, err error) bool {
	if s.free != nil {
		if s.state.CompareAndSwap(lent, answered) {
			go s.free(v, err)
			return true
		}
		return s.state.Load() == returned
	}
	if !s.state.CompareAndSwap(waiting, answered) {
		return false
	}
	s.value, s.err = v, err
	s.ready <- struct{}{}
	return true
}

// end is answer for what a handler made: an answer that nobody waits for is counted.
func (s *slot) end(v any, err error, rt *Runtime) {
	if !s.answer(v, err) {
		rt.counts.lateReplies.Add(1)
	}
}

func (s *slot) abandoned() bool { return s.state.Load() == abandoned }

// wait returns the answer, or ok false when ctx ended first.
func (s *slot) wait(ctx context.Context) (ok bool) {
	select { // an answer that is there needs no channel of the context, which it may have yet to make
	case <-s.ready:
		return true
	default:
	}
	done := ctx.Done()
	if done == nil {
		<-s.ready
		return true
	}
	select {
	case <-s.ready:
		return true
	case <-done:
		if s.state.CompareAndSwap(waiting, abandoned) {
			return false
		}
		<-s.ready
		return true
	}
}

// waitFor is wait with a limit in time.
func (s *slot) waitFor(ctx context.Context, limit time.Duration) (ok bool) {
	if s.timer == nil {
		s.timer = time.NewTimer(limit)
	} else {
		s.timer.Reset(limit)
	}
	defer s.timer.Stop()
	select {
	case <-s.ready:
		return true
	case <-ctx.Done():
	case <-s.timer.C:
	}
	if s.state.CompareAndSwap(waiting, abandoned) {
		return false
	}
	<-s.ready
	return true
}

// failure makes the error that a caller gets.
func failure(code envelope.Code, agent, detail string) error {
	return &envelope.Failure{Code: code, Agent: agent, Detail: detail}
}
