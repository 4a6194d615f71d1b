package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A Strategy says which children are restarted when one of them has failed.
type Strategy uint8

// The strategies.
const (
	OneForOne  Strategy = iota // that one
	OneForAll                  // all of them
	RestForOne                 // that one and those after it
)

// A Restart says when a child is started again.
type Restart uint8

// The kinds of children. The zero value is permanent under a supervisor and transient under a dynamic one.
const (
	DefaultRestart Restart = iota
	Permanent              // always
	Transient              // when it crashed
	Temporary              // never
)

// An AutoShutdown says when a supervisor ends, in order, because its significant children have: the work is done.
type AutoShutdown uint8

// The conditions.
const (
	NeverShutdown  AutoShutdown = iota
	AnySignificant              // one of them has ended by itself and is not started again
	AllSignificant              // that was the last of them
)

// again says whether a child that ended with e is started again.
func (r Restart) again(e Exit) bool { return r == Permanent || r == Transient && e.Crashed() }

// A Child is one place under a supervisor: an agent, or a supervisor of either kind.
type Child struct {
	Name         string
	New          func() (Handler, error) // makes the handler of each life anew
	Spec         Spec
	Restart      Restart
	Significant  bool          // its end may be its supervisor's: see AutoShutdown; not of a permanent child
	Drain        Drain         // how it is stopped
	StartTimeout time.Duration // 30 s when 0

	// Deliveries is how many lives one tell may cost before it becomes a dead letter; 1 when 0. Asks are never delivered
	// again: their callers have been answered.
	Deliveries int

	Supervisor *SupervisorSpec // instead of New
	Dynamic    *DynamicSpec    // instead of New
}

// A SupervisorSpec describes a supervisor.
type SupervisorSpec struct {
	Name        string
	Strategy    Strategy
	Children    []Child
	MaxRestarts int           // within Within, 3 when 0, none when negative; one more and the supervisor gives up
	Within      time.Duration // 60 s when 0
	Backoff     Backoff
	Shutdown    AutoShutdown
}

// check finds what contradicts itself: who is started again whenever it ends never ends.
func (s *SupervisorSpec) check() error {
	for i := range s.Children {
		switch c := &s.Children[i]; {
		case !c.Significant:
		case c.Restart != Transient && c.Restart != Temporary:
			return fmt.Errorf("supervisor %s: child %s is significant and permanent; make it transient or temporary", s.Name, c.Name)
		case s.Shutdown == NeverShutdown:
			return fmt.Errorf("supervisor %s: child %s is significant and nothing follows from it; set the supervisor's automatic shutdown", s.Name, c.Name)
		}
	}
	return nil
}

// ErrGaveUp is why a supervisor ended whose children failed too often. Its parent restarts it; without a parent it is the end.
var ErrGaveUp = errors.New("supervisor gave up: its children failed too often")

// A Supervisor starts its children in order, stops them in reverse, and restarts those that fail. One goroutine does all of
// it, so exits are handled one at a time.
type Supervisor struct {
	rt     *Runtime
	spec   SupervisorSpec
	parent *Supervisor
	seats  []*seat // owned by loop; their shared part guarded by mu
	window window  // owned by loop
	random func() float64

	ctx  context.Context // ends when the supervisor is to stop
	quit context.CancelFunc
	wake chan struct{} // one place: there is something in inbox
	done chan struct{} // closed at the end
	err  error         // why it ended; to be read after done

	mu       sync.Mutex
	inbox    []exit // guarded by mu
	restarts int    // guarded by mu
	over     bool   // guarded by mu: nobody reads inbox any more
}

// A seat is a child's place. who is what sits there now: a *process, a *Supervisor or a *Dynamic.
type seat struct {
	spec  *Child
	agent Spec // the child's, with its defaults

	mu       sync.Mutex
	who      any // guarded by mu
	restarts int // guarded by mu

	pending bool      // owned by loop: to be started
	due     time.Time // owned by loop: not before
	carried []item    // owned by loop: what the last life left
}

// An exit is the news that somebody has gone.
type exit struct {
	who  any
	e    Exit
	rest []item
}

func (s *seat) set(who any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.who = who
}

func (s *seat) get() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

// Supervise starts a supervisor and its children, in order, and returns when all are ready. When one can't be started those
// before it are stopped again.
func (rt *Runtime) Supervise(ctx context.Context, spec SupervisorSpec) (*Supervisor, error) {
	return rt.supervise(ctx, spec, nil)
}

func (rt *Runtime) supervise(ctx context.Context, spec SupervisorSpec, parent *Supervisor) (*Supervisor, error) {
	if spec.MaxRestarts == 0 {
		spec.MaxRestarts = 3
	}
	spec.MaxRestarts = max(spec.MaxRestarts, 0)
	spec.Within = cmp.Or(spec.Within, time.Minute)
	if err := spec.check(); err != nil {
		return nil, err
	}
	s := &Supervisor{rt: rt, spec: spec, parent: parent, random: rand.Float64}
	s.ctx, s.quit = context.WithCancel(context.Background())
	s.wake, s.done = make(chan struct{}, 1), make(chan struct{})
	for i := range spec.Children {
		c := &spec.Children[i]
		if c.Restart == DefaultRestart {
			c = new(spec.Children[i]) // a copy: the spec is the caller's
			c.Restart = Permanent
		}
		s.seats = append(s.seats, &seat{spec: c, agent: c.Spec.withDefaults()})
	}
	if err := rt.enroll(s); err != nil {
		return nil, err
	}
	for i, seat := range s.seats {
		if err := s.start(ctx, seat); err != nil {
			s.quit()
			s.stopSeats(s.seats[:i])
			s.conclude(err)
			return nil, fmt.Errorf("supervisor %s: child %s: %w", spec.Name, seat.spec.Name, err)
		}
	}
	go s.loop()
	return s, nil
}

// enroll takes the supervisor's name.
func (rt *Runtime) enroll(s *Supervisor) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case s.spec.Name == "" || len(s.spec.Name) > maxName:
		return &Refusal{Reason: BadName, Name: fmt.Sprintf("%.40s", s.spec.Name), Detail: "a supervisor's name has 1 to 255 bytes"}
	case rt.closed.Load():
		return &Refusal{Reason: ShuttingDown, Name: s.spec.Name}
	case rt.supervisors[s.spec.Name] != nil || rt.dynamic[s.spec.Name] != nil:
		return &Refusal{Reason: DuplicateName, Name: s.spec.Name, Detail: "a supervisor has this name"}
	}
	rt.supervisors[s.spec.Name] = s
	return nil
}

// Name returns the supervisor's name.
func (s *Supervisor) Name() string { return s.spec.Name }

// Stop stops the children in reverse order, each as it wants to be, and waits until they have gone or ctx ends; the stop
// goes on in that case.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.quit()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("supervisor %s: waiting for its children to stop: %w", s.spec.Name, ctx.Err())
	}
}

// Done is closed when the supervisor has ended.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// Wait waits for the end and returns why: nil after Stop and an automatic shutdown, ErrGaveUp with the failure that was one too many.
func (s *Supervisor) Wait() error {
	<-s.done
	return s.err
}

// exited is told of processes.
func (s *Supervisor) exited(p *process, e Exit, rest []item) { s.post(exit{p, e, rest}) }

func (s *Supervisor) post(x exit) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		s.rt.bury(x.e, x.rest)
		return
	}
	s.inbox = append(s.inbox, x)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// collect takes the news out of the inbox, those about who only when who is not nil.
func (s *Supervisor) collect(who any) []exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if who == nil {
		all := s.inbox
		s.inbox = nil
		return all
	}
	var mine []exit
	others := s.inbox[:0]
	for _, x := range s.inbox {
		if x.who == who {
			mine = append(mine, x)
		} else {
			others = append(others, x)
		}
	}
	clear(s.inbox[len(others):])
	s.inbox = others
	return mine
}
