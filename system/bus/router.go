package bus

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
	"toll/wire/mux"
)

// opAttach makes the connection that it comes on one on which the router asks: its body is the names, with their epochs,
// that whoever connected answers for.
const opAttach = reserved + "attach"

// A Router is a process between callers and workers. Both connect to it; it sends each request to the worker that has
// attached with its recipient's name, under the highest epoch.
type Router struct {
	cfg    Config
	server *Server

	mu      sync.Mutex
	routes  map[string]route   // guarded by mu
	workers map[*mux.Conn]bool // guarded by mu
	closed  bool               // guarded by mu
	wg      sync.WaitGroup     // of watchers of workers; added to under mu
}

type route struct {
	conn   *mux.Conn
	epoch  uint64
	offset int64 // of the worker's clock, ahead of ours
}

// NewRouter makes a router.
func NewRouter(cfg Config) *Router {
	r := &Router{cfg: cfg.withDefaults(), routes: make(map[string]route), workers: make(map[*mux.Conn]bool)}
	responder := NewResponder(nil, cfg)
	r.server = NewServer(responder, false)
	r.server.relay = r.relay
	r.server.attach = r.attach
	return r
}

// Serve takes callers and workers on l, which is the router's from now on, until Shutdown.
func (r *Router) Serve(l net.Listener) error { return r.server.Serve(l) }

// Shutdown lets the calls in flight finish until ctx ends.
func (r *Router) Shutdown(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	r.mu.Lock()
	r.closed = true
	workers := r.workers
	r.workers = nil
	r.mu.Unlock()
	for c := range workers {
		c.Close()
	}
	r.wg.Wait()
	return err
}

// relay answers a request by asking its worker.
func (r *Router) relay(dst, b []byte) ([]byte, error) {
	var q frame.Received
	if err := q.Parse(b); err != nil {
		return dst, err
	}
	if len(q.To) == 0 {
		return r.server.responder.respond(dst, b)
	}
	r.mu.Lock()
	to, ok := r.routes[string(q.To)]
	r.mu.Unlock()
	switch {
	case !ok:
		return frame.AppendFailure(dst, q.ID, uint8(envelope.NotFound), "no worker has attached with this name"), nil
	case q.Epoch != 0 && q.Epoch != to.epoch:
		return frame.AppendFailure(dst, q.ID, uint8(envelope.NotFound), fmt.Sprintf("epoch %d was meant, this is %d", q.Epoch, to.epoch)), nil
	}
	ctx := context.Background()
	x := relayed{id: q.ID, request: b, reply: dst}
	if q.Deadline != 0 {
		left := time.Duration(q.Deadline-r.server.responder.clock.now()) * time.Microsecond
		binary.LittleEndian.PutUint64(b[deadlineAt:], uint64(q.Deadline+to.offset))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	at := len(dst)
	if err := to.conn.Call(ctx, &x); err != nil {
		code := envelope.Unreachable
		if errors.Is(err, context.DeadlineExceeded) {
			code = envelope.Deadline
		} else if errors.Is(err, mux.ErrBusy) {
			code = envelope.MailboxFull
		}
		return frame.AppendFailure(dst[:at], q.ID, uint8(code), "router: "+err.Error()), nil
	}
	return x.reply, nil
}

// deadlineAt is where a request's frame has its deadline.
const deadlineAt = 20

// relayed is a request on its way to a worker and back.
type relayed struct {
	id      uint32 // of the caller's
	request []byte
	reply   []byte
}

// AppendRequest appends the request under the router's own number.
func (x *relayed) AppendRequest(dst []byte, id uint32) []byte {
	at := len(dst)
	dst = append(dst, x.request...)
	frame.SetID(dst[at:], id)
	return dst
}

// Reply takes the reply and gives it the caller's number.
func (x *relayed) Reply(b []byte) error {
	if _, _, _, err := frame.ParseReply(b); err != nil {
		return err
	}
	at := len(x.reply)
	x.reply = append(x.reply, b...)
	frame.SetID(x.reply[at:], x.id)
	return nil
}

// attach makes nc, on which q has come, a worker's.
func (r *Router) attach(nc net.Conn, q *frame.Received) (kept bool) {
	names, at, err := parseAttach(q.Body)
	if err != nil {
		nc.Write(frame.AppendFailure(nil, q.ID, uint8(envelope.Failed), err.Error()))
		return false
	}
	// What took the worker's clock to come here makes it look behind, until it is asked.
	offset := at - r.server.responder.clock.now()
	nc.SetWriteDeadline(time.Now().Add(r.cfg.Write))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	// Nobody finds the route, and sends on it, before the answer has left.
	if _, err := nc.Write(frame.AppendReply(nil, q.ID, nil)); err != nil {
		return false
	}
	conn := mux.New(nc, frame.Framing{Max: r.cfg.MaxFrame}, mux.Config{InFlight: r.cfg.InFlight, WriteTimeout: r.cfg.Write, IdleRead: r.cfg.Heartbeat})
	r.workers[conn] = true
	r.add(conn, names, offset)
	r.wg.Go(func() { r.keep(conn, names) })
	return true
}

// keep routes names to a worker for as long as it lives.
func (r *Router) keep(conn *mux.Conn, names []Name) {
	d := &Direct{conn: conn, clock: r.server.responder.clock}
	defer d.Close()
	defer r.remove(conn)
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Write)
	offset, err := probe(ctx, d.call, d.clock, probes)
	cancel()
	if err != nil {
		return
	}
	r.mu.Lock()
	r.add(conn, names, offset)
	r.mu.Unlock()
	if r.cfg.Heartbeat > 0 {
		d.beat.Go(func() { d.heartbeat(r.cfg.Heartbeat) })
	}
	<-conn.Done()
}

// add routes names to a worker, but for those that another has under a higher epoch. mu is held.
func (r *Router) add(conn *mux.Conn, names []Name, offset int64) {
	for _, n := range names {
		if old, ok := r.routes[n.Name]; !ok || n.Epoch >= old.epoch {
			r.routes[n.Name] = route{conn, n.Epoch, offset}
		}
	}
}

func (r *Router) remove(conn *mux.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.workers, conn)
	for name, to := range r.routes {
		if to.conn == conn {
			delete(r.routes, name)
		}
	}
}

// A Name is a name with the epoch under which it is claimed.
type Name struct {
	Name  string
	Epoch uint64
}

// appendAttach appends what a worker says to a router: its clock, and its names with their epochs.
func appendAttach(dst []byte, at int64, names []Name) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at))
	for _, n := range names {
		dst = append(append(dst, byte(len(n.Name))), n.Name...)
		dst = binary.LittleEndian.AppendUint64(dst, n.Epoch)
	}
	return dst
}

var errNames = errors.New("bus: a list of names is malformed")

func parseAttach(b []byte) (names []Name, at int64, err error) {
	if len(b) < 8 {
		return nil, 0, errNames
	}
	at, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	for len(b) > 0 {
		n := 1 + int(b[0])
		if n == 1 || len(b) < n+8 {
			return nil, 0, errNames
		}
		names = append(names, Name{string(b[1:n]), binary.LittleEndian.Uint64(b[n:])})
		b = b[n+8:]
	}
	return names, at, nil
}

// Attach connects to a router, over TLS unless secure is nil, and answers there for names until ctx ends or the connection
// does, and returns why. ready is called when the router knows us; nil for none.
func (s *Server) Attach(ctx context.Context, addr string, secure *tls.Config, names []Name, ready func()) error {
	nc, err := dial(ctx, addr, secure, s.responder.cfg)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	defer nc.Close()
	if err := s.introduce(nc, names); err != nil {
		return fmt.Errorf("attaching to the router at %s: %w", addr, err)
	}
	if ready != nil {
		ready()
	}
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return errStopped
	}
	c := new(serverConn)
	s.conns[nc] = c
	s.all.Add(1)
	s.mu.Unlock()
	defer s.all.Done()
	err = s.answerOn(nc, c)
	s.mu.Lock()
	delete(s.conns, nc)
	s.mu.Unlock()
	return err
}

func (s *Server) introduce(nc net.Conn, names []Name) error {
	q := frame.Request{Header: frame.Header{Kind: frame.Ask}, Op: opAttach, Body: appendAttach(nil, s.responder.clock.now(), names)}
	nc.SetDeadline(time.Now().Add(s.responder.cfg.Write))
	if _, err := nc.Write(q.Append(nil, 1)); err != nil {
		return err
	}
	b, err := readFrame(nc, s.responder.cfg.MaxFrame)
	if err != nil {
		return err
	}
	if body, _, failed, err := frame.ParseReply(b); err != nil || failed {
		return errors.Join(err, fmt.Errorf("refused: %s", body))
	}
	return nc.SetDeadline(time.Time{})
}

// Stay attaches and attaches again, after pauses that grow to a second, until ctx ends or the router refuses our token, which
// it returns as ErrRefused.
func (s *Server) Stay(ctx context.Context, addr string, secure *tls.Config, names []Name, ready func()) error {
	wait := 10 * time.Millisecond
	for ctx.Err() == nil {
		if err := s.Attach(ctx, addr, secure, names, func() {
			wait = 10 * time.Millisecond
			if ready != nil {
				ready()
			}
		}); errors.Is(err, errStopped) {
			return nil
		} else if errors.Is(err, ErrRefused) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, time.Second)
	}
	return nil
}

// readFrame reads one frame and not a byte more.
func readFrame(src io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(src, head[:]); err != nil {
		return nil, err
	}
	n, err := frame.Framing{Max: most}.Length(head[:])
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(n, 64<<10))
	copy(b, head[:])
	for at := len(head); ; {
		if _, err := io.ReadFull(src, b[at:]); err != nil {
			return nil, err
		}
		if at = len(b); at == n {
			return b, nil
		}
		b = append(b, make([]byte, min(n-at, at))...)
	}
}

// begun is a connection whose first frame was read.
type begun struct {
	net.Conn
	first []byte
}

// Read returns the first frame first.
func (c *begun) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}
