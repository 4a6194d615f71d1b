package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"toll/lab"
)

// statusEvery keeps the progress line to two a second.
const statusEvery = 500 * time.Millisecond

// A status is the single progress line of a terminal. It has no goroutine: the lab calls it between blocks, so that it
// costs no window anything. In pipes and CI it shows nothing.
type status struct {
	w    io.Writer // nil when there is no terminal
	last time.Time
}

func newStatus(w io.Writer) *status {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("CI") != "" || !term.IsTerminal(int(f.Fd())) {
		return &status{}
	}
	return &status{w: w}
}

func (s *status) show(p lab.Progress) {
	if s.w == nil || time.Since(s.last) < statusEvery {
		return
	}
	s.last = time.Now()
	fmt.Fprintf(s.w, "\r\x1b[K%3d %%  %s %s ×%d  round %d, block %d of %d", 100*p.Done/max(p.Total, 1),
		p.Setting.Case, p.Setting.Phase, p.Setting.Concurrency, p.Setting.Round, p.Block, p.Blocks)
}

func (s *status) clear() {
	if s.w != nil {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}
