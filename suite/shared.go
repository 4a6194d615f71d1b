package suite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"toll/contender"
	"toll/driver"
	"toll/lab"
)

// errShared is why a row of a shared process has no cost of its own.
var errShared = errors.New("its server process is shared with the other contenders")

// openShared seats all contenders at one server process that speaks every envelope, as published methods did.
func (h *house) openShared(ctx context.Context, setting lab.Setting, seats []seat) lab.Set {
	var set lab.Set
	seats = slices.DeleteFunc(seats, func(s seat) bool { return slices.Contains(setting.Skip, s.label()) })
	fail := func(err error) lab.Set {
		for _, s := range seats {
			set.Failures = append(set.Failures, lab.Failure{Contender: s.label(), Reason: err.Error()})
		}
		return set
	}
	spec, err := contender.Self("serve", "ops", "--envelope", "every")
	if err != nil {
		return fail(err)
	}
	if err := h.ground.place(&spec, seat{}); err != nil {
		return fail(err)
	}
	p, err := contender.Start(ctx, spec)
	if err != nil {
		return fail(err)
	}
	one := &shared{p: p}
	for _, s := range seats {
		if s.own {
			h.seatOwn(ctx, setting, s, &set)
			continue
		}
		ready := p.Ready()
		if strings.HasPrefix(s.contender.Name, "zap") {
			ready.Addr = strings.Replace(ready.Addr, "http://", "tcp://", 1)
		}
		wire := new(driver.Wire)
		c := s.contender
		c.Version = ready.Version
		set.Entries = append(set.Entries, lab.Entry{
			Contender: c, Role: s.role, Connections: "per-caller", Process: one, Unverified: s.unverified,
			Target: s.target(ready, nil), Metered: s.target(ready, wire),
			Wire: func() (out, in int64) { return wire.Out.Load(), wire.In.Load() },
		})
	}
	return set
}

// seatOwn seats a contender at a process of its own, beside those that share one.
func (h *house) seatOwn(ctx context.Context, setting lab.Setting, s seat, set *lab.Set) {
	e, err := h.start(ctx, s)
	switch {
	case err == nil:
		set.Entries = append(set.Entries, *e)
	case errors.Is(err, contender.ErrMissing):
		set.Gaps = append(set.Gaps, gap(setting, s.label(), err.Error()))
	default:
		set.Failures = append(set.Failures, lab.Failure{Contender: s.label(), Reason: err.Error()})
	}
}

// shared is one process behind several contenders: what it uses can't be told apart.
type shared struct {
	p    *contender.Process
	once sync.Once
	err  error
}

// Usage says why there is none.
func (*shared) Usage() (lab.Usage, error) { return lab.Usage{}, errShared }

// Counters says why there are none.
func (*shared) Counters(context.Context) (lab.Counters, error) { return lab.Counters{}, errShared }

// Stop ends the process, the first time.
func (s *shared) Stop(ctx context.Context) error {
	s.once.Do(func() { s.err = s.p.Stop(ctx) })
	return s.err
}
