package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// follow begins to tell a client of an earlier revision of changes.
func (p *peer) follow() {
	p.sess.mu.Lock()
	began := p.sess.box != nil
	p.sess.mu.Unlock()
	changes := p.sess.mailbox()
	if began || changes == nil {
		return
	}
	p.s.sessions.follow(p.sess)
	p.wg.Go(func() {
		p.s.pump(context.Background(), changes, nil, p.send, func() error { return nil })
		p.s.sessions.unfollow(p.sess)
	})
}

func (p *peer) listen(ctx context.Context, x *exchange) {
	l, e := p.s.listen(x)
	if e != nil {
		p.send(appendError(nil, x.m.id, e, x.rev))
		return
	}
	defer p.s.streams.leave(l)
	if p.send(l.acknowledged()) != nil || !p.s.pump(ctx, l.box, l, p.send, func() error { return nil }) {
		return
	}
	for _, msg := range p.s.goodbye(l) {
		p.send(msg)
	}
}

// batch answers the messages of a batch, one after the other, with one line.
func (p *peer) batch(ctx context.Context, line []byte) error {
	parts, e := split(line, p.s.cfg.MaxBatch)
	if e == nil {
		e = p.enter()
	}
	if e != nil {
		return p.send(appendError(nil, nil, e, p.sess.rev))
	}
	rev := p.sess.rev // the session's is the reading goroutine's to change
	p.wg.Go(func() {
		defer func() { <-p.room }()
		all := []byte{'['}
		for _, part := range parts {
			all = p.batched(ctx, part, rev, all)
		}
		if len(all) > 1 {
			p.send(append(all, ']'))
		}
	})
	return nil
}

// batched answers one message of a batch, appending to the reply if it has an answer.
func (p *peer) batched(ctx context.Context, part []byte, rev revision, all []byte) []byte {
	x := &exchange{s: p.s, rev: rev, sess: p.sess, out: p}
	e := x.m.decode(part)
	if e == nil && string(x.m.method) == "initialize" {
		e = invalidRequest("initialize within a batch")
	}
	switch {
	case e == nil && x.m.method == nil:
		p.sess.answered(&x.m)
		return all
	case e == nil && x.m.notification():
		p.notified(x)
		return all
	}
	if len(all) > 1 {
		all = append(all, ',')
	}
	if e == nil {
		all, e = p.s.dispatch(ctx, x, all)
	}
	if e != nil {
		all = appendError(all, x.m.id, e, x.rev)
	}
	return all
}

// send writes one message as a line.
func (p *peer) send(msg []byte) error {
	if bytes.IndexByte(msg, '\n') >= 0 {
		msg = compact(json.RawMessage(msg))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf = append(append(p.buf[:0], msg...), '\n')
	return p.write(p.buf)
}

// write writes whole lines. p.mu is held.
func (p *peer) write(lines []byte) error {
	if p.failed != nil || p.over.Load() {
		return p.failed
	}
	if _, err := p.w.Write(lines); err != nil {
		p.failed = fmt.Errorf("write to the client: %w", err)
	}
	return p.failed
}
