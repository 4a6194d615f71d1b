package bus

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// KV is a directory in a NATS key-value bucket. A claim is created only where there is none and renewed three times within
// its time to live; who can't renew it in that time stops answering for the name by itself, before another may take it.
type KV struct {
	kv  jetstream.KeyValue
	ttl time.Duration
	ctx context.Context // ends with the directory
	end context.CancelFunc
	wg  sync.WaitGroup

	mu     sync.Mutex
	known  map[string]Owner              // guarded by mu: what was looked up
	claims map[string]context.CancelFunc // guarded by mu: ours, by key and epoch
}

// Bucket is the name of the bucket.
const Bucket = "toll_names"

// NewKV opens the bucket, and makes it when it is not there. ttl is how long a name outlives its owner; 3 s when 0. Nodes
// that share a bucket must agree on it.
func NewKV(ctx context.Context, n *NATS, ttl time.Duration) (*KV, error) {
	if ttl <= 0 {
		ttl = 3 * time.Second
	}
	js, err := jetstream.New(n.nc)
	if err != nil {
		return nil, err
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Bucket, TTL: ttl, Description: "who owns which name on the bus"})
	if err != nil {
		return nil, fmt.Errorf("bus: bucket %s: %w", Bucket, err)
	}
	d := &KV{kv: kv, ttl: ttl, known: make(map[string]Owner), claims: make(map[string]context.CancelFunc)}
	d.ctx, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Close stops renewing; the names expire.
func (d *KV) Close() error {
	d.end()
	d.wg.Wait()
	return nil
}

// key is a name as a bucket takes it.
func key(name string) string { return hex.EncodeToString([]byte(name)) }

// Claim makes o the owner, unless another node is. The epoch is the bucket's revision, so it only grows.
func (d *KV) Claim(ctx context.Context, name string, o Owner, lost func()) (uint64, error) {
	o.Epoch = 0
	for {
		revision, err := d.create(ctx, name, o)
		if errors.Is(err, errRace) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return 0, err
		}
		o.Epoch = revision
		renew, stop := context.WithCancel(d.ctx)
		d.mu.Lock()
		d.claims[claimKey(name, o.Epoch)] = stop
		d.mu.Unlock()
		d.wg.Go(func() {
			if d.renew(renew, name, o, revision) && lost != nil {
				lost()
			}
		})
		return o.Epoch, nil
	}
}

var errRace = errors.New("bus: the name was changed meanwhile")

// create writes the claim where there is none, or in the place of an earlier one of the same node.
func (d *KV) create(ctx context.Context, name string, o Owner) (uint64, error) {
	value, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	revision, err := d.kv.Create(ctx, key(name), value)
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return revision, err
	}
	e, err := d.kv.Get(ctx, key(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, errRace
	}
	if err != nil {
		return 0, err
	}
	old, err := parseOwner(e)
	if err != nil {
		return 0, err
	}
	if old.Node != o.Node {
		return 0, fmt.Errorf("%w: %s by %s", ErrTaken, name, old.Node)
	}
	if revision, err = d.kv.Update(ctx, key(name), value, e.Revision()); wrongRevision(err) {
		return 0, errRace
	}
	return revision, err
}

func wrongRevision(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// renew keeps the claim until ctx ends and reports whether it was lost.
func (d *KV) renew(ctx context.Context, name string, o Owner, revision uint64) bool {
	value, err := json.Marshal(o)
	if err != nil {
		return true
	}
	until := time.Now().Add(d.ttl)
	tick := time.NewTicker(d.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		sent := time.Now()
		try, cancel := context.WithDeadline(ctx, until)
		next, err := d.kv.Update(try, key(name), value, revision)
		cancel()
		switch {
		case err == nil:
			revision, until = next, sent.Add(d.ttl)
		case ctx.Err() != nil:
			return false
		case wrongRevision(err) && !d.ours(ctx, name, o, &revision), !time.Now().Before(until):
			return true
		}
	}
}

// ours finds out whether a renewal whose answer was lost has been written.
func (d *KV) ours(ctx context.Context, name string, o Owner, revision *uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, d.ttl/3)
	defer cancel()
	e, err := d.kv.Get(ctx, key(name))
	if err != nil {
		return false
	}
	now, err := parseOwner(e)
	*revision = e.Revision()
	return err == nil && now == o
}

func parseOwner(e jetstream.KeyValueEntry) (o Owner, err error) {
	if err := json.Unmarshal(e.Value(), &o); err != nil {
		return o, fmt.Errorf("bus: bucket %s: the owner of %q: %w", Bucket, e.Key(), err)
	}
	if o.Epoch == 0 { // not renewed yet
		o.Epoch = e.Revision()
	}
	return o, nil
}

// Release gives a claim up.
func (d *KV) Release(ctx context.Context, name string, epoch uint64) error {
	d.mu.Lock()
	stop := d.claims[claimKey(name, epoch)]
	delete(d.claims, claimKey(name, epoch))
	delete(d.known, name)
	d.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	for {
		e, err := d.kv.Get(ctx, key(name))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if o, err := parseOwner(e); err != nil || o.Epoch != epoch {
			return err
		}
		if err := d.kv.Delete(ctx, key(name), jetstream.LastRevision(e.Revision())); !wrongRevision(err) {
			return err
		}
	}
}

func claimKey(name string, epoch uint64) string { return fmt.Sprintf("%d %s", epoch, name) }

// Lookup returns the owner. What was looked up before is good until somebody asks past it: an owner refuses what is not
// meant for it.
func (d *KV) Lookup(ctx context.Context, name string, fresh bool) (Owner, error) {
	d.mu.Lock()
	o, ok := d.known[name]
	d.mu.Unlock()
	if ok && !fresh {
		return o, nil
	}
	e, err := d.kv.Get(ctx, key(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		d.mu.Lock()
		delete(d.known, name)
		d.mu.Unlock()
		return Owner{}, unknown(name)
	}
	if err != nil {
		return Owner{}, fmt.Errorf("looking up %s: %w", name, err)
	}
	if o, err = parseOwner(e); err != nil {
		return Owner{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[name] = o
	return o, nil
}

// maxKnown bounds what a directory remembers.
const maxKnown = 1 << 16
