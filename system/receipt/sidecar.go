package receipt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"toll/wire/mux"
)

// SidecarConfig says how a sidecar works.
type SidecarConfig struct {
	Name  string // of the gateway that it signs for
	Key   Key
	Dir   string // where it remembers what it signed; empty remembers for this process' life only
	Adopt bool   // take over a log that it has not seen from the start: its size and root are believed once
	UID   int    // the user that may ask, where the system tells; 0 is this process' own

	files files // nil is the machine's
}

// A SidecarSigner is the side that holds the key: it signs the checkpoints of one gateway's log, for whom the log's rules
// hold: entries of the closed schema, of this gateway and key, in sequence, that give the root; one root for each size; and
// no size left out. It is a [Notary], and serves others over a socket.
type SidecarSigner struct {
	cfg SidecarConfig

	mu     sync.Mutex
	guard  *guard // guarded by mu, as the following
	adopt  bool
	broken error

	conns  sync.WaitGroup
	lock   sync.Mutex
	closed bool // guarded by lock, as the following
	open   map[net.Conn]struct{}
	on     net.Listener
}

// NewSidecar opens what a sidecar remembers.
func NewSidecar(cfg SidecarConfig) (*SidecarSigner, error) {
	if why := badGateway(cfg.Name); why != "" {
		return nil, fmt.Errorf("sidecar: gateway %q %s", cfg.Name, why)
	}
	if cfg.Key.Signer == nil {
		return nil, errors.New("sidecar: needs the private key")
	}
	if cfg.files == nil {
		cfg.files = osFiles{}
	}
	g, err := openGuard(cfg.files, cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	return &SidecarSigner{cfg: cfg, guard: g, adopt: cfg.Adopt, open: make(map[net.Conn]struct{})}, nil
}

// Notarize checks a group and signs its checkpoint. Asked again, it gives the same bytes.
func (s *SidecarSigner) Notarize(_ context.Context, f *Frozen) ([]byte, error) {
	g := &group{form: formBatch, envelopes: f.Envelopes}
	if _, ok := g.before.read(f.First, f.Peaks); !ok {
		return nil, refuse(Invalid, "the peaks of %d leaves are not all there", f.First)
	}
	g.build()
	if g.root != f.Root {
		return nil, refuse(Invalid, "the entries from seq %d on do not give the root", f.First)
	}
	return s.notarize(g)
}

func (s *SidecarSigner) notarize(g *group) ([]byte, error) {
	if err := s.check(g); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, refuse(Unavailable, "the sidecar's memory can't be written any more: %v", s.broken)
	}
	if err := s.admit(g); err != nil {
		return nil, err
	}
	return s.cfg.Key.sign(appendCheckpoint(nil, s.cfg.Name, g.size(), g.root))
}

// check reads the entries.
func (s *SidecarSigner) check(g *group) error {
	for i, raw := range g.envelopes {
		e, err := parseEnvelope(raw)
		if err != nil {
			return refuse(Invalid, "seq %d: %v", g.before.size+uint64(i), err)
		}
		again, err := e.MarshalJSON()
		if err != nil || string(again) != string(raw) || e.Type != typeArrival || e.Alg != algorithm || e.Gateway != s.cfg.Name ||
			e.KID != s.cfg.Key.KID || e.Seq != int64(g.before.size)+int64(i) {
			return refuse(Invalid, "seq %d: not an arrival of gateway %s, of this key, at this place", g.before.size+uint64(i), s.cfg.Name)
		}
	}
	return nil
}

// admit holds a group against what was signed before, and remembers it. The caller holds mu.
func (s *SidecarSigner) admit(g *group) error {
	first, size := g.before.size, g.size()
	if s.cfg.Dir == "" && first == 0 && s.guard.roots[size] != g.root {
		s.guard = &guard{roots: make(map[uint64]Hash)} // a gateway that keeps nothing began anew
	}
	if root, signed := s.guard.roots[size]; signed {
		if root != g.root {
			return refuse(Conflict, "size %d was signed with the root %s", size, root)
		}
		return nil
	}
	if s.adopt && s.guard.size == 0 {
		s.guard.size, s.guard.root = first, g.before.root()
	}
	s.adopt = false
	switch {
	case first != s.guard.size:
		return refuse(Conflict, "the entries start at %d, what was signed ends at %d", first, s.guard.size)
	case first > 0 && g.before.root() != s.guard.root:
		return refuse(Conflict, "at size %d the root %s was signed, this log's is another", first, s.guard.root)
	}
	if err := s.guard.add(size, g.root); err != nil {
		s.broken = err
		return refuse(Unavailable, "the sidecar's memory can't be written: %v", err)
	}
	return nil
}

// Serve answers gateways on a listener until Close.
func (s *SidecarSigner) Serve(l net.Listener) error {
	s.lock.Lock()
	if s.closed {
		s.lock.Unlock()
		return errors.Join(net.ErrClosed, l.Close())
	}
	s.on = l
	s.lock.Unlock()
	for {
		nc, err := l.Accept()
		s.lock.Lock()
		closed := s.closed
		if err == nil && !closed {
			s.open[nc] = struct{}{}
			s.conns.Go(func() { s.serve(nc) })
		}
		s.lock.Unlock()
		switch {
		case closed && err == nil:
			nc.Close()
			return nil
		case closed:
			return nil
		case err != nil:
			return err
		}
	}
}

// maxAsks bounds the groups that one connection may have in hand.
const maxAsks = 4

func (s *SidecarSigner) serve(nc net.Conn) {
	defer func() {
		nc.Close()
		s.lock.Lock()
		delete(s.open, nc)
		s.lock.Unlock()
	}()
	if err := checkPeer(nc, s.cfg.UID); err != nil {
		return
	}
	server := mux.Server{Framing: framing{maxFrame}, InFlight: maxAsks, Handle: s.handle}
	server.Serve(nc)
}

func (s *SidecarSigner) handle(dst, frame []byte) ([]byte, error) {
	if frame[8] != opNotarize {
		return appendReply(dst, frame, http.StatusBadRequest, []byte("a sidecar only notarizes")), nil
	}
	g, err := readGroup(frame[frameHead:])
	var sig []byte
	if err == nil && g.form != formBatch {
		err = errors.New("only groups of form batch are notarized")
	}
	if err != nil {
		err = refuse(Malformed, "%v", err)
	} else {
		sig, err = s.notarize(g)
	}
	if err != nil {
		status := http.StatusServiceUnavailable
		var r *Refusal
		if errors.As(err, &r) {
			status = r.Status()
		}
		return appendReply(dst, frame, status, []byte(err.Error())), nil
	}
	return appendReply(dst, frame, http.StatusOK, sig), nil
}

// Close ends the connections and what the sidecar keeps.
func (s *SidecarSigner) Close() error {
	s.lock.Lock()
	if s.closed {
		s.lock.Unlock()
		return nil
	}
	s.closed = true
	if s.on != nil {
		s.on.Close()
	}
	for nc := range s.open {
		nc.Close()
	}
	s.lock.Unlock()
	s.conns.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guard.close()
}

// A SidecarClient is a [Notary] in another process, reached over its unix socket. The first call dials, and every call after
// a broken connection does again. It must be closed.
type SidecarClient struct {
	path string

	mu   sync.Mutex
	conn *mux.Conn // guarded by mu
}

// DialSidecar makes a client; the sidecar need not be there yet.
func DialSidecar(path string) *SidecarClient { return &SidecarClient{path: path} }

// Notarize asks the sidecar.
func (c *SidecarClient) Notarize(ctx context.Context, f *Frozen) ([]byte, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	g := &group{form: formBatch, envelopes: f.Envelopes, root: f.Root}
	if _, ok := g.before.read(f.First, f.Peaks); !ok {
		return nil, errors.New("the peaks are not all there")
	}
	x := &exchange{op: opNotarize, body: appendGroup(nil, g)[recordHead:]}
	if err := conn.Call(ctx, x); err != nil {
		c.drop(conn)
		return nil, fmt.Errorf("sidecar %s: %w", c.path, err)
	}
	if x.status != http.StatusOK {
		return nil, fmt.Errorf("sidecar %s: %d %s", c.path, x.status, x.reply)
	}
	return x.reply, nil
}

func (c *SidecarClient) connection(ctx context.Context) (*mux.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.conn.Err() == nil {
		return c.conn, nil
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	nc, err := d.DialContext(ctx, "unix", c.path)
	if err != nil {
		return nil, fmt.Errorf("sidecar %s: %w; is `toll receipt sidecar` running?", c.path, err)
	}
	c.conn = mux.New(nc, framing{maxFrame}, mux.Config{InFlight: maxAsks})
	return c.conn, nil
}

func (c *SidecarClient) drop(conn *mux.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		conn.Close()
		c.conn = nil
	}
}

// Close ends the connection.
func (c *SidecarClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}
