package mux

import (
	"net"
	"runtime"
)

const (
	// looks is how often a reader looks for more before it waits: about as long as going to sleep and being woken takes on a
	// virtual machine, some tens of microseconds, so that looking in vain at most doubles what waiting costs.
	looks = 100
	// vain is after how many times in vain a reader stops looking, but for one time in afresh.
	vain   = 4
	afresh = 64
	// shared is how many frames have to come between two waits on average before a reader looks at all: one at a time is one
	// caller, who may have a connection among many, and their readers would keep each other from their turn.
	shared = 1.125
)

// A looker looks for more, where the other end is quick, before it lets the goroutine sleep. A sleeping process is woken by
// an interrupt of another core, which costs both more than a short reply takes to come.
type looker struct {
	peek   *peek
	missed int // times in vain, in a row
	waits  int
	frames int     // since the last wait
	often  float64 // the same on average, over some waits
}

// Eager makes f look for more for some tens of microseconds before it waits. src must be the connection that it reads. Where
// more seldom comes so soon, it mostly waits at once. It does nothing on connections that are encrypted.
func (f *Reader) Eager(nc net.Conn) {
	if p := newPeek(nc); p != nil {
		f.look = &looker{peek: p}
	}
}

// note counts a wait.
func (l *looker) note() {
	l.often += (float64(l.frames) - l.often) / 8
	l.frames = 0
}

// read reads what comes soon into b; 0 and no error mean that nothing did.
func (l *looker) read(b []byte) (n int, err error) {
	l.note()
	if l.often < shared {
		return 0, nil
	}
	if l.waits++; l.missed >= vain && l.waits%afresh != 0 {
		return 0, nil
	}
	for range looks {
		if n, err = l.peek.read(b); n > 0 || err != nil {
			l.missed = 0
			return n, err
		}
		runtime.Gosched()
	}
	l.missed++
	return 0, nil
}

// alone notes that all that came was read, and reports whether so few frames come at a time that waiting at once is best.
func (f *Reader) alone() bool {
	if f.look == nil {
		return true
	}
	f.look.note()
	return f.look.often < shared
}

// Alone reports whether frames come one at a time.
func (f *Reader) Alone() bool { return f.look == nil || f.look.often < shared }
