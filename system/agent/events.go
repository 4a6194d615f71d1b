package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/envelope"
)

// A Kind is what an event is about.
type Kind string

// The kinds of events.
const (
	ProcessStarted    Kind = "started"
	ProcessGone       Kind = "gone"
	ChildRestarted    Kind = "restarted"
	RestartsExhausted Kind = "restarts_exhausted"
	Escalated         Kind = "escalated"
	ShutDown          Kind = "shut_down" // a supervisor, by its significant children
	SpawnAdmitted     Kind = "spawn_admitted"
	SpawnRefused      Kind = "spawn_refused"
	SpawnReady        Kind = "spawn_ready"
	SpawnFailed       Kind = "spawn_failed"
	SpawnOrphaned     Kind = "spawn_orphaned"
	ChildDespawned    Kind = "despawned"
	DeadLettered      Kind = "dead_letter"
	PeerQuarantined   Kind = "quarantined"
)

// An Event is something that happened to an agent. Handlers of events must not block.
type Event struct {
	Kind       Kind
	Supervisor string // that it happened under; empty for none
	Name       string
	Epoch      uint64
	Err        error
	After      time.Duration // of a restart: the wait before it
}

// An Observer sees messages being handled. It is called on the agent's goroutine, only when there is one.
type Observer interface {
	// Handling is called before the handler; what it returns, after it. ctx is the caller's, nil for a tell.
	Handling(ctx context.Context, agent string, m *envelope.Message) (handled func(error))
}

// Counts are what a runtime has counted since it was made.
type Counts struct {
	Live        int64 // processes that have a name now
	Handled     int64 // messages; of live processes up to now
	Crashes     int64
	Dropped     int64 // by a full mailbox that drops the oldest
	Expired     int64 // messages passed over because their callers had gone
	LateReplies int64 // answers that nobody waited for, and second ones
	DeadLetters int64
	Poison      int64 // frames from outside that could not be read
	Zombies     int64 // handlers that were left behind and have not returned
}

type counts struct {
	handled, crashes, dropped, expired, lateReplies, deadLetters, poison, zombies atomic.Int64
}

// A DeadLetter is a tell that no agent handled.
type DeadLetter struct {
	Message *envelope.Message
	Err     error
}

// letters keeps the latest dead letters.
type letters struct {
	mu   sync.Mutex
	kept []DeadLetter // guarded by mu
	next int          // guarded by mu: where the oldest stands, once kept is full
}

func (l *letters) add(d DeadLetter, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case limit <= 0:
	case len(l.kept) < limit:
		l.kept = append(l.kept, d)
	default:
		l.kept[l.next] = d
		l.next = (l.next + 1) % limit
	}
}

// list returns them, the oldest first.
func (l *letters) list() []DeadLetter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(append([]DeadLetter(nil), l.kept[l.next:]...), l.kept[:l.next]...)
}
