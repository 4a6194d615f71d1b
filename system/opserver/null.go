package opserver

import (
	"bytes"
	"net"
	"sync/atomic"
	"time"

	"toll/wire/http1"
)

// NewNull makes a server that answers every complete HTTP/1.1 request with cfg.Reply, whatever it asks: the cheapest HTTP
// answer that we can make, so that what a call then costs is the client's own. Of a request it reads where the head ends
// and its Content-Length; a connection whose request is chunked, or larger than cfg allows, is closed.
func NewNull(cfg Config) *Floor {
	cfg = cfg.withDefaults()
	return newFloor(cfg, func(nc net.Conn, done *atomic.Int64) {
		r := requestReader{nc: nc, maxBody: cfg.MaxBody, buf: make([]byte, cfg.MaxHead)}
		for r.next() {
			for begin := time.Now(); cfg.Delay > 0 && time.Since(begin) < cfg.Delay; {
			}
			if _, err := nc.Write(cfg.Reply); err != nil {
				return
			}
			done.Add(1)
		}
	})
}

// A requestReader reads past requests. Its buffer holds a head; of a body it keeps nothing.
type requestReader struct {
	nc      net.Conn
	maxBody int64
	buf     []byte
	r, w    int // buf[r:w] is read and not yet used
}

// next reads past one request and reports whether there was a whole one.
func (r *requestReader) next() bool {
	head, ok := r.head()
	if !ok {
		return false
	}
	n, ok := bodyLength(head)
	return ok && n <= r.maxBody && r.discard(n)
}

func (r *requestReader) head() ([]byte, bool) {
	for seen := 0; ; {
		unused := r.buf[r.r:r.w]
		if i := bytes.Index(unused[seen:], []byte("\r\n\r\n")); i >= 0 {
			r.r += seen + i + 4
			return unused[:seen+i+2], true
		}
		seen = max(0, len(unused)-3)
		if r.r > 0 {
			r.w = copy(r.buf, unused)
			r.r = 0
		}
		if r.w == len(r.buf) || !r.fill() {
			return nil, false
		}
	}
}

func (r *requestReader) discard(n int64) bool {
	for {
		have := min(n, int64(r.w-r.r))
		r.r += int(have)
		if n -= have; n == 0 {
			return true
		}
		r.r, r.w = 0, 0
		if !r.fill() {
			return false
		}
	}
}

func (r *requestReader) fill() bool {
	n, err := r.nc.Read(r.buf[r.w:])
	r.w += n
	return err == nil
}

// bodyLength finds the Content-Length among lines that each end in CRLF, 0 if there is none. Two of them, or one that is
// no number, or a Transfer-Encoding, is not ok.
func bodyLength(head []byte) (n int64, ok bool) {
	found := false
	for len(head) > 0 {
		end := bytes.IndexByte(head, '\n')
		line := head[:end]
		head = head[end+1:]
		if _, is := value(line, "transfer-encoding:"); is {
			return 0, false
		}
		v, is := value(line, "content-length:")
		if !is {
			continue
		}
		if n, ok = http1.ParseLength(v); !ok || found {
			return 0, false
		}
		found = true
	}
	return n, true
}

// value returns what follows name, given in lower case, at the beginning of line.
func value(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) {
		return nil, false
	}
	for i := range len(name) {
		c := line[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != name[i] {
			return nil, false
		}
	}
	return bytes.Trim(line[len(name):], " \t\r"), true
}
