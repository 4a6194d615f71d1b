package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"toll/fleet"
)

// ErrTaken is why a coordinator ends whose run another one has taken over.
var ErrTaken = errors.New("another coordinator has taken over the run")

// A Conductor is a coordinator that runs.
type Conductor struct {
	line    *line
	cfg     fleet.Config
	clock   monotonic
	holder  string
	kv      jetstream.KeyValue
	cancel  context.CancelFunc
	done    chan struct{}
	started chan struct{}
	stops   chan string

	// owned by loop, and read by others when done is closed
	rules    *fleet.Coordinator
	revision uint64
	unsaved  *fleet.State
	err      error

	mu     sync.Mutex
	report *fleet.Report // guarded by mu: the last one
}

// inbox bounds what waits to be handled. Beyond it, control messages are lost and told again; slices wait in the stream.
const inbox = 1 << 14

// Conduct begins a run, or goes on with one whose name is known to the server.
func Conduct(ctx context.Context, a Access, cfg fleet.Config) (*Conductor, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := CheckName(cfg.Run); err != nil {
		return nil, err
	}
	pings := pingQuiet
	if a.Server != nil {
		pings = pingRarely
	}
	l, err := dial(ctx, a, "toll coordinator", 10*time.Second, pings)
	if err != nil {
		return nil, err
	}
	c := &Conductor{line: l, cfg: cfg, clock: newMonotonic(), holder: drawn(), done: make(chan struct{}), started: make(chan struct{}), stops: make(chan string, 1), rules: fleet.NewCoordinator(cfg)}
	if err := c.open(ctx); err != nil {
		l.nc.Close()
		return nil, err
	}
	msgs := make(chan *nats.Msg, inbox)
	for _, subject := range []string{helloSubject(""), helloSubject(cfg.Run), upSubject(cfg.Run)} {
		if _, err := l.nc.ChanSubscribe(subject, msgs); err != nil {
			l.nc.Close()
			return nil, fmt.Errorf("listening for workers: %w", err)
		}
	}
	if err := l.nc.Flush(); err != nil {
		l.nc.Close()
		return nil, fmt.Errorf("listening for workers: %w", err)
	}
	loopCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go c.loop(loopCtx, msgs)
	return c, nil
}

// open takes the run's place in the bucket, whether it is new or goes on.
func (c *Conductor) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c.kv, err = c.line.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucketName, History: 4, MaxValueSize: 8 << 20})
	if err != nil {
		return fmt.Errorf("the bucket of runs: %w", err)
	}
	for {
		// The coordinator that may still be there saves as well; whoever reads last before its write comes through.
		if err = c.take(ctx); !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
	}
}

// take reads the saved state and writes it again, as its next owner.
func (c *Conductor) take(ctx context.Context) error {
	e, err := c.kv.Get(ctx, c.cfg.Run)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the saved state of run %s: %w", c.cfg.Run, err)
	}
	var s fleet.State
	if err := json.Unmarshal(e.Value(), &s); err != nil {
		return fmt.Errorf("the saved state of run %s: %w", c.cfg.Run, err)
	}
	c.revision, s.Holder = e.Revision(), c.holder
	mine, err := json.Marshal(s)
	if err != nil {
		return err
	}
	// Written again, so that a coordinator that may still be there finds that it is not its run any more.
	if c.revision, err = c.kv.Update(ctx, c.cfg.Run, mine, c.revision); err != nil {
		return fmt.Errorf("taking over run %s: %w", c.cfg.Run, err)
	}
	return c.rules.Resume(s, c.clock.now(), time.Now())
}

// loop owns the rules.
func (c *Conductor) loop(ctx context.Context, msgs chan *nats.Msg) {
	defer close(c.done)
	slices := make(chan []byte, inbox)
	var feeding sync.WaitGroup
	feedCtx, stopFeeding := context.WithCancel(ctx)
	feeding.Go(func() { c.feed(feedCtx, slices) })
	defer feeding.Wait()
	defer stopFeeding()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time // when the run was over
	for {
		var out []fleet.Action
		select {
		case <-ctx.Done():
			return
		case why := <-c.stops:
			out = c.rules.Stop(c.clock.now(), why)
		case m := <-msgs:
			if d, err := fleet.Decode(m.Data); err == nil {
				out = c.rules.Handle(c.clock.now(), d)
			}
		case body := <-slices:
			out = c.rules.HandleSlice(c.clock.now(), body)
		case <-timer.C:
			out = c.rules.Tick(c.clock.now())
			c.publish()
		}
		if c.err = c.act(ctx, out); c.err != nil {
			return
		}
		if over := c.rules.Over(); over && last.IsZero() {
			last = time.Now()
			c.publish()
		}
		if !last.IsZero() && time.Since(last) >= farewells {
			return
		}
		wait := c.rules.Next() - c.clock.now()
		if !last.IsZero() { // the rules want no more ticks
			wait = farewells - time.Since(last)
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

// farewells is for how long workers are still answered when a run is over.
const farewells = 1500 * time.Millisecond

// publish makes the report that others may read.
func (c *Conductor) publish() {
	r := c.rules.Report()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report = r
}

// act does what the rules want done. What must be saved is saved before anything is sent that depends on it.
func (c *Conductor) act(ctx context.Context, actions []fleet.Action) error {
	c.rules.StartsAt(c.clock.now(), time.Now())
	for _, a := range actions {
		if a.Save != nil {
			c.unsaved = a.Save
		}
	}
	if err := c.save(ctx); err != nil {
		if errors.Is(err, ErrTaken) {
			return err
		}
		return nil // the server can't be reached; nothing is sent before it was saved
	}
	if c.rules.Started() {
		select {
		case <-c.started:
		default:
			close(c.started)
		}
	}
	for _, a := range actions {
		if a.Send == nil {
			continue
		}
		subject := allSubject(c.cfg.Run)
		if a.Send.To != "" {
			subject = toSubject(a.Send.To)
		}
		c.line.nc.Publish(subject, a.Send.Encode()) // what is lost is told again
	}
	return nil
}

// save writes the state, if there is one to write, unless somebody else has.
func (c *Conductor) save(ctx context.Context) error {
	if c.unsaved == nil {
		return nil
	}
	if c.rules.Started() {
		c.unsaved = c.rules.State()
	}
	c.unsaved.Holder = c.holder
	data, err := json.Marshal(c.unsaved)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var revision uint64
	if c.revision == 0 {
		revision, err = c.kv.Create(ctx, c.cfg.Run, data)
	} else {
		revision, err = c.kv.Update(ctx, c.cfg.Run, data, c.revision)
	}
	switch {
	case err == nil:
		c.revision, c.unsaved = revision, nil
		return nil
	case errors.Is(err, jetstream.ErrKeyExists):
		return c.whose(ctx, data)
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		// The bucket was deleted: nobody can have it any more, and we know what was in it.
		if kv, err := c.line.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucketName, History: 4, MaxValueSize: 8 << 20}); err == nil {
			c.kv, c.revision = kv, 0
		}
	}
	return err
}

// whose finds out whether a write whose answer was lost was ours.
func (c *Conductor) whose(ctx context.Context, data []byte) error {
	e, err := c.kv.Get(ctx, c.cfg.Run)
	if err != nil {
		return err
	}
	if string(e.Value()) == string(data) {
		c.revision, c.unsaved = e.Revision(), nil
		return nil
	}
	return ErrTaken
}

// feed brings the loop every slice in the stream, from the first one on. A stream that was deleted is made anew; what was in it is
// asked for again when its worker is done.
func (c *Conductor) feed(ctx context.Context, to chan<- []byte) {
	for ctx.Err() == nil {
		c.feedOnce(ctx, to)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (c *Conductor) feedOnce(ctx context.Context, to chan<- []byte) {
	stream, err := c.line.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: streamName(c.cfg.Run), Subjects: []string{subjects + c.cfg.Run + ".slice.>"}, Storage: jetstream.FileStorage, Duplicates: 2 * time.Minute,
		MaxBytes: maxStream, MaxAge: 48 * time.Hour, Discard: jetstream.DiscardNew, Replicas: 1,
	})
	if err != nil {
		return
	}
	born := stream.CachedInfo().Created
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		select {
		case to <- m.Data():
		case <-ctx.Done():
		}
	}, jetstream.PullExpiry(30*time.Second), jetstream.PullHeartbeat(5*time.Second), jetstream.ConsumeErrHandler(func(jetstream.ConsumeContext, error) {}))
	if err != nil {
		return
	}
	defer func() {
		consuming.Stop()
		<-consuming.Closed()
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-consuming.Closed():
			return
		case <-look.C:
		}
		// A stream that was deleted, or deleted and made anew, is not the one that is read.
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		s, err := c.line.js.Stream(ctx, streamName(c.cfg.Run))
		cancel()
		if errors.Is(err, jetstream.ErrStreamNotFound) || err == nil && !s.CachedInfo().Created.Equal(born) {
			return
		}
	}
}

// lookEvery is how often the coordinator looks whether the stream that it reads is still the one that there is.
const lookEvery = 3 * time.Second

// maxStream bounds a run's stream, in bytes. What finds no room stays in the worker's file and is published again.
const maxStream = 4 << 30

// Started is closed when all workers are ready and the start is agreed on.
func (c *Conductor) Started() <-chan struct{} { return c.started }

// Done is closed when the run is over.
func (c *Conductor) Done() <-chan struct{} { return c.done }

// Report is how far the run is; nil at its very beginning.
func (c *Conductor) Report() *fleet.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

// Stop ends the load early; what all workers have measured is kept.
func (c *Conductor) Stop(why string) {
	select {
	case c.stops <- why:
	default:
	}
}

// Wait waits until the run is over. When ctx ends, the load is stopped and what it came to is waited for, for a while.
func (c *Conductor) Wait(ctx context.Context) (*fleet.Report, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		c.Stop("interrupted")
		select {
		case <-c.done:
		case <-time.After(stopFor):
		}
	}
	select {
	case <-c.done:
	default:
		return c.Report(), errors.New("the workers did not stop in time")
	}
	if c.err != nil {
		return nil, c.err
	}
	r := c.Report()
	if r == nil {
		return nil, errors.New("the run ended before it began")
	}
	return r, nil
}

// stopFor is how long workers may take to stop.
const stopFor = 20 * time.Second

// Close ends the coordinator, whatever the run is at. Its state stays with the server.
func (c *Conductor) Close() error {
	c.cancel()
	<-c.done
	c.line.nc.Close()
	return nil
}

// Forget deletes what the server keeps of the run.
func (c *Conductor) Forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := c.line.js.DeleteStream(ctx, streamName(c.cfg.Run))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil
	}
	return errors.Join(err, c.kv.Purge(ctx, c.cfg.Run))
}
