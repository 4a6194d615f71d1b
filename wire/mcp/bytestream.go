package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A peer is the client at the other end of a byte stream, such as a parent process: one message a line, both ways.
type peer struct {
	s    *Server
	sess *session       // what earlier revisions keep between requests, and what of any revision is in progress
	wg   sync.WaitGroup // of calls in progress
	over atomic.Bool    // nothing more is said
	room chan struct{}  // holds one for each call in progress

	mu     sync.Mutex
	w      io.Writer // guarded by mu
	buf    []byte    // guarded by mu
	failed error     // guarded by mu: of a write; then there is nobody left to write to
}

// ServeStream answers messages that come as lines on r with lines on w, until r ends, ctx does or the server is closed.
// Calls that are in progress when r ends are cancelled: nobody waits for their replies. It does not close r; when ctx ends
// it returns after the read in progress. It returns with an error, and leaves a goroutine behind, if a call does not end
// when it is cancelled.
func (s *Server) ServeStream(ctx context.Context, r io.Reader, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.ctx, cancel)()
	p := &peer{s: s, w: w, room: make(chan struct{}, s.cfg.MaxCalls), sess: &session{rev: rev20251125}}
	p.sess.level.Store(int32(levelOf([]byte("info"))))
	err := p.read(ctx, bufio.NewReaderSize(r, 64<<10))
	p.over.Store(true)
	cancel()
	p.sess.end()
	if stuck := p.wait(); stuck != nil {
		return stuck
	}
	if ctx.Err() != nil && err == nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// grace is how long calls may take to end once they are cancelled. A write to a client that does not read can't be broken
// off from here.
const grace = 2 * time.Second

func (p *peer) wait() error {
	ended := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(ended)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return errors.New("a call goes on after its client has ended: it does not heed its context, or the client does not read")
	}
}

func (p *peer) read(ctx context.Context, in *bufio.Reader) error {
	var line []byte
	for ctx.Err() == nil {
		var whole bool
		var err error
		if line, whole, err = readLine(in, line[:0], p.s.cfg.MaxBody); err != nil {
			return err
		}
		if !whole {
			e := invalidRequest("a message of more than " + strconv.Itoa(p.s.cfg.MaxBody) + " bytes")
			if err := p.send(appendError(nil, nil, e, p.sess.rev)); err != nil {
				return err
			}
			continue
		}
		said := bytes.TrimSpace(line)
		if len(said) == 0 {
			continue
		}
		if err := p.take(ctx, said); err != nil {
			return err
		}
	}
	return nil
}

// readLine reads a line, whole if it has at most that many bytes; of a longer one it drops the rest.
func readLine(in *bufio.Reader, line []byte, most int) (_ []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > most+1 {
			whole = false
		}
		if whole {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(line) > 0 || !whole):
			return line, whole, nil // the last line needs no end
		default:
			return nil, false, err
		}
	}
}

// take answers one line. The line's memory is used again, so what waits gets a copy.
func (p *peer) take(ctx context.Context, line []byte) error {
	if line[0] == '[' && p.sess.rev.batches() {
		return p.batch(ctx, bytes.Clone(line))
	}
	x := &exchange{s: p.s, rev: p.sess.rev, sess: p.sess, out: p}
	e := x.m.decode(line)
	if e == nil {
		e = p.place(x)
	}
	switch {
	case e != nil && x.m.method != nil && x.m.id == nil && e.Code == CodeInvalidParams:
		return nil // a notification has no answer, not even this one
	case e != nil:
		return p.send(appendError(nil, x.m.id, e, x.rev))
	case x.m.method == nil:
		p.sess.answered(&x.m)
		return nil
	case x.m.notification():
		p.notified(x)
		return nil
	case string(x.m.method) == "subscriptions/listen" && x.rev.modern(), p.s.waits(x):
		return p.start(ctx, bytes.Clone(line))
	}
	return p.answer(ctx, x)
}

// place finds out which revision a message is of: its own, or what initialize agreed on.
func (p *peer) place(x *exchange) *Error {
	if x.m.params.meta.version != nil && x.m.request() {
		if !revisionOf(x.m.params.meta.version).modern() {
			return unsupportedVersion(x.m.params.meta.version)
		}
		return x.modernMeta()
	}
	if x.m.request() && string(x.m.method) == "server/discover" {
		return x.modernMeta() // only a client of 2026-07-28 asks, so say what its request lacks
	}
	if x.m.request() && string(x.m.method) == "initialize" {
		if x.m.params.version == nil {
			return refusedParams("initialize wants a protocolVersion")
		}
		x.rev = negotiate(x.m.params.version)
		p.sess.rev = x.rev // read by this goroutine alone
		p.sess.introduced(x.m.params.capabilities)
		p.follow()
	}
	return nil
}

func (p *peer) notified(x *exchange) {
	if string(x.m.method) == "notifications/cancelled" && x.m.params.requestID != nil {
		p.sess.cancel(x.m.params.requestID)
	}
}

// answer answers a request on the goroutine that reads.
func (p *peer) answer(ctx context.Context, x *exchange) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var e *Error
	if p.buf, e = p.s.dispatch(ctx, x, p.buf[:0]); e != nil {
		p.buf = appendError(p.buf[:0], x.m.id, e, x.rev)
	}
	p.buf = append(p.buf, '\n')
	return p.write(p.buf)
}

// enter makes room for a call on a goroutine of its own, or says that there is none.
func (p *peer) enter() *Error {
	select {
	case p.room <- struct{}{}:
		return nil
	default:
		return &Error{Code: CodeInternalError, Message: fmt.Sprintf("%d calls are in progress; try again when one has ended", cap(p.room))}
	}
}

// start answers a request that may take a while on a goroutine of its own: the one that reads must go on, for a
// cancellation or an answer to a question.
func (p *peer) start(ctx context.Context, line []byte) error {
	x := &exchange{s: p.s, rev: p.sess.rev, sess: p.sess, out: p}
	if e := x.m.decode(line); e != nil {
		return p.send(appendError(nil, x.m.id, e, x.rev))
	}
	if e := p.place(x); e != nil {
		return p.send(appendError(nil, x.m.id, e, x.rev))
	}
	if e := p.enter(); e != nil {
		return p.send(appendError(nil, x.m.id, e, x.rev))
	}
	ctx, cancel := context.WithCancel(ctx)
	over := p.sess.started(x.m.id, cancel)
	p.wg.Go(func() {
		defer func() { <-p.room }()
		defer cancel()
		defer over()
		if string(x.m.method) == "subscriptions/listen" {
			p.listen(ctx, x)
			return
		}
		body, e := p.s.dispatch(ctx, x, nil)
		switch {
		case ctx.Err() != nil: // cancelled: nothing more is said of it
		case e != nil:
			p.send(appendError(nil, x.m.id, e, x.rev))
		default:
			p.send(body)
		}
	})
	return nil
}
