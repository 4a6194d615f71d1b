package driver

import (
	"bytes"
	"io"

	"toll/lab/record"
)

// A scanner finds replies in bytes as they arrive, for a connection that must not wait. It accepts and refuses what a
// replyReader does. It keeps its memory from reply to reply.
type scanner struct {
	maxBody int64
	buf     []byte
	w       int // buf[:w] is read

	// Of the reply that is arriving:
	from    int  // where its head begins, behind interim replies
	seen    int  // how far the end of the head was looked for
	body    int  // where its body begins; 0: the head is not complete
	h       head // once it is
	interim int

	last       []byte // the last head, its empty line included: servers send the same one again and again
	lastParsed head
	arrived    bytes.Reader
	chunked    replyReader // decodes a chunked body once it is complete
}

// room returns where to read to. It doubles as bytes arrive.
func (s *scanner) room() []byte {
	if s.w == len(s.buf) {
		bigger := make([]byte, max(firstRead, 2*len(s.buf)))
		copy(bigger, s.buf[:s.w])
		s.buf = bigger
	}
	return s.buf[s.w:]
}

// reset forgets what was read.
func (s *scanner) reset() {
	s.w, s.from, s.seen, s.body, s.interim = 0, 0, 0, 0, 0
}

// next returns the reply that has arrived, or false while it is not complete. eof says that nothing more will come. The
// reply's body is valid until the next read. Its error is a *record.Failure.
func (s *scanner) next(method string, eof bool) (reply Reply, ok bool, err error) {
	for s.body == 0 {
		if ok, err := s.head(); err != nil || !ok {
			if err == nil && eof {
				err = ioFailure(io.EOF, record.Closed, "reading the head")
			}
			return Reply{}, false, err
		}
	}
	reply = Reply{Status: s.h.status, Close: s.h.close || eof}
	end := s.body
	switch h := s.h; {
	case method == "HEAD" || h.status == 304:
	case h.status == 204:
		if h.chunked || h.length > 0 {
			return Reply{}, false, bad("status 204 with a body")
		}
	case h.chunked:
		return s.chunks(method, eof)
	case h.length >= 0:
		if h.length > s.maxBody {
			return Reply{}, false, bad("body of %d bytes, more than %d", h.length, s.maxBody)
		}
		end += int(h.length)
		if s.w < end {
			if eof {
				err = ioFailure(io.EOF, record.ShortBody, "body of %d bytes ends after %d", h.length, s.w-s.body)
			}
			return Reply{}, false, err
		}
	default:
		if int64(s.w-s.body) > s.maxBody {
			return Reply{}, false, bad("body of more than %d bytes", s.maxBody)
		}
		if !eof {
			return Reply{}, false, nil
		}
		end = s.w
	}
	if s.w > end {
		return Reply{}, false, bad("%d bytes behind the reply", s.w-end)
	}
	reply.Body = s.buf[s.body:end]
	s.reset()
	return reply, true, nil
}

// head looks for a whole head. ok is false when there is none yet; after an interim reply it has to be called again.
func (s *scanner) head() (ok bool, err error) {
	unused := s.buf[s.from:s.w]
	if n := len(s.last); n > 0 && len(unused) >= n && bytes.Equal(unused[:n], s.last) {
		s.h, s.body = s.lastParsed, s.from+n
		return true, nil
	}
	if !startsReply(unused) {
		return false, bad("no HTTP/1 reply: %q", excerpt(unused))
	}
	i := bytes.Index(unused[s.seen:], []byte("\r\n\r\n"))
	if i < 0 || s.seen+i > maxHead {
		s.seen = max(0, len(unused)-3)
		if s.seen > maxHead || i >= 0 {
			return false, bad("head of more than %d bytes", maxHead)
		}
		return false, nil
	}
	end := s.seen + i
	if s.h, err = parseHead(unused[:end]); err != nil {
		return false, err
	}
	if s.h.status >= 200 {
		s.last = append(s.last[:0], unused[:end+4]...)
		s.lastParsed = s.h
		s.body = s.from + end + 4
		return true, nil
	}
	switch s.interim++; {
	case s.h.status == 101 || s.h.chunked || s.h.length > 0:
		return false, bad("interim reply %d that nobody asked for", s.h.status)
	case s.interim > maxInterim:
		return false, bad("more than %d interim replies", maxInterim)
	}
	s.from, s.seen = s.from+end+4, 0
	return s.from < s.w, nil
}

// chunks decodes a chunked body when it looks complete: its last bytes are then an empty line. What only looks so is tried
// again when more has come.
func (s *scanner) chunks(method string, eof bool) (Reply, bool, error) {
	// Chunks of one byte each are six bytes on the wire, and their framing has a bound of its own.
	if int64(s.w-s.body) > 6*s.maxBody+2*maxHead {
		return Reply{}, false, bad("body of more than %d bytes", s.maxBody)
	}
	if !eof && !bytes.HasSuffix(s.buf[s.body:s.w], []byte("\r\n\r\n")) {
		return Reply{}, false, nil
	}
	s.arrived.Reset(s.buf[s.from:s.w])
	p := &s.chunked
	p.maxBody, p.src, p.r, p.w = s.maxBody, &s.arrived, 0, 0
	reply, err := p.next(method)
	if err != nil {
		if record.KindOf(err) == record.ShortBody && !eof {
			err = nil
		}
		return Reply{}, false, err
	}
	if extra := p.w - p.r + s.arrived.Len(); extra > 0 {
		return Reply{}, false, bad("%d bytes behind the reply", extra)
	}
	s.reset()
	return reply, true, nil
}
