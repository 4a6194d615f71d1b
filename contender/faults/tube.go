package faults

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

const (
	readAtOnce = 64 << 10
	held       = 1024 // pieces that may wait for their time; then reading pauses
	maxFrame   = 16 << 20
)

// A tube is one direction of a connection: one goroutine reads and spoils, another writes each piece when it is due.
type tube struct {
	pair     *pair
	way      Direction
	from, to net.Conn
	rand     *rand.Rand // owned by read
}

type piece struct {
	data  []byte
	due   time.Time
	split int
}

func (t *tube) run() {
	pieces := make(chan piece, held)
	var wg sync.WaitGroup
	wg.Go(func() { t.write(pieces) })
	t.read(pieces)
	close(pieces)
	wg.Wait()
	// The end of one direction is passed on; the other may go on, as in TCP.
	if half, ok := t.to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		t.pair.close()
	}
}

func (t *tube) read(pieces chan<- piece) {
	buf := make([]byte, readAtOnce)
	have := 0
	for {
		n, err := t.from.Read(buf[have:])
		have += n
		at := 0
		for data, ok := t.cut(buf[:have]); ok && len(data) > 0; data, ok = t.cut(buf[at:have]) {
			if !t.pass(pieces, data) {
				return
			}
			at += len(data)
		}
		have = copy(buf, buf[at:have])
		if err != nil {
			if err == io.EOF && have > 0 {
				t.pass(pieces, buf[:have])
			}
			if err != io.EOF {
				t.pair.close()
			}
			return
		}
		if have == len(buf) {
			if have >= maxFrame {
				t.pair.close()
				return
			}
			buf = append(buf, make([]byte, have)...)
		}
	}
}

// cut returns the first piece of data, if a whole one is there.
func (t *tube) cut(data []byte) ([]byte, bool) {
	if t.pair.proxy.cfg.Frame == nil {
		return data, true
	}
	n := t.pair.proxy.cfg.Frame(data)
	return data[:min(max(n, 0), len(data))], n > 0 && n <= len(data)
}

// pass decides what becomes of a piece and reports whether the connection goes on.
func (t *tube) pass(pieces chan<- piece, data []byte) bool {
	p := t.pair.proxy
	w, changed := p.now(t.way)
	for w.Stall {
		select {
		case <-changed:
		case <-t.pair.over:
			return false
		}
		w, changed = p.now(t.way)
	}
	times := 1
	switch draw := t.rand.Float64; {
	case w.Reset > 0 && draw() < w.Reset:
		p.resets.Add(1)
		t.pair.reset()
		return false
	case w.Drop > 0 && draw() < w.Drop:
		p.dropped.Add(1)
		return true
	case w.Replay > 0 && draw() < w.Replay:
		p.replayed.Add(1)
		times = 2
	}
	p.passed.Add(1)
	out := piece{data: append([]byte(nil), data...), split: w.Split}
	if delay := w.Delay + t.jitter(w.Jitter); delay > 0 {
		out.due = time.Now().Add(delay)
	}
	for range times {
		select {
		case pieces <- out:
		case <-t.pair.over:
			return false
		}
	}
	return true
}

func (t *tube) jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(t.rand.Int64N(int64(most) + 1))
}

// write writes the pieces in order, none before its time. Plain ones that are there already go out together.
func (t *tube) write(pieces <-chan piece) {
	var plain []byte
	for p := range pieces {
		plain = plain[:0]
		for p.plain() && p.data != nil {
			plain = append(plain, p.data...)
			if p = (piece{}); len(plain) < readAtOnce && len(pieces) > 0 {
				p = <-pieces
			}
		}
		if t.put(piece{data: plain}) != nil || !t.wait(p.due) || t.put(p) != nil {
			t.pair.close()
			for range pieces { // until read has noticed
			}
			return
		}
	}
}

// plain reports whether p may go out at once and whole.
func (p piece) plain() bool { return p.due.IsZero() && p.split == 0 }

func (t *tube) wait(due time.Time) bool {
	left := time.Until(due)
	if due.IsZero() || left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.pair.over:
		return false
	}
}

func (t *tube) put(p piece) error {
	for data := p.data; len(data) > 0; {
		n := len(data)
		if p.split > 0 {
			n = min(n, p.split)
		}
		if _, err := t.to.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
