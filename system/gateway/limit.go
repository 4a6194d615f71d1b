package gateway

import (
	"context"
	"sync"
	"time"

	"toll/wire/http1"
)

// A limited context ends with its parent, at a time, or when it is ended. Nothing is set up for that until somebody waits for
// it; whoever only looks is told by the clock.
type limited struct {
	context.Context // the parent
	at              time.Time
	reply           *http1.Reply // whose alarm it may use, which also rings when the parent ends; nil for none

	mu     sync.Mutex
	inner  context.Context    // guarded by mu: nil until somebody waits
	cancel context.CancelFunc // guarded by mu: of inner
	ended  bool               // guarded by mu
}

// Deadline returns the time, or the parent's if that is earlier.
func (l *limited) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

// Done returns a channel that is closed at the end.
func (l *limited) Done() <-chan struct{} { return l.waited().Done() }

// waited returns a context that can be waited for.
func (l *limited) waited() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil {
		l.inner, l.cancel = context.WithDeadline(l.Context, l.at)
		if l.ended {
			l.cancel()
		}
	}
	return l.inner
}

// Err says how it ended.
func (l *limited) Err() error {
	l.mu.Lock()
	inner, ended := l.inner, l.ended
	l.mu.Unlock()
	if inner != nil {
		return inner.Err()
	}
	if err := l.Context.Err(); err != nil {
		return err
	}
	if ended {
		return context.Canceled
	}
	if !time.Now().Before(l.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// AfterFunc calls f after the end. It is what package context looks for in a parent that is not its own.
func (l *limited) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(l.waited(), f) }

// AtEnd calls f after the end, perhaps also when the call is over. It is what the agents' runtime looks for.
func (l *limited) AtEnd(f func()) {
	if l.reply == nil {
		l.AfterFunc(f)
		return
	}
	l.reply.Alarm(l.at, f)
}

// end ends it.
func (l *limited) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.cancel != nil {
		l.cancel()
	}
}
