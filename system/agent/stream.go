package agent

import (
	"context"
	"errors"
	"iter"
	"sync"

	"toll/wire/envelope"
)

// defaultWindow is how many values a stream's handler may be ahead of its reader.
const defaultWindow = 16

// A Stream is an answer in many parts. One goroutine reads it; it must be read to its end or closed.
type Stream struct {
	p      *process
	s      *slot
	values chan any
	closed chan struct{}
	once   sync.Once
	over   bool
	err    error
}

// Stream has the agent handle m and returns what it emits while it does. At most window values wait for the reader, 16 when 0.
// ctx bounds the whole stream.
func (r Ref) Stream(ctx context.Context, m *envelope.Message, window int) (*Stream, error) {
	if ctx.Err() != nil {
		return nil, failure(envelope.FromContext(ctx), r.p.name, "")
	}
	if window <= 0 {
		window = defaultWindow
	}
	st := &Stream{p: r.p, values: make(chan any, window), closed: make(chan struct{})}
	// Not a kept slot: Close may leave it while the handler holds it.
	st.s = &slot{ready: make(chan struct{}, 1), ctx: ctx, stream: st}
	if _, err := r.p.post(item{m, st.s}); err != nil {
		return nil, err
	}
	return st, nil
}

// Next returns the next value, or ok false at the end: then Err says how it ended.
func (st *Stream) Next() (v any, ok bool) {
	if st.over {
		return nil, false
	}
	select {
	case v := <-st.values:
		return v, true
	case <-st.s.ready:
		return st.rest()
	case <-st.s.ctx.Done():
		st.Close()
		st.err = failure(envelope.FromContext(st.s.ctx), st.p.name, "")
		return nil, false
	}
}

// rest returns what was emitted before the answer: a handler emits, then returns.
func (st *Stream) rest() (v any, ok bool) {
	select {
	case v := <-st.values:
		st.s.ready <- struct{}{} // seen again by the next Next
		return v, true
	default:
	}
	st.over, st.err = true, st.s.err
	return nil, false
}

// All yields the values; an error comes last, with a nil value. Leaving the loop closes the stream.
func (st *Stream) All() iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		defer st.Close()
		for v, ok := st.Next(); ok; v, ok = st.Next() {
			if !yield(v, nil) {
				return
			}
		}
		if st.err != nil {
			yield(nil, st.err)
		}
	}
}

// Err returns how a stream ended that Next has read to its end: nil when the handler returned without an error.
func (st *Stream) Err() error { return st.err }

// Close tells the agent that nobody reads any more: its Emit fails. It does nothing after the end.
func (st *Stream) Close() {
	st.over = true
	st.once.Do(func() {
		close(st.closed)
		if st.s.state.CompareAndSwap(waiting, abandoned) {
			st.p.leave(st.s)
		}
	})
}

// errNoStream is what Emit returns to a handler that was merely asked, or told.
var errNoStream = errors.New("agent: the message in progress did not ask for a stream")

func (p *process) emit(v any) error {
	ctx := p.context()
	p.mu.Lock()
	s := p.current
	dead := p.killed || p.left
	p.mu.Unlock()
	switch {
	case dead:
		return failure(envelope.Cancelled, p.name, "the reader has gone")
	case s == nil || s.stream == nil:
		return errNoStream
	}
	select {
	case s.stream.values <- v:
		return nil
	case <-s.stream.closed:
	case <-ctx.Done():
	}
	return failure(envelope.Cancelled, p.name, "the reader has gone")
}
