package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Class is a kind of agent that a dynamic supervisor can spawn.
type Class struct {
	New       func(config map[string]any) (Handler, error) // makes the handler of each life anew
	Spec      Spec
	Isolation Isolation // where its agents run; nil for this process
}

// A DynamicSpec describes a dynamic supervisor. Limits of 0 are none.
type DynamicSpec struct {
	Name                string
	Classes             map[string]Class
	MaxChildren         int // that live at a time
	MaxSpawns           int // admitted in its life, never given back
	MaxPerSpawner       int
	MaxSpawnsPerSpawner int
	MaxSpawners         int      // different ones that are remembered for MaxSpawnsPerSpawner; 10,000 when 0
	Spawners            []string // that may spawn; nil lets everyone
	Veto                func(ctx context.Context, r *SpawnRequest) error
	Restart             Restart       // transient by default
	MaxRestarts         int           // of one child within Within: 3 when 0, none when negative; one more and it stays dead
	Within              time.Duration // 60 s when 0
	StartTimeout        time.Duration // for requests whose context has no deadline; 30 s when 0
}

// A SpawnRequest asks for a child.
type SpawnRequest struct {
	ID      string // of the request: while the child lives the same ID gives the same child; empty for none
	Spawner string // who asks
	Class   string
	Name    string
	Config  map[string]any
	Timing  *Timing // receives how long each step took; nil reads no clock
}

// A Dynamic is a supervisor whose children come and go while it runs. It has no goroutine and waits for nobody: every spawn
// runs on its caller's goroutine, so a slow start holds up nothing but itself.
type Dynamic struct {
	rt      *Runtime
	spec    DynamicSpec
	parent  *Supervisor
	classes map[string]*class
	picky   bool // there are limits, a list or a veto

	mu         sync.Mutex
	closed     bool                // guarded by mu
	head       offspring           // guarded by mu: a ring of children; the newest is head.prev
	live       int                 // guarded by mu
	spawns     int                 // guarded by mu
	perSpawner map[string]int      // guarded by mu: live children
	spawnsOf   map[string]int      // guarded by mu: admissions
	byID       map[string]*ordered // guarded by mu
	restarting map[string]*offspring
}

// A class is a Class ready for use.
type class struct {
	name string
	make func(config map[string]any) (Handler, error)
	spec Spec
}

// An offspring is a child of a dynamic supervisor, over all its lives.
type offspring struct {
	d       *Dynamic
	class   *class
	spawner string
	order   *ordered       // nil when its request had no ID
	config  map[string]any // for the next life
	name    string

	first *process // memory for its first life, until that is used

	prev, next *offspring // guarded by d.mu
	condemned  bool       // guarded by d.mu: no next life
	window     *window    // guarded by d.mu; nil until it fails
}

// A newborn is a child with the memory of its first life.
type newborn struct {
	o offspring
	p process
}

// An ordered is a spawn that has an ID: whoever asks with it again waits for the same outcome.
type ordered struct {
	id   string
	done chan struct{}
	ref  Ref   // to be read after done
	err  error // to be read after done
}

// SuperviseDynamic makes a dynamic supervisor.
func (rt *Runtime) SuperviseDynamic(spec DynamicSpec) (*Dynamic, error) {
	return rt.dynamicUnder(spec, nil)
}

func (rt *Runtime) dynamicUnder(spec DynamicSpec, parent *Supervisor) (*Dynamic, error) {
	if spec.Restart == DefaultRestart {
		spec.Restart = Transient
	}
	if spec.MaxRestarts == 0 {
		spec.MaxRestarts = 3
	}
	spec.MaxRestarts = max(spec.MaxRestarts, 0)
	spec.Within = cmp.Or(spec.Within, time.Minute)
	spec.StartTimeout = cmp.Or(spec.StartTimeout, 30*time.Second)
	spec.MaxSpawners = cmp.Or(spec.MaxSpawners, 10_000)
	d := &Dynamic{rt: rt, spec: spec, parent: parent, classes: make(map[string]*class)}
	d.head.prev, d.head.next = &d.head, &d.head
	d.picky = spec.Veto != nil || spec.Spawners != nil || spec.MaxChildren|spec.MaxSpawns|spec.MaxPerSpawner|spec.MaxSpawnsPerSpawner > 0
	d.perSpawner, d.spawnsOf = make(map[string]int), make(map[string]int)
	d.byID, d.restarting = make(map[string]*ordered), make(map[string]*offspring)
	for name, c := range spec.Classes {
		cl := &class{name: name, make: c.New, spec: c.Spec.withDefaults()}
		if c.Isolation != nil {
			cl.make = func(config map[string]any) (Handler, error) { return c.Isolation.Handler(name, config) }
		}
		d.classes[name] = cl
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case spec.Name == "" || len(spec.Name) > maxName:
		return nil, &Refusal{Reason: BadName, Name: fmt.Sprintf("%.40s", spec.Name), Detail: "a supervisor's name has 1 to 255 bytes"}
	case rt.closed.Load():
		return nil, &Refusal{Reason: ShuttingDown, Name: spec.Name}
	case rt.dynamic[spec.Name] != nil || rt.supervisors[spec.Name] != nil:
		return nil, &Refusal{Reason: DuplicateName, Name: spec.Name, Detail: "a supervisor has this name"}
	}
	rt.dynamic[spec.Name] = d
	return d, nil
}

// SpawnInto spawns under the dynamic supervisor of a name.
func (rt *Runtime) SpawnInto(ctx context.Context, supervisor string, r *SpawnRequest) (Ref, error) {
	rt.mu.Lock()
	d := rt.dynamic[supervisor]
	rt.mu.Unlock()
	if d == nil {
		return Ref{}, &Refusal{Reason: ShuttingDown, Name: r.Name, Detail: fmt.Sprintf("no dynamic supervisor is named %.40q", supervisor)}
	}
	return d.Spawn(ctx, r)
}

// Name returns the supervisor's name.
func (d *Dynamic) Name() string { return d.spec.Name }

// Len returns how many children there are, those included that are being started.
func (d *Dynamic) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live
}

// Spawn starts a child and returns when it is ready: its own Start has returned and it takes messages. The error is a
// *Refusal, or a failure of code Deadline or Cancelled when ctx ended first; the child is then stopped and its place given
// back as soon as its Start returns.
func (d *Dynamic) Spawn(ctx context.Context, r *SpawnRequest) (Ref, error) {
	r.Timing.begin()
	o, again, err := d.admit(r)
	switch {
	case err != nil:
		d.event(Event{Kind: SpawnRefused, Name: r.Name, Err: err})
		return Ref{}, err
	case again != nil:
		return again.wait(ctx, r.Name)
	}
	ref, err := d.bear(ctx, o, r)
	if o.order != nil {
		o.order.ref, o.order.err = ref, err
		close(o.order.done)
	}
	if err != nil {
		d.event(Event{Kind: SpawnFailed, Name: r.Name, Err: err})
		return Ref{}, err
	}
	d.event(Event{Kind: SpawnReady, Name: r.Name, Epoch: ref.Epoch()})
	return ref, nil
}

// SpawnNowait starts a child and does not wait for it: what became of it goes to done, which may be nil. r is the
// supervisor's from now on.
func (d *Dynamic) SpawnNowait(ctx context.Context, r *SpawnRequest, done func(Ref, error)) {
	go func() {
		ref, err := d.Spawn(ctx, r)
		if done != nil {
			done(ref, err)
		}
	}()
}

func (o *ordered) wait(ctx context.Context, name string) (Ref, error) {
	select {
	case <-o.done:
		return o.ref, o.err
	case <-ctx.Done():
		return Ref{}, failureIn(ctx, name)
	}
}

// bear gives an admitted child its first life.
func (d *Dynamic) bear(ctx context.Context, o *offspring, r *SpawnRequest) (Ref, error) {
	if d.spec.Veto != nil {
		if err := d.veto(ctx, r); err != nil {
			d.remove(o, true)
			return Ref{}, &Refusal{Reason: Vetoed, Name: r.Name, Detail: err.Error(), Cause: err}
		}
	}
	h, err := o.handler()
	if err != nil {
		d.remove(o, true)
		return Ref{}, &Refusal{Reason: BadConfig, Name: r.Name, Detail: err.Error(), Cause: err}
	}
	r.Timing.mark(Admit)
	d.event(Event{Kind: SpawnAdmitted, Name: r.Name})
	p, err := d.rt.start(ctx, o.birth(h, nil, r.Timing))
	if err != nil {
		d.condemn(o)
		if p == nil {
			release(h)
			d.remove(o, true)
		} else if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			d.event(Event{Kind: SpawnOrphaned, Name: r.Name, Epoch: p.epoch, Err: err})
		}
		return Ref{}, err
	}
	return Ref{p}, nil
}

// condemn denies a child any further life.
func (d *Dynamic) condemn(o *offspring) {
	d.mu.Lock()
	o.condemned = true
	d.mu.Unlock()
}

func (d *Dynamic) veto(ctx context.Context, r *SpawnRequest) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the veto hook: %w", newCrash(v))
		}
	}()
	return d.spec.Veto(ctx, r)
}

func (o *offspring) birth(h Handler, inherit []item, t *Timing) birth {
	memory := o.first
	o.first = nil
	return birth{
		name: o.name, handler: h, spec: &o.class.spec, owner: o, inherit: inherit, timing: t, memory: memory,
		limit: o.d.spec.StartTimeout,
	}
}

// handler makes the handler of a life; a panic is an error.
func (o *offspring) handler() (h Handler, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("making its handler: %w", newCrash(r))
		}
	}()
	return o.class.make(o.config)
}

// exited is told when a life has ended: the child gets another one or is gone.
func (o *offspring) exited(p *process, e Exit, rest []item) {
	d := o.d
	release(p.handler)
	born := p.wasBorn()
	d.mu.Lock()
	again := born && !o.condemned && !d.closed && d.spec.Restart.again(e)
	exhausted := false
	if again && e.Crashed() {
		if o.window == nil {
			o.window = new(window)
		}
		exhausted = o.window.add(time.Now(), d.spec.Within, d.spec.MaxRestarts) > d.spec.MaxRestarts
		again = !exhausted
	}
	if again {
		d.restarting[o.name] = o
	}
	d.mu.Unlock()
	if exhausted {
		d.event(Event{Kind: RestartsExhausted, Name: o.name, Epoch: e.Epoch, Err: e.Reason})
	}
	if again {
		go d.revive(o, e, rest)
		return
	}
	d.rt.bury(e, rest)
	d.remove(o, false)
}

// wasBorn says whether the process was ready once.
func (p *process) wasBorn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// revive gives a child another life. The tell that it died of is a dead letter; those behind it go on.
func (d *Dynamic) revive(o *offspring, e Exit, rest []item) {
	if e.Poison != nil {
		d.rt.deadLetter(e.Poison, failureOf(e))
	}
	h, err := o.handler()
	var p *process
	if err == nil {
		p, err = d.rt.start(d.rt.ctx, o.birth(h, rest, nil))
	}
	d.mu.Lock()
	delete(d.restarting, o.name)
	condemned := o.condemned || d.closed
	d.mu.Unlock()
	switch {
	case err != nil:
		d.event(Event{Kind: SpawnFailed, Name: o.name, Err: err})
		if p == nil {
			release(h)
			for _, it := range rest {
				d.rt.deadLetter(it.m, err)
			}
			d.remove(o, false)
		}
	case condemned:
		p.stop(Now, nil)
	default:
		d.event(Event{Kind: ChildRestarted, Name: o.name, Epoch: p.epoch})
	}
}

// Despawn stops the child of a name now and waits until it has gone: callers in the queue and the one being served are
// answered with Stopped at once.
func (d *Dynamic) Despawn(ctx context.Context, name string) error { return d.Stop(ctx, name, Now) }

// Stop stops the child of a name after the message in progress or after the whole mailbox, and waits until it has gone.
func (d *Dynamic) Stop(ctx context.Context, name string, drain Drain) error {
	p := d.rt.registry.get(name)
	if p == nil {
		d.mu.Lock()
		o := d.restarting[name]
		if o != nil {
			o.condemned = true
		}
		d.mu.Unlock()
		if o != nil {
			return nil
		}
		return notFound(name)
	}
	return d.StopRef(ctx, Ref{p}, drain, nil)
}

// StopRef stops one child, of which t receives how long the steps took.
func (d *Dynamic) StopRef(ctx context.Context, r Ref, drain Drain, t *Timing) error {
	o, ok := r.p.owner.(*offspring)
	if !ok || o.d != d {
		return notFound(r.p.name)
	}
	t.begin()
	d.condemn(o)
	t.mark(Stop)
	err := r.Stop(ctx, drain)
	t.mark(Gone)
	if err == nil {
		d.event(Event{Kind: ChildDespawned, Name: r.p.name, Epoch: r.p.epoch})
	}
	return err
}

// Children returns the live children, the oldest first.
func (d *Dynamic) Children() []Ref {
	var names []string
	d.mu.Lock()
	for o := d.head.next; o != &d.head; o = o.next {
		names = append(names, o.name)
	}
	d.mu.Unlock()
	var out []Ref
	for _, name := range names {
		if p := d.rt.registry.get(name); p != nil {
			if o, ok := p.owner.(*offspring); ok && o.d == d {
				out = append(out, Ref{p})
			}
		}
	}
	return out
}

// Close stops all children, the newest first, and waits until they have gone; those that have not when ctx ends are stopped
// hard. Nothing can be spawned any more.
func (d *Dynamic) Close(ctx context.Context, drain Drain) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	children := d.Children()
	slices.Reverse(children)
	for _, r := range children {
		r.p.stop(drain, nil)
	}
	var errs []error
	for _, r := range children {
		if err := r.Wait(ctx); err != nil {
			r.p.stop(Now, nil)
			errs = append(errs, err)
		}
	}
	d.rt.mu.Lock()
	if d.rt.dynamic[d.spec.Name] == d {
		delete(d.rt.dynamic, d.spec.Name)
	}
	d.rt.mu.Unlock()
	return errors.Join(errs...)
}

func (d *Dynamic) event(e Event) {
	if d.rt.cfg.Events != nil {
		e.Supervisor = d.spec.Name
		d.rt.cfg.Events(e)
	}
}

// Dynamic returns the dynamic supervisor of a name.
func (rt *Runtime) Dynamic(name string) (*Dynamic, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	d, ok := rt.dynamic[name]
	return d, ok
}
