package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"toll/wire/frame"
	"toll/wire/zmtp"
)

// ZMTP is a link between a DEALER and a worker's ROUTER. A message is one frame, so any ZeroMQ library can take part.
type ZMTP struct {
	socket  *zmtp.Socket
	pending *pending
	clock   *clock
	offset  int64
	buffers sync.Pool // of *[]byte
	once    sync.Once
	done    chan struct{}
}

// socket is what the bus lays down of a socket.
func (c Config) socket(t zmtp.Type, plain *zmtp.Plain) zmtp.Config {
	return zmtp.Config{Type: t, Plain: c.plain(plain), MaxFrame: c.MaxFrame, MaxMessage: c.MaxFrame + 1024, Heartbeat: c.Heartbeat, WriteTimeout: c.Write}
}

// DialZMTP connects to a worker's ROUTER and returns when it answers. The link ends with its connection.
func DialZMTP(ctx context.Context, addr string, plain *zmtp.Plain, cfg Config) (*ZMTP, error) {
	cfg = cfg.withDefaults()
	l := &ZMTP{pending: newPending(cfg.InFlight), clock: newClock(), done: make(chan struct{})}
	failed := make(chan error, 1)
	sc := cfg.socket(zmtp.Dealer, plain)
	sc.Handle = func(_ *zmtp.Peer, m zmtp.Message) { l.pending.resolve(m[len(m)-1]) }
	sc.Closed = func(_ *zmtp.Peer, err error) { l.end(err) }
	sc.Failed = func(_ string, err error) {
		select {
		case failed <- err:
		default:
		}
	}
	var err error
	if l.socket, err = zmtp.New(sc); err != nil {
		return nil, err
	}
	if err = l.open(ctx, addr, failed); err != nil {
		l.Close()
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	return l, nil
}

// open waits for the connection or for the first attempt to fail.
func (l *ZMTP) open(ctx context.Context, addr string, failed <-chan error) error {
	if err := l.socket.Connect(addr); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		select {
		case err := <-failed:
			cancel(err)
		case <-stop:
		}
	})
	err := l.socket.Wait(ctx, 1)
	if err == nil {
		l.offset, err = probe(ctx, l.call, l.clock, probes)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (l *ZMTP) call(ctx context.Context, c *Call) error {
	id, err := l.pending.open(ctx, c)
	if err != nil {
		return err
	}
	buf, _ := l.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = c.AppendRequest((*buf)[:0], id)
	err = l.socket.Send(ctx, *buf)
	l.buffers.Put(buf)
	if err != nil {
		l.pending.abandon(id)
		return err
	}
	return l.pending.wait(ctx, id)
}

// Call sends c and waits for its reply or ctx's end.
func (l *ZMTP) Call(ctx context.Context, c *Call) error {
	if err := c.prepare(ctx, l.clock, l.offset); err != nil {
		return err
	}
	return c.outcome(l.call(ctx, c))
}

// Tell sends r and returns when the other end has taken it or has said why not.
func (l *ZMTP) Tell(ctx context.Context, r *frame.Request) error {
	c := Call{Request: *r}
	if err := c.prepare(ctx, l.clock, l.offset); err != nil {
		return err
	}
	c.Kind = frame.Tell
	return c.outcome(l.call(ctx, &c))
}

func (l *ZMTP) end(err error) {
	l.once.Do(func() {
		l.pending.fail(err, true)
		close(l.done)
	})
}

// Done is closed when the link has ended.
func (l *ZMTP) Done() <-chan struct{} { return l.done }

// Close ends the link; calls in flight fail.
func (l *ZMTP) Close() error {
	l.end(zmtp.ErrClosed)
	return l.socket.Close()
}

// A ZMTPServer answers on a ROUTER.
type ZMTPServer struct {
	responder *Responder
	socket    *zmtp.Socket
	jobs      *jobs
}

// NewZMTPServer makes a server that answers with r. quick says that its handler waits for nothing.
func NewZMTPServer(r *Responder, quick bool, plain *zmtp.Plain) (*ZMTPServer, error) {
	s := &ZMTPServer{responder: r, jobs: newJobs(r, quick)}
	sc := r.cfg.socket(zmtp.Router, plain)
	sc.Handle = s.handle
	var err error
	s.socket, err = zmtp.New(sc)
	return s, err
}

// Serve answers on l, which is the server's from now on, until Shutdown.
func (s *ZMTPServer) Serve(l net.Listener) error { return s.socket.Serve(l) }

// handle answers a message whose last frame is a request; those before it, such as an empty one, go back with the reply.
func (s *ZMTPServer) handle(p *zmtp.Peer, m zmtp.Message) {
	if len(m) == 1 && s.jobs.quick {
		s.jobs.inline(m[0], func(reply []byte) { p.Queue(reply) })
		return
	}
	head := make(zmtp.Message, len(m)-1, len(m))
	for i, f := range m[:len(m)-1] {
		head[i] = append([]byte(nil), f...)
	}
	s.jobs.run(m[len(m)-1], func(reply []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), s.responder.cfg.Write)
		defer cancel()
		p.Send(ctx, append(head, reply)...)
	})
}

// Shutdown lets what is being answered be answered until ctx ends, then closes the socket. Requests that come meanwhile are
// refused.
func (s *ZMTPServer) Shutdown(ctx context.Context) error {
	err := s.jobs.drain(ctx)
	return errors.Join(err, s.socket.Close())
}
