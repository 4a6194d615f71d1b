package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"toll/wire/envelope"
)

// loop owns the seats until the supervisor ends.
func (s *Supervisor) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := s.nextDue(); ok {
			timer.Reset(time.Until(at))
		}
		select {
		case <-s.ctx.Done():
			s.stopSeats(s.seats)
			s.conclude(nil)
			return
		case <-s.wake:
			for _, x := range s.collect(nil) {
				switch cause := s.gone(x); {
				case cause == errDone:
					s.shutdown()
					return
				case cause != nil:
					s.giveUp(cause)
					return
				}
			}
		case <-timer.C:
			if cause := s.startDue(); cause != nil {
				s.giveUp(cause)
				return
			}
		}
	}
}

func (s *Supervisor) nextDue() (at time.Time, ok bool) {
	for _, seat := range s.seats {
		if seat.pending && (!ok || seat.due.Before(at)) {
			at, ok = seat.due, true
		}
	}
	return at, ok
}

// errDone is the end of a supervisor whose significant children have ended.
var errDone = errors.New("its significant children have ended")

// gone handles one exit. It returns why the supervisor must end, or nil.
func (s *Supervisor) gone(x exit) error {
	at := -1
	for i, seat := range s.seats {
		if seat.get() == x.who {
			at = i
		}
	}
	if at < 0 { // one that was stopped by us and has been left behind since
		s.rt.bury(x.e, x.rest)
		return nil
	}
	seat := s.seats[at]
	seat.set(nil)
	if !seat.spec.Restart.again(x.e) {
		s.rt.bury(x.e, x.rest)
		if seat.spec.Significant && s.isDone() {
			return errDone
		}
		return nil
	}
	seat.inherit(s.rt, x)
	return s.schedule(at, x.e.Reason)
}

// isDone says whether the end of a significant child is that of the supervisor. Of those that are to be started again the end
// is not known.
func (s *Supervisor) isDone() bool {
	for _, seat := range s.seats {
		if s.spec.Shutdown == AllSignificant && seat.spec.Significant && (seat.pending || seat.get() != nil) {
			return false
		}
	}
	return s.spec.Shutdown != NeverShutdown
}

// inherit keeps what a life left for the next one. A tell that has cost as many lives as it may becomes a dead letter.
func (seat *seat) inherit(rt *Runtime, x exit) {
	seat.carried = append(seat.carried, x.rest...)
	m := x.e.Poison
	if m == nil {
		return
	}
	if m.Attempt++; m.Attempt < max(seat.spec.Deliveries, 1) {
		seat.carried = append([]item{{m: m}}, seat.carried...)
		return
	}
	rt.deadLetter(m, failureOf(x.e))
}

// schedule notes a failure of the child at a seat and plans the restarts that the strategy wants.
func (s *Supervisor) schedule(at int, cause error) error {
	now := time.Now()
	n := s.window.add(now, s.spec.Within, s.spec.MaxRestarts)
	if n > s.spec.MaxRestarts {
		return fmt.Errorf("%w: %d within %v; the last was %s: %w", ErrGaveUp, n, s.spec.Within, s.seats[at].spec.Name, cmp.Or(cause, errors.New("it ended")))
	}
	due := now.Add(s.spec.Backoff.Delay(n, s.random()))
	from, to := at, at+1
	switch s.spec.Strategy {
	case OneForAll:
		from, to = 0, len(s.seats)
	case RestForOne:
		to = len(s.seats)
	}
	s.stopSeats(s.seats[from:to])
	for _, seat := range s.seats[from:to] {
		// A temporary child is not started again, whoever's failure stopped it.
		if seat.spec.Restart != Temporary {
			seat.pending, seat.due = true, due
		}
	}
	return nil
}

// startDue starts the children whose time has come, in order.
func (s *Supervisor) startDue() error {
	for i, seat := range s.seats {
		if !seat.pending || time.Now().Before(seat.due) {
			continue
		}
		seat.pending = false
		err := s.start(s.ctx, seat)
		switch {
		case s.ctx.Err() != nil:
			return nil
		case err != nil:
			if err := s.schedule(i, err); err != nil {
				return err
			}
			continue
		}
		seat.mu.Lock()
		seat.restarts++
		seat.mu.Unlock()
		s.mu.Lock()
		s.restarts++
		s.mu.Unlock()
		s.rt.event(Event{Kind: ChildRestarted, Supervisor: s.spec.Name, Name: seat.spec.Name})
	}
	return nil
}

// start starts a seat's child.
func (s *Supervisor) start(ctx context.Context, seat *seat) error {
	c := seat.spec
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.StartTimeout, 30*time.Second))
	defer cancel()
	switch {
	case c.Supervisor != nil:
		sub, err := s.rt.supervise(ctx, *c.Supervisor, s)
		if err != nil {
			return err
		}
		seat.set(sub)
		return nil
	case c.Dynamic != nil:
		d, err := s.rt.dynamicUnder(*c.Dynamic, s)
		if err != nil {
			return err
		}
		seat.set(d)
		return nil
	}
	h, err := makeHandler(c.New)
	if err != nil {
		return err
	}
	p, err := s.rt.start(ctx, birth{name: c.Name, handler: h, spec: &seat.agent, owner: s, inherit: seat.carried})
	if err == nil {
		seat.carried = nil
		seat.set(p)
		return nil
	}
	if p != nil { // it had taken over the messages
		seat.carried = nil
		for _, x := range s.collect(p) {
			seat.carried = append(seat.carried, x.rest...)
		}
	}
	return err
}

// makeHandler calls New; a panic is an error.
func makeHandler(f func() (Handler, error)) (h Handler, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("making its handler: %w", newCrash(r))
		}
	}()
	if f == nil {
		return nil, errors.New("the child has neither New nor Supervisor nor Dynamic")
	}
	return f()
}

// stopSeats stops the children of seats in reverse order, one after the other, and keeps what they leave.
func (s *Supervisor) stopSeats(seats []*seat) {
	for i := len(seats) - 1; i >= 0; i-- {
		seat := seats[i]
		seat.pending = false
		who := seat.get()
		if who == nil {
			continue
		}
		seat.set(nil)
		switch who := who.(type) {
		case *Supervisor:
			who.quit()
			<-who.done
		case *Dynamic:
			who.Close(context.Background(), seat.spec.Drain)
		case *process:
			gone := make(chan struct{})
			who.watch(func(Exit) { close(gone) })
			who.stop(seat.spec.Drain, nil)
			<-gone // a stop takes no longer than the child's Shutdown
		}
		for _, x := range s.collect(who) {
			seat.inherit(s.rt, x)
		}
	}
}

// giveUp stops what is left and ends the supervisor. A parent takes it as a crash.
func (s *Supervisor) giveUp(cause error) {
	s.rt.event(Event{Kind: Escalated, Supervisor: s.spec.Name, Name: s.spec.Name, Err: cause})
	s.quit()
	s.stopSeats(s.seats)
	s.conclude(cause)
}

// shutdown stops what is left, in order. A parent takes it as an orderly end.
func (s *Supervisor) shutdown() {
	s.rt.event(Event{Kind: ShutDown, Supervisor: s.spec.Name, Name: s.spec.Name})
	s.quit()
	s.stopSeats(s.seats)
	s.conclude(nil)
	if s.parent != nil {
		s.parent.post(exit{who: s, e: Exit{Name: s.spec.Name, Code: envelope.Stopped}})
	}
}

// conclude buries what nobody will handle, gives the name back and tells who waits.
func (s *Supervisor) conclude(err error) {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	for _, x := range s.collect(nil) {
		s.rt.bury(x.e, x.rest)
	}
	for _, seat := range s.seats {
		for _, it := range seat.carried {
			s.rt.deadLetter(it.m, failure(envelope.Stopped, seat.spec.Name, "its supervisor ended"))
		}
		seat.carried = nil
	}
	s.rt.mu.Lock()
	delete(s.rt.supervisors, s.spec.Name)
	s.rt.mu.Unlock()
	s.err = err
	close(s.done)
	if s.parent != nil && err != nil {
		s.parent.post(exit{who: s, e: Exit{Name: s.spec.Name, Reason: err, Code: envelope.Crashed}})
	}
}
