package receipt

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Gateway gives every arrival its receipt. It is safe for concurrent use and must be closed.
type Gateway struct {
	cfg  Config
	form byte
	text template // of envelopes

	mu      sync.Mutex
	open    *round // takes callers until its leader freezes it; guarded by mu
	room    int    // callers that the last round had, for the next one's memory; guarded by mu
	waiting int    // callers in open and in rounds before it; guarded by mu
	closed  bool   // guarded by mu
	calls   sync.WaitGroup

	commit  sync.Mutex
	tree    frontier      // this and the following are owned by the holder of commit
	seq     int64         // without a tree: the next seq
	epoch   int64         // of this gateway's life
	clock   clock         // of arrivals
	flat    texts         // of synchronous receipts that nothing is kept of: the envelopes
	recent  memory        // of all others
	keys    []Key         // public keys of the log's rotations
	rotated *group        // the log's last group, when it hands over to Config.next already
	log     *log          // nil without Dir
	index   *index        // nil without Dir, or on a file layer that is not the machine's
	flushed chan struct{} // closed when the old generation is in the index; nil when none was turned

	sigs    sync.Mutex
	unsaved []*group // signed, and not in the log yet; guarded by sigs

	queue  chan *group            // frozen, for the notary, in order
	latest atomic.Pointer[signed] // the newest checkpoint
	life   context.Context        // of the loops; ends with stop
	stop   context.CancelFunc
	loops  sync.WaitGroup
	counts counts
}

// A signed is a checkpoint.
type signed struct {
	size uint64
	note []byte
}

// A Ticket says that a receipt will exist: its envelope is frozen, and durable as the gateway's durability says.
type Ticket struct {
	gw       *Gateway
	entry    entry
	envelope []byte // of a gateway that keeps nothing
}

// An Outcome is what one arrival of several came to.
type Outcome struct {
	Receipt Receipt
	Err     error // nil, a *Refusal, or ctx's
}

var errClosed = refuse(Unavailable, "the gateway is closing")

// Sign returns an arrival's receipt. The same tenant, request id and hash always get the same bytes; another hash is refused.
// When ctx ends first the receipt may exist all the same: ask again.
func (gw *Gateway) Sign(ctx context.Context, a Arrival) (Receipt, error) {
	return gw.signTimed(ctx, &a, nil)
}

// SignTimed is Sign, and says where its time went.
func (gw *Gateway) SignTimed(ctx context.Context, a Arrival, t *Timing) (Receipt, error) {
	return gw.signTimed(ctx, &a, t)
}

func (gw *Gateway) signTimed(ctx context.Context, a *Arrival, t *Timing) (Receipt, error) {
	if err := gw.enter(1); err != nil {
		return nil, err
	}
	defer gw.leave(1)
	if err := a.check(); err != nil {
		return nil, err
	}
	if gw.isFlat() {
		return gw.signFlat(a, t)
	}
	var begin time.Time
	if t != nil {
		begin = time.Now()
	}
	e, err := gw.submit(ctx, a)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return gw.finish(ctx, e)
	}
	frozen := time.Now()
	t.Envelope = frozen.Sub(begin)
	r, err := gw.finish(ctx, e)
	t.Sign = time.Since(frozen)
	return r, err
}

// Accept freezes an arrival and returns a ticket for its receipt, before anything is signed.
func (gw *Gateway) Accept(ctx context.Context, a Arrival) (Ticket, error) {
	if err := gw.enter(1); err != nil {
		return Ticket{}, err
	}
	defer gw.leave(1)
	if err := a.check(); err != nil {
		return Ticket{}, err
	}
	if gw.isFlat() {
		_, envelope, err := gw.freezeFlat(&a)
		return Ticket{gw: gw, envelope: envelope}, err
	}
	e, err := gw.submit(ctx, &a)
	return Ticket{gw: gw, entry: e}, err
}

// Wait returns the receipt.
func (t Ticket) Wait(ctx context.Context) (Receipt, error) {
	if t.envelope != nil {
		return t.gw.signEnvelope(nil, t.envelope, nil)
	}
	return t.gw.finish(ctx, t.entry)
}

// Ready reports whether Wait would return at once.
func (t Ticket) Ready() bool {
	return t.entry.g == nil || t.entry.g.form == formSingle || t.entry.g.isSigned()
}

// SignBatch returns the receipts of several arrivals, in their order; what is wrong with one is no other's concern.
func (gw *Gateway) SignBatch(ctx context.Context, all []Arrival) []Outcome {
	out := make([]Outcome, len(all))
	if err := gw.enter(len(all)); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	defer gw.leave(len(all))
	if gw.isFlat() {
		for i := range all {
			if out[i].Err = all[i].check(); out[i].Err == nil {
				out[i].Receipt, out[i].Err = gw.signFlat(&all[i], nil)
			}
		}
		return out
	}
	for from := 0; from < len(all); from += gw.cfg.MaxBatch {
		to := min(from+gw.cfg.MaxBatch, len(all))
		gw.signGroup(ctx, all[from:to], out[from:to])
	}
	return out
}

// signGroup signs arrivals that fit a group.
func (gw *Gateway) signGroup(ctx context.Context, all []Arrival, out []Outcome) {
	r := newRound(len(all))
	at := make([]int, 0, len(all))
	for i := range all {
		if out[i].Err = all[i].check(); out[i].Err == nil {
			r.calls = append(r.calls, call{arrival: all[i], key: keyOf(all[i].Tenant, all[i].RequestID)})
			at = append(at, i)
		}
	}
	gw.lead(r)
	for i := range r.calls {
		c, o := &r.calls[i], &out[at[i]]
		if o.Err = c.err; o.Err == nil {
			o.Receipt, o.Err = gw.finish(ctx, c.entry)
		}
	}
}

// Find returns the ticket of a request that was frozen, a *Refusal not_found otherwise.
func (gw *Gateway) Find(tenant, requestID string) (Ticket, error) {
	if err := gw.enter(0); err != nil {
		return Ticket{}, err
	}
	defer gw.leave(0)
	missing := refuse(NotFound, "no receipt of this tenant for request id %q", requestID)
	if badName(tenant, maxName) != "" || badName(requestID, maxID) != "" {
		return Ticket{}, missing
	}
	gw.commit.Lock()
	defer gw.commit.Unlock()
	if gw.isFlat() {
		if envelope, ok := gw.flat.find(gw.flat.keyOf(tenant, requestID)); ok {
			return Ticket{gw: gw, envelope: envelope}, nil
		}
		return Ticket{}, missing
	}
	e, ok, err := gw.find(keyOf(tenant, requestID), nil)
	if err != nil {
		return Ticket{}, err
	}
	if !ok {
		return Ticket{}, missing
	}
	return Ticket{gw: gw, entry: e}, nil
}

// enter counts n callers in; leave counts them out.
func (gw *Gateway) enter(n int) error {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	if gw.closed {
		return errClosed
	}
	if gw.waiting+n > gw.cfg.MaxWaiting {
		gw.counts.refused.Add(int64(n))
		return refuse(Overloaded, "%d arrivals wait already; try again later", gw.waiting)
	}
	gw.waiting += n
	gw.calls.Add(1)
	return nil
}

func (gw *Gateway) leave(n int) {
	gw.mu.Lock()
	gw.waiting -= n
	gw.mu.Unlock()
	gw.calls.Done()
}

// submit has an arrival frozen together with all that wait, and returns where its envelope is.
func (gw *Gateway) submit(ctx context.Context, a *Arrival) (entry, error) {
	c := call{arrival: *a, key: keyOf(a.Tenant, a.RequestID)}
	gw.mu.Lock()
	r := gw.open
	if r == nil || len(r.calls) == gw.cfg.MaxBatch {
		r = newRound(gw.room)
		gw.open = r
	}
	i := len(r.calls)
	r.calls = append(r.calls, c)
	gw.mu.Unlock()
	if i == 0 { // the first leads: it freezes what joined while it waited for its turn
		gw.lead(r)
	} else {
		select {
		case <-r.committed:
		case <-ctx.Done():
			return entry{}, ctx.Err()
		}
	}
	return r.calls[i].entry, r.calls[i].err
}

func newRound(room int) *round {
	return &round{calls: make([]call, 0, room), committed: make(chan struct{})}
}

// lead takes a round through its commit.
func (gw *Gateway) lead(r *round) {
	gw.commit.Lock()
	runtime.Gosched() // callers that are ready to run join first; without any, this costs nothing and waits for nothing
	gw.mu.Lock()
	if gw.open == r {
		gw.open = nil
	}
	gw.room = len(r.calls)
	gw.mu.Unlock()
	if g := gw.freeze(r.calls); g != nil && gw.cfg.Mode == Batched {
		gw.sign(g) // what comes meanwhile queues, and is the next batch; if it fails, finish tries again and reports
	}
	gw.commit.Unlock()
	close(r.committed)
}

// finish returns the receipt of a frozen envelope, once it is signed.
func (gw *Gateway) finish(ctx context.Context, e entry) (Receipt, error) {
	g := e.g
	if !g.isSigned() {
		switch {
		case g.form == formSingle && gw.cfg.Mode != Sidecar:
			return gw.signEntry(e)
		case gw.queue == nil:
			if err := gw.sign(g); err != nil {
				return nil, err
			}
		}
		if err := g.await(ctx); err != nil {
			return nil, err
		}
	}
	gw.counts.receipts.Add(1)
	return e.receipt(), nil
}

// signEntry signs one envelope of a group whose receipts are single. Whoever signs it first keeps the signature; the
// others, if any, made the same.
func (gw *Gateway) signEntry(e entry) (Receipt, error) {
	g := e.g
	sig, err := gw.cfg.Key.sign(e.envelope())
	if err != nil {
		return nil, err
	}
	gw.sigs.Lock()
	if g.sigs[e.i] == nil {
		g.sigs[e.i] = sig
		if g.missing--; g.missing == 0 {
			gw.saveLater(g)
		}
	}
	gw.sigs.Unlock()
	gw.counts.receipts.Add(1)
	env := e.envelope()
	return appendSingle(make([]byte, 0, len(singleHead)+len(env)+singleTail), env, g.leaves[e.i], sig), nil
}

// saveLater marks a group as signed. The caller holds sigs.
func (gw *Gateway) saveLater(g *group) {
	if gw.log != nil {
		gw.unsaved = append(gw.unsaved, g)
	}
	close(g.signed)
}

// sign makes what is missing of a group's signatures with the local key.
func (gw *Gateway) sign(g *group) error {
	if g.form == formSingle {
		for i := range g.envelopes {
			if _, err := gw.signEntry(entry{g, i}); err != nil {
				return err
			}
		}
		return nil
	}
	sig, err := gw.cfg.Key.sign(appendCheckpoint(nil, gw.cfg.Name, g.size(), g.root))
	if err != nil {
		return err
	}
	gw.settle(g, sig)
	return nil
}

// settle gives a group of form batch its checkpoint's signature.
func (gw *Gateway) settle(g *group, sig []byte) {
	gw.sigs.Lock()
	defer gw.sigs.Unlock()
	if g.isSigned() {
		return
	}
	g.sigs, g.missing = [][]byte{sig}, 0
	note := g.setNote(gw.cfg.Name, gw.cfg.Key.Public)
	if l := gw.latest.Load(); l == nil || l.size < g.size() {
		gw.latest.Store(&signed{g.size(), note})
	}
	gw.saveLater(g)
}

// Checkpoint returns the newest signed checkpoint of the log.
func (gw *Gateway) Checkpoint() ([]byte, error) {
	if gw.isFlat() {
		return nil, refuse(NotFound, "a gateway that keeps no log has no checkpoint")
	}
	if gw.form == formSingle {
		gw.commit.Lock()
		size, root := gw.tree.size, gw.tree.root()
		gw.commit.Unlock()
		if l := gw.latest.Load(); l != nil && l.size == size {
			return l.note, nil
		}
		text := appendCheckpoint(nil, gw.cfg.Name, size, root)
		sig, err := gw.cfg.Key.sign(text)
		if err != nil {
			return nil, err
		}
		s := &signed{size, appendNote(nil, text, gw.cfg.Name, gw.cfg.Key.Public, sig)}
		gw.latest.Store(s)
		return s.note, nil
	}
	if l := gw.latest.Load(); l != nil {
		return l.note, nil
	}
	return nil, refuse(NotFound, "nothing was signed yet")
}

// Close stops taking arrivals, lets those in hand finish, saves the signatures and closes the log. Envelopes that a notary
// did not sign within the configured timeout are signed when the log is opened again.
func (gw *Gateway) Close() error {
	gw.mu.Lock()
	if gw.closed {
		gw.mu.Unlock()
		return nil
	}
	gw.closed = true
	gw.mu.Unlock()
	gw.calls.Wait()
	if gw.queue != nil {
		close(gw.queue)
		done := make(chan struct{})
		go func() { gw.loops.Wait(); close(done) }()
		t := time.NewTimer(gw.cfg.Timeout)
		select {
		case <-done:
		case <-t.C:
		}
		t.Stop()
		gw.stop()
		<-done
	}
	gw.stop()
	gw.loops.Wait()
	if gw.log == nil {
		return nil
	}
	gw.commit.Lock()
	defer gw.commit.Unlock()
	var err error
	if gw.index != nil {
		err = errors.Join(gw.complete(), gw.index.db.Close())
	}
	return errors.Join(gw.save(), err, gw.log.close())
}

// complete puts into the index what is signed, if all before it is there.
func (gw *Gateway) complete() error {
	if gw.flushed != nil {
		select {
		case <-gw.flushed:
		default:
			return nil // it is completed when the log is opened again
		}
	}
	n := 0
	for n < len(gw.recent.groups) && (gw.queue == nil || gw.recent.groups[n].isSigned()) {
		n++
	}
	return gw.flush(context.Background(), gw.recent.groups[:n])
}
