package suite

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
	"toll/contender"
	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
	"toll/lab/result"
)

// probeTimeout bounds each call of the probe.
const probeTimeout = 10 * time.Second

// probeCommand starts a command once, to call it as probe does, and stops it.
func (l *loader) probeCommand(ctx context.Context, t LoadTarget, first bool) (err error) {
	x := l.commandSeat(t, "")
	spec, err := x.spec()
	if err != nil {
		return err
	}
	p, err := contender.Start(ctx, spec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	defer func() {
		if stopErr := p.Stop(context.WithoutCancel(ctx)); err == nil && stopErr != nil {
			err = fmt.Errorf("%w: %w", ErrTarget, stopErr)
		}
	}()
	h, ok := x.target(p.Ready(), nil).(*driver.HTTP)
	if !ok {
		return fmt.Errorf("%s: it can't be called over HTTP", t.Name)
	}
	return l.probe(ctx, t.Name, h, first)
}

// probe calls a target twice. What both answers share is expected of every later one.
func (l *loader) probe(ctx context.Context, name string, h *driver.HTTP, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	l.measureRTT(ctx, h.Addr)
	if len(l.cfg.Steps) > 0 {
		c, err := h.Open(ctx)
		if err == nil {
			err = c.Call(ctx, driver.NoMark())
			load.Close(c)
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", name, ErrTarget, err)
		}
		l.nullDoc = nullReply([]byte("{}"))
		return nil
	}
	h.Expect.Body = nil // that of the first target, which this one need not share
	var bodies [2][]byte
	for i := range bodies {
		r, err := l.good(ctx, name, h)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", name, ErrTarget, err)
		}
		bodies[i] = r.Body
	}
	if first {
		l.nullDoc = nullReply(bodies[0])
	}
	same := bytes.Equal(bodies[0], bodies[1])
	switch e := &l.cfg.Expect; {
	case e.Content() || l.cfg.AnyBody:
	case same && first:
		e.Body = append([]byte{}, bodies[0]...)
	case !same:
		l.seen = append(l.seen, name+" answers with another body each time: give --assert-json, or only its status is checked")
	}
	if e := l.cfg.Expect.Body; e != nil && !bytes.Equal(e, bodies[0]) {
		l.cfg.Expect.Body = nil
		l.seen = append(l.seen, "the targets' bodies differ: give --assert-json, or only the status is checked")
	}
	return nil
}

// probeTries is how often a target that answers, but not as expected, is asked again: one that fails now and then is measured,
// one that always does is not.
const probeTries = 20

// good calls a target until it answers as expected.
func (l *loader) good(ctx context.Context, name string, h *driver.HTTP) (driver.Reply, error) {
	for try := 1; ; try++ {
		r, err := h.Once(ctx)
		switch kind := record.KindOf(err); {
		case err == nil:
			if try > 1 {
				l.seen = append(l.seen, fmt.Sprintf("%s: before the run, %d of %d calls were not answered as expected", name, try-1, try))
			}
			return r, nil
		case try == probeTries || kind != record.Status && kind != record.WrongContent:
			return r, err
		}
	}
}

// measureRTT times a few connects: a handshake is one round trip.
func (l *loader) measureRTT(ctx context.Context, addr string) {
	if l.rtt != nil {
		return
	}
	var all []float64
	for range 5 {
		d, err := driver.ConnectTime(ctx, addr)
		if err != nil {
			return
		}
		all = append(all, d.Seconds()*1000)
	}
	slices.Sort(all)
	l.rtt = result.Ptr(result.Round5(all[len(all)/2]))
}
