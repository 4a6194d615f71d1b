package mcp

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"toll/wire/plain"
)

// changes are kinds of change that a client may want to hear of.
type changes uint8

const (
	toolsChanged changes = 1 << iota
	promptsChanged
	resourcesChanged
)

// A box collects changes until a stream takes them. It holds each at most once, so a slow client costs no memory.
type box struct {
	mu     sync.Mutex
	what   changes             // guarded by mu
	uris   map[string]struct{} // guarded by mu
	closed bool                // guarded by mu
	wake   chan struct{}       // holds one when there is something to take
}

func newBox() *box { return &box{wake: make(chan struct{}, 1)} }

func (b *box) put(what changes, uri string) {
	b.mu.Lock()
	b.what |= what
	if uri != "" {
		if b.uris == nil {
			b.uris = make(map[string]struct{})
		}
		b.uris[uri] = struct{}{}
	}
	b.mu.Unlock()
	b.signal()
}

func (b *box) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *box) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.signal()
}

func (b *box) take() (what changes, uris []string, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what, uris, closed = b.what, slices.Sorted(maps.Keys(b.uris)), b.closed
	b.what, b.uris = 0, nil
	return what, uris, closed
}

// A listener is a request subscriptions/listen.
type listener struct {
	box    *box
	filter filter
	id     []byte
}

// A filter says which changes a client wants to hear of.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

func (f *filter) wants() (w changes) {
	for _, one := range []struct {
		wanted bool
		what   changes
	}{{f.Tools, toolsChanged}, {f.Prompts, promptsChanged}, {f.Resources, resourcesChanged}} {
		if one.wanted {
			w |= one.what
		}
	}
	return w
}

// streams are those that wait for changes, of either era.
type streams struct {
	max int

	mu        sync.Mutex
	open      int                    // guarded by mu
	listeners map[*listener]struct{} // guarded by mu
}

func (ss *streams) init(cfg Config) {
	ss.max, ss.listeners = cfg.MaxStreams, make(map[*listener]struct{})
}

// enter makes room for a stream, and reports whether there was.
func (ss *streams) enter(l *listener) *Error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open >= ss.max {
		return &Error{Code: CodeInternalError, Message: "Too many streams are open; try again later", status: 503}
	}
	ss.open++
	if l != nil {
		ss.listeners[l] = struct{}{}
	}
	return nil
}

func (ss *streams) leave(l *listener) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.open--
	delete(ss.listeners, l)
}

func (ss *streams) changed(what changes) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for l := range ss.listeners {
		if w := l.filter.wants() & what; w != 0 {
			l.box.put(w, "")
		}
	}
}

func (ss *streams) updated(uri string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for l := range ss.listeners {
		if slices.Contains(l.filter.URIs, uri) {
			l.box.put(0, uri)
		}
	}
}

// listen opens a listener for a request, with what it asks for and the server has.
func (s *Server) listen(x *exchange) (*listener, *Error) {
	l := &listener{box: newBox(), id: slices.Clone(x.m.id)}
	if x.m.params.notifications == nil || json.Unmarshal(x.m.params.notifications, &l.filter) != nil {
		return nil, refusedParams("want notifications, an object that says of which changes to tell")
	}
	if len(l.filter.URIs) > s.cfg.MaxResources {
		return nil, refusedParams("too many subscriptions")
	}
	c := s.catalog.Load()
	l.filter.Tools = l.filter.Tools && c.hadTools
	l.filter.Prompts = l.filter.Prompts && c.hadPrompts
	l.filter.Resources = l.filter.Resources && c.hadResources
	l.filter.URIs = slices.DeleteFunc(l.filter.URIs, func(uri string) bool { return !c.hasResource(uri) })
	return l, s.streams.enter(l)
}

// tag is the _meta that says which subscription a message belongs to.
func (l *listener) tag(dst []byte) []byte {
	dst = append(dst, `"_meta":{"`+metaSubscription+`":`...)
	return append(append(dst, l.id...), '}')
}

// acknowledged is the first message of a listener's stream.
func (l *listener) acknowledged() []byte {
	msg := l.tag([]byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`))
	msg = append(msg, `,"notifications":`...)
	return append(append(msg, mustJSON(l.filter)...), "}}"...)
}

// goodbye is what a listener's stream ends with when the server ends it.
func (s *Server) goodbye(l *listener) [][]byte {
	cancelled := append([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), l.id...)
	cancelled = append(l.tag(append(cancelled, ',')), "}}"...)
	end := append(appendResult(nil, l.id), `{"resultType":"complete",`...)
	return [][]byte{cancelled, append(l.tag(end), "}}"...)}
}

// messages returns the notifications of changes; l is nil on a stream of an earlier revision.
func messages(what changes, uris []string, l *listener) (all [][]byte) {
	one := func(method string, params []byte) {
		if l != nil {
			tag := l.tag([]byte{'{'})
			if len(params) > 0 {
				tag = append(tag, ',')
			}
			params = append(append(tag, params...), '}')
		} else if params != nil {
			params = append(append([]byte{'{'}, params...), '}')
		}
		all = append(all, notification(method, params))
	}
	if what&toolsChanged != 0 {
		one("notifications/tools/list_changed", nil)
	}
	if what&promptsChanged != 0 {
		one("notifications/prompts/list_changed", nil)
	}
	if what&resourcesChanged != 0 {
		one("notifications/resources/list_changed", nil)
	}
	for _, uri := range uris {
		one("notifications/resources/updated", plain.AppendText([]byte(`"uri":`), []byte(uri)))
	}
	return all
}

// pump sends the changes of a box until the client has gone (ctx), the box is closed or the server is; true in the last two cases.
func (s *Server) pump(ctx context.Context, b *box, l *listener, send func(msg []byte) error, alive func() error) (ended bool) {
	silent := time.NewTimer(s.cfg.KeepAlive)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.ctx.Done():
			return true
		case <-silent.C:
			if alive() != nil {
				return false
			}
		case <-b.wake:
			what, uris, closed := b.take()
			for _, msg := range messages(what, uris, l) {
				if send(msg) != nil {
					return false
				}
			}
			if closed {
				return true
			}
		}
		silent.Reset(s.cfg.KeepAlive)
	}
}

// An eventWriter writes messages as events; each is sent at once.
type eventWriter struct {
	w   io.Writer
	buf []byte
}

func (e *eventWriter) send(msg []byte) error {
	e.buf = appendEvent(e.buf[:0], msg)
	_, err := e.w.Write(e.buf)
	return err
}

// comment sends what clients ignore and what keeps a connection alive.
func (e *eventWriter) comment() error {
	_, err := io.WriteString(e.w, ":\n\n")
	return err
}
