package http1

import (
	"bytes"
	"sync"
	"time"
)

// Abandon says that another goroutine makes the reply and goes on with the connection, by Resume, which it may have called
// already: the handler's own Reply is dropped. Keep takes that back.
func (r *Reply) Abandon() { r.conn.abandoned = true }

// Keep says that the handler makes the reply after all. Nobody may have called Resume.
func (r *Reply) Keep() { r.conn.abandoned = false }

// Resume goes on with the connection in place of a handler that has abandoned its reply: fill makes the reply, which is sent, and
// further requests are answered, all on the goroutine that calls, until the connection ends. A panic of fill is answered with 500. The handler's request stays the
// handler's. A stream and a watch can't be resumed. It is called once for a request.
func (r *Reply) Resume(fill func(*Reply)) {
	c := r.conn.successor()
	if c == nil { // the connection has ended
		return
	}
	c.guard(func() { fill(&c.out) })
	if c.send() {
		c.requests()
		return
	}
	c.end()
}

// successor takes the connection over, nil when it has ended. All of it that the handler may still look at is copied.
func (c *conn) successor() *conn {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.s.conns[c]; !ok {
		return nil
	}
	n := &conn{
		s: c.s, nc: c.nc, writeUntil: c.writeUntil,
		idle: c.idle, draining: c.draining, readUntil: c.readUntil, started: c.started, granted: c.granted,
	}
	n.req = Request{Method: bytes.Clone(c.req.Method), Peer: c.req.Peer, minor: c.req.minor, close: c.req.close}
	n.in = n.reader()
	n.in.buf = bytes.Clone(c.in.buf[c.in.r:c.in.w])
	n.in.w = len(n.in.buf)
	n.out.conn = n
	delete(c.s.conns, c) // its place among those that Shutdown waits for is the successor's
	c.s.conns[n] = struct{}{}
	return n
}

// Alarm calls f, on a goroutine of its own, when the handler has not returned at the time at, and when the server breaks
// connections off. There is one for a request.
func (r *Reply) Alarm(at time.Time, f func()) {
	r.alarmed = true
	r.conn.alarm.set(at, f)
}

// An alarm is a timer that is kept for a connection's requests. It is not stopped with each of them: when it fires it looks
// whether anybody is late, and waits for the one at hand if not. In the steady state a request costs no work on timers.
type alarm struct {
	mu    sync.Mutex
	timer *time.Timer // guarded by mu
	due   time.Time   // guarded by mu: when the timer fires; zero when it does not
	at    time.Time   // guarded by mu
	f     func()      // guarded by mu: nil when there is nothing to be called
}

func (a *alarm) set(at time.Time, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.f = at, f
	if a.due.IsZero() || at.Before(a.due) {
		a.arm()
	}
}

// arm has the timer fire at a.at. mu is held.
func (a *alarm) arm() {
	a.due = a.at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(a.at), a.fire)
		return
	}
	a.timer.Reset(time.Until(a.at))
}

func (a *alarm) fire() {
	a.mu.Lock()
	a.due = time.Time{}
	f := a.f
	if f != nil && time.Now().Before(a.at) {
		a.arm()
		f = nil
	}
	if f != nil {
		a.f = nil
	}
	a.mu.Unlock()
	if f != nil {
		f()
	}
}

// ring calls the function now, if there is one.
func (a *alarm) ring() {
	a.mu.Lock()
	f := a.f
	a.f = nil
	a.mu.Unlock()
	if f != nil {
		go f()
	}
}

func (a *alarm) clear() {
	a.mu.Lock()
	a.f = nil
	a.mu.Unlock()
}

func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.f = nil
	if a.timer != nil {
		a.timer.Stop()
	}
}
