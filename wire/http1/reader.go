package http1

import (
	"bytes"
	"errors"
	"io"
)

// A reader reads requests from a connection into one buffer that it keeps.
type reader struct {
	src              io.Reader
	maxHead, maxBody int
	buf              []byte
	r, w             int // buf[r:w] is read and not yet used
	body             []byte
	start            int // of the head of the request that was read last

	proceed func() error // writes 100 Continue
	begun   func()       // called before a second read for the same head: now the client is slow, not idle
	bodied  func()       // called before a read for a body
}

// errIdle is the end of a connection on which no further request began.
var errIdle = errors.New("no further request")

// waiting reports whether the next request has begun to arrive.
func (p *reader) waiting() bool { return p.w > p.r }

// fill reads once more, growing the buffer up to its bound of a head and a read ahead.
func (p *reader) fill() error {
	if p.w == len(p.buf) {
		if p.r > 0 {
			p.w = copy(p.buf, p.buf[p.r:p.w])
			p.r = 0
		} else {
			p.buf = append(p.buf, make([]byte, max(len(p.buf), 4096))...)
		}
	}
	n, err := p.src.Read(p.buf[p.w:])
	p.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// next reads one request into req.
func (p *reader) next(req *Request) error {
	for !p.waiting() {
		p.r, p.w = 0, 0
		if err := p.fill(); err != nil {
			return errors.Join(errIdle, err)
		}
	}
	head, err := p.head()
	if err != nil {
		return err
	}
	if err := req.parse(head); err != nil {
		return err
	}
	return p.readBody(req)
}

// unread returns the request that was read last, which had no body, and all behind it.
func (p *reader) unread() []byte { return p.buf[p.start:p.w] }

// head returns the next head, up to and with the CRLF of its last line, and moves behind the empty line. One empty line
// before a request is skipped (RFC 9112 §2.2).
func (p *reader) head() ([]byte, error) {
	if err := p.skipEmptyLine(); err != nil {
		return nil, err
	}
	for seen := 0; ; {
		p.start = p.r
		b := p.buf[p.r:p.w]
		if i := bytes.Index(b[max(seen-3, 0):], []byte("\r\n\r\n")); i >= 0 {
			end := max(seen-3, 0) + i
			if end > p.maxHead {
				return nil, refuse(431, "head of more than %d bytes", p.maxHead)
			}
			p.r += end + 4
			return b[:end+2], nil
		}
		// An empty line that ends with a bare LF would never be found above; the client would wait for ever.
		if i := bytes.Index(b[max(seen-3, 0):], []byte("\n\n")); i >= 0 {
			return nil, refuse(400, "a line that does not end with CRLF")
		}
		if len(b) > p.maxHead {
			return nil, refuse(431, "head of more than %d bytes", p.maxHead)
		}
		seen = len(b)
		p.begun()
		if err := p.fill(); err != nil {
			return nil, err
		}
	}
}

func (p *reader) skipEmptyLine() error {
	for p.w-p.r < 2 {
		if p.buf[p.r] != '\r' {
			return nil
		}
		p.begun()
		if err := p.fill(); err != nil {
			return err
		}
	}
	if p.buf[p.r] == '\r' && p.buf[p.r+1] == '\n' {
		p.r += 2
	}
	for p.w == p.r {
		p.begun()
		if err := p.fill(); err != nil {
			return err
		}
	}
	return nil
}

// readBody reads the body that req announces. The head must not move meanwhile: req points into it. So a body that has
// not arrived with its head goes to a buffer of its own.
func (p *reader) readBody(req *Request) error {
	if req.length > int64(p.maxBody) {
		return refuse(413, "body of more than %d bytes", p.maxBody)
	}
	if req.expects && p.w == p.r && (req.chunked || req.length > 0) {
		if err := p.proceed(); err != nil {
			return err
		}
	}
	switch {
	case req.chunked:
		p.bodied()
		return p.chunked(req)
	case req.length <= 0:
		if req.length == 0 {
			req.Body = p.body[:0]
		}
		return nil
	case int64(p.w-p.r) >= req.length:
		req.Body = p.buf[p.r : p.r+int(req.length)]
		p.r += int(req.length)
		return nil
	}
	n := int(req.length)
	if cap(p.body) < n {
		p.body = make([]byte, n)
	}
	p.body = p.body[:n]
	have := copy(p.body, p.buf[p.r:p.w])
	p.r += have
	p.bodied()
	if _, err := io.ReadFull(p.src, p.body[have:]); err != nil {
		return err
	}
	req.Body = p.body
	return nil
}
