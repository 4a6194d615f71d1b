package contender

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// maxLine bounds a line of a child's output: an engine's answer has two times for each of its calls. The rest of a longer one
// is thrown away.
const maxLine = 2 << 20

// lines reads what a child writes, all of it, and hands a line to whoever waits for one. Lines that nobody waits for are
// dropped, so that a chatty child is never held up and never fills our memory.
type lines struct {
	each func([]byte)  // sees every line; nil = nobody
	over chan struct{} // closed at the end of the stream

	mu     sync.Mutex
	accept func([]byte) bool // guarded by mu; nil while nobody waits
	got    chan line         // holds the one that was accepted
	passed []byte            // guarded by mu; the beginning of the last line that was waited for and not taken
}

type line struct {
	text []byte
	cut  bool // it was longer than maxLine
}

func newLines(each func([]byte)) *lines {
	return &lines{each: each, over: make(chan struct{}), got: make(chan line, 1)}
}

// read reads until the stream ends or is closed.
func (l *lines) read(r io.Reader) {
	defer close(l.over)
	b := bufio.NewReaderSize(r, maxLine+1)
	for {
		text, err := b.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if n := len(text); n > 0 && text[n-1] == '\n' {
			text = text[:n-1]
		}
		if len(text) > 0 || err == nil {
			l.deliver(line{text[:min(len(text), maxLine)], cut})
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

func (l *lines) deliver(n line) {
	if l.each != nil {
		l.each(n.text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.accept == nil:
	case l.accept(n.text):
		l.accept = nil
		n.text = append([]byte(nil), n.text...)
		l.got <- n
	default:
		l.passed = append(l.passed[:0], n.text[:min(len(n.text), maxQuote+1)]...)
	}
}

// instead quotes what came while a line was waited for that did not, ready to stand behind a sentence.
func (l *lines) instead() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.passed) == 0 {
		return ""
	}
	return "; on stdout instead: " + quote(l.passed)
}

// expect makes the next line that accept takes come through got. It is for one waiter at a time, who calls forget when
// the line did not come.
func (l *lines) expect(accept func([]byte) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accept, l.passed = accept, l.passed[:0]
}

func (l *lines) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accept = nil
	select {
	case <-l.got:
	default:
	}
}

// maxTail is how much of a child's stderr is kept: its end.
const maxTail = 4 << 10

// tail keeps the end of a child's stderr.
type tail struct {
	copy io.Writer // nil = none; owned by the reader of the stream

	mu   sync.Mutex
	text []byte // guarded by mu
}

func (t *tail) add(text []byte) {
	t.mu.Lock()
	t.text = append(append(t.text, text...), '\n')
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	t.mu.Unlock()
	if t.copy != nil {
		t.copy.Write(append(append([]byte(nil), text...), '\n')) // who gives us a writer that fails goes without
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
