package http1

import (
	"cmp"
	"io"
)

// maxChunkLine bounds a chunk's size line, its extensions included, and maxTrailer the lines behind the last chunk.
const (
	maxChunkLine = 256
	maxTrailer   = 8 << 10
)

// A tail reads what follows a head: first what arrived with it, then the connection. It never moves the buffer that the
// request points into.
type tail struct {
	p       *reader
	scratch []byte // read from the connection and not yet used
	store   [4096]byte
}

func (t *tail) byte() (byte, error) {
	if t.p.r < t.p.w {
		c := t.p.buf[t.p.r]
		t.p.r++
		return c, nil
	}
	if len(t.scratch) == 0 {
		n, err := t.p.src.Read(t.store[:])
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return 0, err
		}
		t.scratch = t.store[:n]
	}
	c := t.scratch[0]
	t.scratch = t.scratch[1:]
	return c, nil
}

// into appends n bytes to b.
func (t *tail) into(b []byte, n int) ([]byte, error) {
	for n > 0 {
		switch {
		case t.p.r < t.p.w:
			m := min(n, t.p.w-t.p.r)
			b = append(b, t.p.buf[t.p.r:t.p.r+m]...)
			t.p.r += m
			n -= m
		case len(t.scratch) > 0:
			m := min(n, len(t.scratch))
			b = append(b, t.scratch[:m]...)
			t.scratch = t.scratch[m:]
			n -= m
		default:
			m, err := t.p.src.Read(t.store[:])
			if m == 0 {
				if err == nil {
					err = io.ErrNoProgress
				}
				return b, err
			}
			t.scratch = t.store[:m]
		}
	}
	return b, nil
}

// line reads up to CRLF, at most limit bytes.
func (t *tail) line(buf []byte, limit int) ([]byte, error) {
	buf = buf[:0]
	for {
		c, err := t.byte()
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			return nil, refuse(400, "a line that does not end with CRLF")
		}
		if c == '\r' {
			if c, err = t.byte(); err != nil {
				return nil, err
			}
			if c != '\n' {
				return nil, refuse(400, "a CR within a line")
			}
			return buf, nil
		}
		if len(buf) == limit {
			return nil, refuse(400, "a chunk's line of more than %d bytes", limit)
		}
		buf = append(buf, c)
	}
}

// chunked reads a chunked body (RFC 9112 §7.1) whole; trailers are read, held to the form of header lines and dropped.
func (p *reader) chunked(req *Request) error {
	t := &tail{p: p}
	body := p.body[:0]
	var space [maxChunkLine]byte
	for {
		line, err := t.line(space[:0], maxChunkLine)
		if err != nil {
			return err
		}
		size, ok := chunkSize(line)
		if !ok {
			return refuse(400, "malformed chunk size")
		}
		if size > int64(p.maxBody-len(body)) {
			return refuse(413, "body of more than %d bytes", p.maxBody)
		}
		if size == 0 {
			break
		}
		if body, err = t.into(body, int(size)); err != nil {
			return err
		}
		if end, err := t.line(space[:0], maxChunkLine); err != nil || len(end) > 0 {
			return cmp.Or(err, refuse(400, "a chunk longer than its size"))
		}
	}
	for seen := 0; ; {
		line, err := t.line(space[:0], maxChunkLine)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		if seen += len(line); seen > maxTrailer {
			return refuse(431, "trailers of more than %d bytes", maxTrailer)
		}
		if _, err := parseField(line); err != nil {
			return err
		}
	}
	p.body, req.Body = body, body
	p.keep(t.scratch)
	return nil
}

// keep puts back what was read beyond the body: the beginning of a pipelined request. Behind the head there is room for
// it, or room is made by a new buffer; the old one stays as it is, for req points into it.
func (p *reader) keep(rest []byte) {
	if len(rest) == 0 {
		return
	}
	if len(p.buf)-p.w < len(rest) {
		grown := make([]byte, max(len(p.buf), len(rest)))
		copy(grown, rest)
		p.buf, p.r, p.w = grown, 0, len(rest)
		return
	}
	p.r = p.w
	p.w += copy(p.buf[p.w:], rest)
}

// chunkSize parses hex digits up to a chunk extension.
func chunkSize(line []byte) (n int64, ok bool) {
	for i, c := range line {
		var d byte
		switch {
		case '0' <= c && c <= '9':
			d = c - '0'
		case 'a' <= c && c <= 'f':
			d = c - 'a' + 10
		case 'A' <= c && c <= 'F':
			d = c - 'A' + 10
		case (c == ';' || c == ' ' || c == '\t') && i > 0:
			return n, chunkExtension(line[i:])
		default:
			return 0, false
		}
		if i >= 15 {
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, len(line) > 0
}

// chunkExtension accepts white space and then either nothing or a semicolon: "5 5" is not a size.
func chunkExtension(b []byte) bool {
	for i, c := range b {
		switch c {
		case ' ', '\t':
		case ';':
			return i < len(b)
		default:
			return false
		}
	}
	return true
}
