package mcp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sessions are those of revisions up to 2025-11-25 that are open. Their number is bounded, and one that is not used for a
// while is forgotten: clients that never say goodbye are the rule.
type sessions struct {
	max  int
	idle time.Duration

	mu      sync.RWMutex
	open    map[string]*session   // guarded by mu
	streams map[*session]struct{} // guarded by mu: the sessions of byte streams
	sweep   *time.Timer           // guarded by mu: runs while there are sessions
	closed  bool                  // guarded by mu
}

// A session is one client's, from its initialize to its DELETE or until it has been idle for too long.
type session struct {
	id    string
	rev   revision
	last  atomic.Int64 // when it was used, in Unix nanoseconds
	busy  atomic.Int32 // requests in progress and streams open; such a session is not idle
	level atomic.Int32

	mu      sync.Mutex
	able    []byte                        // guarded by mu: the client's capabilities
	over    bool                          // guarded by mu
	box     *box                          // guarded by mu: changes that the client wants to hear of; nil until it wants any
	uris    map[string]struct{}           // guarded by mu: resources it subscribed to
	next    int64                         // guarded by mu: id of our next request
	pending map[string]chan answer        // guarded by mu: our requests that wait for an answer, by id
	calls   map[string]context.CancelFunc // guarded by mu: the client's requests that may be cancelled, by id
}

func (ss *sessions) init(cfg Config) {
	ss.max, ss.idle, ss.open = cfg.MaxSessions, cfg.SessionIdle, make(map[string]*session)
}

// begin opens a session.
func (ss *sessions) begin(rev revision, capabilities []byte) (*session, *Error) {
	var random [18]byte
	rand.Read(random[:])
	one := &session{id: base64.RawURLEncoding.EncodeToString(random[:]), rev: rev, able: slices.Clone(capabilities)}
	one.level.Store(int32(levelOf([]byte("info"))))
	one.touch()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed {
		return nil, &Error{Code: CodeInternalError, Message: "The server is shutting down", status: 503}
	}
	if len(ss.open) >= ss.max {
		ss.expire(time.Now())
	}
	if len(ss.open) >= ss.max {
		return nil, &Error{Code: CodeInternalError, status: 503,
			Message: fmt.Sprintf("All %d sessions are taken; end one by DELETE, or try again: one ends when it is idle for %v", ss.max, ss.idle)}
	}
	ss.open[one.id] = one
	if ss.sweep == nil {
		ss.sweep = time.AfterFunc(ss.idle/4, ss.swept)
	}
	return one, nil
}

// lookup finds a session and marks it as used; done must be called when the request is answered.
func (ss *sessions) lookup(id []byte) *session {
	ss.mu.RLock()
	one := ss.open[string(id)]
	if one != nil {
		one.busy.Add(1) // under the lock: the sweep must not take it in between
	}
	ss.mu.RUnlock()
	return one
}

func (s *session) touch() { s.last.Store(time.Now().UnixNano()) }

func (s *session) done() {
	s.touch()
	s.busy.Add(-1)
}

// swept forgets idle sessions, and comes again while there are any.
func (ss *sessions) swept() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.expire(time.Now())
	if len(ss.open) == 0 || ss.closed {
		ss.sweep = nil
		ss.open = make(map[string]*session) // a map does not give back the memory of what it once held
		return
	}
	ss.sweep.Reset(ss.idle / 4)
}

// expire forgets the sessions that are idle for too long. ss.mu is held.
func (ss *sessions) expire(now time.Time) {
	for id, one := range ss.open {
		if one.busy.Load() == 0 && now.UnixNano()-one.last.Load() >= int64(ss.idle) {
			delete(ss.open, id)
			one.end()
		}
	}
}

// finish ends a session that its client does not need any more.
func (ss *sessions) finish(one *session) {
	ss.mu.Lock()
	delete(ss.open, one.id)
	ss.mu.Unlock()
	one.end()
}

func (ss *sessions) close() {
	ss.mu.Lock()
	all := ss.open
	ss.open, ss.closed = make(map[string]*session), true
	if ss.sweep != nil {
		ss.sweep.Stop()
		ss.sweep = nil
	}
	ss.mu.Unlock()
	for _, one := range all {
		one.end()
	}
}

func (ss *sessions) each(f func(one *session)) {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	for _, one := range ss.open {
		f(one)
	}
	for one := range ss.streams {
		f(one)
	}
}

func (ss *sessions) changed(what changes) {
	ss.each(func(one *session) {
		one.mu.Lock()
		defer one.mu.Unlock()
		if one.box != nil {
			one.box.put(what, "")
		}
	})
}

func (ss *sessions) updated(uri string) {
	ss.each(func(one *session) {
		one.mu.Lock()
		defer one.mu.Unlock()
		if _, wants := one.uris[uri]; wants && one.box != nil {
			one.box.put(0, uri)
		}
	})
}

// end breaks off what goes on in the session.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, cancel := range s.calls {
		cancel()
	}
	for _, p := range s.pending {
		close(p)
	}
	s.calls, s.pending = nil, nil
	if s.box != nil {
		s.box.close()
	}
}

// capabilities returns what the client said that it can do.
func (s *session) capabilities() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.able
}

// introduced notes what the client of a byte stream says that it can do.
func (s *session) introduced(capabilities []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.able = slices.Clone(capabilities)
}

func (s *session) leastLevel() int { return int(s.level.Load()) }

func (s *session) setLevel(level int) { s.level.Store(int32(level)) }

// mailbox returns where the session's changes collect, nil when the session is over.
func (s *session) mailbox() *box {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	if s.box == nil {
		s.box = newBox()
	}
	return s.box
}

// subscribe reports whether there was room.
func (s *session) subscribe(uri string, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.uris) >= most {
		return false
	}
	if s.uris == nil {
		s.uris = make(map[string]struct{})
	}
	if s.box == nil {
		s.box = newBox()
	}
	s.uris[uri] = struct{}{}
	return true
}

func (s *session) unsubscribe(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uris, uri)
}

// started notes a request that the client may cancel; over takes the note back. A second request with the same id as one
// that is in progress is not noted, so that it does not hide the first.
func (s *session) started(id []byte, cancel context.CancelFunc) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(id)
	if s.over {
		cancel()
		return func() {}
	}
	if _, there := s.calls[key]; there {
		return func() {}
	}
	if s.calls == nil {
		s.calls = make(map[string]context.CancelFunc)
	}
	s.calls[key] = cancel
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, key)
	}
}

// cancel breaks off a request in progress; one that is not in progress is nothing.
func (s *session) cancel(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[string(id)]; cancel != nil {
		cancel()
	}
}

// follow makes the one session of a byte stream hear of changes; it counts towards no bound and does not expire.
func (ss *sessions) follow(one *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.streams == nil {
		ss.streams = make(map[*session]struct{})
	}
	ss.streams[one] = struct{}{}
}

func (ss *sessions) unfollow(one *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.streams, one)
}
