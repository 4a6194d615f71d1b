package contender

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Finding is what Check found about one point of the contract.
type Finding struct {
	Point    string // such as "ready" or "stats"
	OK       bool
	Optional bool // not doing it costs a column, not the row
	Text     string
}

// Fails reports whether the finding speaks against the contender.
func (f Finding) Fails() bool { return !f.OK && !f.Optional }

// String returns one line.
func (f Finding) String() string {
	mark := "not ok"
	switch {
	case f.OK:
		mark = "ok"
	case f.Optional:
		mark = "gap"
	}
	return fmt.Sprintf("%-6s  %-8s  %s", mark, f.Point, f.Text)
}

// Check tries a contender's manners: it starts it, twice at once, asks for its stats and stops it, and says in plain words
// what conforms and what does not. It does not judge its answers; that is the driver's part.
func Check(ctx context.Context, m Manifest) []Finding {
	c := checkup{}
	s, err := m.Spec()
	if err != nil {
		return c.not("start", err.Error())
	}
	began := time.Now()
	p, err := Start(ctx, s)
	if err != nil {
		return c.not("start", err.Error())
	}
	c.yes("start", fmt.Sprintf("ready after %v at %s", time.Since(began).Round(time.Millisecond), p.Ready().Addr))
	c.version(p)
	c.connects(ctx, p)
	c.stats(ctx, p)
	c.usage(p)
	c.again(ctx, p, s)
	c.stops(ctx, p, s)
	return c.found
}

type checkup struct{ found []Finding }

func (c *checkup) yes(point, text string) []Finding {
	c.found = append(c.found, Finding{Point: point, OK: true, Text: text})
	return c.found
}

func (c *checkup) not(point, text string) []Finding {
	c.found = append(c.found, Finding{Point: point, Text: text})
	return c.found
}

// lacks notes what an outsider need not have.
func (c *checkup) lacks(point, text string) {
	c.found = append(c.found, Finding{Point: point, Optional: true, Text: text})
}

func (c *checkup) version(p *Process) {
	if v := p.Ready().Version; v != "" {
		c.yes("version", "says that its version is "+v)
		return
	}
	c.lacks("version", "says no version: neither its ready line, nor version or version_command in the manifest")
}

func (c *checkup) connects(ctx context.Context, p *Process) {
	if p.Ready().Addr == stdioAddr {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	nc, err := dial(ctx, p.Ready().Addr)
	if err != nil {
		c.not("endpoint", fmt.Sprintf("says that it is ready, and takes no connection: %v", err))
		return
	}
	nc.Close()
	c.yes("endpoint", "takes a connection at "+p.Ready().Addr)
}

func (c *checkup) stats(ctx context.Context, p *Process) {
	s, err := p.Stats(ctx)
	switch {
	case err != nil:
		c.lacks("stats", fmt.Sprintf("its heap and allocations will be gaps: %v", err))
	case !s.AllocsKnown:
		c.lacks("stats", fmt.Sprintf("answers stats, without allocs and alloc_bytes: its allocations will be gaps (heap %d)", s.Heap))
	default:
		c.yes("stats", fmt.Sprintf("answers stats: allocs %d, alloc_bytes %d, heap %d", s.Allocs, s.AllocBytes, s.Heap))
	}
}

func (c *checkup) usage(p *Process) {
	u, err := p.Usage()
	if err != nil {
		c.lacks("usage", fmt.Sprintf("its CPU time and memory will be gaps: %v", err))
		return
	}
	c.yes("usage", fmt.Sprintf("CPU %v, peak %d MiB, %d threads, %d processes", u.CPU, u.RSSPeak>>20, u.Threads, len(u.PIDs)))
}

// again starts the contender a second time beside the first, as an A/A comparison does.
func (c *checkup) again(ctx context.Context, p *Process, s Spec) {
	second, err := Start(ctx, s)
	if err != nil {
		c.not("second", fmt.Sprintf("can't be started while another of it runs, so that it can't be its own control: %v", err))
		return
	}
	defer second.Stop(ctx)
	if p.Err() != nil {
		c.not("second", fmt.Sprintf("the first ended when a second was started: %v", p.Err()))
		return
	}
	if a, b := p.Ready().Addr, second.Ready().Addr; a == b && a != stdioAddr {
		c.not("second", "a second one says that it listens where the first does: "+a)
		return
	}
	c.yes("second", "a second one runs beside it")
}

func (c *checkup) stops(ctx context.Context, p *Process, s Spec) {
	began := time.Now()
	err := p.Stop(ctx)
	took := time.Since(began).Round(time.Millisecond)
	_, crashed := errors.AsType[*CrashError](err)
	leak, leaked := errors.AsType[*LeakError](err)
	switch {
	case crashed:
		c.not("stop", err.Error())
	case p.ended == onStdin:
		c.yes("stop", fmt.Sprintf("ended %v after its stdin was closed", took))
	case p.ended == onTerm && s.Probe != Probe{}:
		c.yes("stop", fmt.Sprintf("ended %v after SIGTERM, which is what a manifest with a probe promises", took))
	case p.ended == onTerm:
		c.not("stop", fmt.Sprintf("did not end when its stdin was closed; SIGTERM ended it after %v", took))
	default:
		c.not("stop", fmt.Sprintf("did not end when its stdin was closed, nor by SIGTERM; SIGKILL ended it after %v", took))
	}
	switch {
	case leaked:
		c.not("leaves", leak.Error())
	case err != nil && !crashed:
		c.not("leaves", err.Error())
	default:
		c.yes("leaves", "leaves no process behind")
	}
}
