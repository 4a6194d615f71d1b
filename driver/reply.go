package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"

	"toll/lab/record"
)

const (
	maxHead    = 64 << 10 // bytes of a reply's head, and of a chunked body's framing
	maxInterim = 5        // 1xx replies before the real one
	firstRead  = 4 << 10
)

// A Reply is one HTTP reply.
type Reply struct {
	Status int
	Body   []byte // the connection's own memory: valid until its next Do
	Close  bool   // the connection ends with this reply

	Media   string // application/json, text/event-stream, or "" for any other
	Session []byte // Mcp-Session-Id; as Body
}

// A replyReader reads HTTP/1.1 replies (RFC 9112). It refuses whatever two readers could take for two different replies: a
// length and a transfer coding together, two lengths, a bare CR or LF, a folded line, white space before a colon. It
// keeps its buffers, so that a reply no larger than the last costs no allocation.
type replyReader struct {
	src     io.Reader
	maxBody int64
	buf     []byte
	r, w    int    // buf[r:w] is read and not yet used
	body    []byte // a body that does not lie in buf as one piece
	session []byte // the last reply's Mcp-Session-Id

	keepsHead bool
	lastHead  []byte // of the last reply, when keepsHead is set
}

// bad makes the failure for a reply that does not parse.
func bad(format string, args ...any) error {
	return record.Fail(record.BadReply, fmt.Errorf(format, args...))
}

// next reads the reply to a request of the given method. Its error is a *record.Failure.
func (p *replyReader) next(method string) (Reply, error) {
	p.w = copy(p.buf, p.buf[p.r:p.w])
	p.r = 0
	var h head
	for interim := 0; ; interim++ {
		raw, err := p.head()
		if err != nil {
			return Reply{}, err
		}
		if h, err = parseHead(raw); err != nil {
			return Reply{}, err
		}
		if h.status >= 200 {
			if p.keepsHead {
				p.lastHead = append(p.lastHead[:0], raw...)
			}
			break
		}
		if h.status == 101 || h.chunked || h.length > 0 {
			return Reply{}, bad("interim reply %d that nobody asked for", h.status)
		}
		if interim == maxInterim {
			return Reply{}, bad("more than %d interim replies", maxInterim)
		}
	}
	return p.rest(method, h)
}

// rest reads the body that h announces.
func (p *replyReader) rest(method string, h head) (reply Reply, err error) {
	p.session = append(p.session[:0], h.session...) // reading the body moves what the head lies in
	reply = Reply{Status: h.status, Close: h.close, Media: h.media, Session: p.session}
	switch {
	case method == "HEAD" || h.status == 304:
	case h.status == 204:
		if h.chunked || h.length > 0 {
			err = bad("status 204 with a body")
		}
	case h.chunked:
		reply.Body, err = p.chunks()
	case h.length >= 0:
		reply.Body, err = p.sized(h.length)
	default:
		reply.Close = true
		reply.Body, err = p.untilClose()
	}
	return reply, err
}

// head returns the next head without the empty line that ends it.
func (p *replyReader) head() ([]byte, error) {
	for seen := 0; ; {
		unused := p.buf[p.r:p.w]
		if !startsReply(unused) {
			return nil, bad("no HTTP/1 reply: %q", excerpt(unused))
		}
		end := seen + bytes.Index(unused[seen:], []byte("\r\n\r\n"))
		if end >= seen && end <= maxHead {
			p.r += end + 4
			return unused[:end], nil
		}
		seen = max(0, len(unused)-3)
		if end > maxHead || seen > maxHead {
			return nil, bad("head of more than %d bytes", maxHead)
		}
		if err := p.fill(); err != nil {
			return nil, ioFailure(err, record.Closed, "reading the head")
		}
	}
}

// startsReply reports whether b can be the beginning of a reply.
func startsReply(b []byte) bool {
	const proto = "HTTP/1."
	n := min(len(b), len(proto))
	return string(b[:n]) == proto[:n]
}

// sized returns a body of n bytes.
func (p *replyReader) sized(n int64) ([]byte, error) {
	if n > p.maxBody {
		return nil, bad("body of %d bytes, more than %d", n, p.maxBody)
	}
	end := p.r + int(n)
	for p.w < end {
		if err := p.fill(); err != nil {
			return nil, ioFailure(err, record.ShortBody, "body of %d bytes ends after %d", n, p.w-p.r)
		}
	}
	body := p.buf[p.r:end]
	p.r = end
	return body, nil
}

// untilClose returns a body that ends with the connection (RFC 9112, 6.3 rule 8).
func (p *replyReader) untilClose() ([]byte, error) {
	for {
		err := p.fill()
		if int64(p.w-p.r) > p.maxBody {
			return nil, bad("body of more than %d bytes", p.maxBody)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, ioFailure(err, record.ShortBody, "body without a length")
		}
	}
	body := p.buf[p.r:p.w]
	p.r = p.w
	return body, nil
}

// chunks returns the data of a chunked body and reads past its trailers (RFC 9112, 7.1).
func (p *replyReader) chunks() ([]byte, error) {
	p.body = p.body[:0]
	for framing := 0; ; {
		line, err := p.line()
		if err != nil {
			return nil, err
		}
		n, err := chunkSize(line)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return p.body, p.trailers()
		}
		if framing += len(line) - chunkDigits(line); framing > maxHead {
			return nil, bad("chunk extensions of more than %d bytes", maxHead)
		}
		if n > p.maxBody-int64(len(p.body)) {
			return nil, bad("body of more than %d bytes", p.maxBody)
		}
		if err := p.chunk(int(n)); err != nil {
			return nil, err
		}
	}
}

// chunk appends n bytes of data to the body and reads past the line end behind them.
func (p *replyReader) chunk(n int) error {
	for n > 0 {
		if err := p.need(1); err != nil {
			return err
		}
		k := min(n, p.w-p.r)
		p.body = append(p.body, p.buf[p.r:p.r+k]...)
		p.r += k
		n -= k
	}
	if err := p.need(2); err != nil {
		return err
	}
	if string(p.buf[p.r:p.r+2]) != "\r\n" {
		return bad("chunk longer than its size")
	}
	p.r += 2
	return nil
}

// trailers reads past the fields behind the last chunk. They are checked for their shape and not kept.
func (p *replyReader) trailers() error {
	for size := 0; size <= maxHead; {
		line, err := p.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		if _, _, err := parseField(line); err != nil {
			return err
		}
		size += len(line)
	}
	return bad("trailers of more than %d bytes", maxHead)
}

// line returns the next line of a chunked body, without its end.
func (p *replyReader) line() ([]byte, error) {
	for seen := 0; ; {
		unused := p.buf[p.r:p.w]
		end := seen + bytes.IndexByte(unused[seen:], '\n')
		if end >= seen && end <= maxHead {
			line, crlf := bytes.CutSuffix(unused[:end], []byte("\r"))
			if !crlf || !printable(line) {
				return nil, bad("chunk line %q", excerpt(unused[:end]))
			}
			p.r += end + 1
			return line, nil
		}
		seen = len(unused)
		if end > maxHead || seen > maxHead {
			return nil, bad("chunk line of more than %d bytes", maxHead)
		}
		if err := p.need(seen + 1); err != nil {
			return nil, err
		}
	}
}

// need makes n bytes available within a chunked body.
func (p *replyReader) need(n int) error {
	for p.w-p.r < n {
		if p.r == p.w || p.w == len(p.buf) {
			p.w = copy(p.buf, p.buf[p.r:p.w])
			p.r = 0
		}
		if err := p.fill(); err != nil {
			return ioFailure(err, record.ShortBody, "chunked body ends after %d bytes of data", len(p.body))
		}
	}
	return nil
}

// fill reads once, behind what is there. Room doubles as bytes arrive, so that a peer cannot make us set aside more than
// about twice what it has sent.
func (p *replyReader) fill() error {
	if p.w == len(p.buf) {
		bigger := make([]byte, max(firstRead, 2*len(p.buf)))
		copy(bigger, p.buf[:p.w])
		p.buf = bigger
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

// ioFailure makes the failure for a read or write that broke off: a timeout, a TLS peer that refuses us (which with TLS 1.3
// shows on the first read, not in the handshake), or else kind.
func ioFailure(err error, kind, doing string, args ...any) error {
	if record.KindOf(err) == record.Timeout {
		kind = record.Timeout
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		kind = record.Connect
	}
	return record.Fail(kind, fmt.Errorf(doing+": %w", append(args, err)...))
}

// excerpt returns the beginning of b, for an error's text.
func excerpt(b []byte) []byte { return b[:min(len(b), 120)] }
