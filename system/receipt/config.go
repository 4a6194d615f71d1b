package receipt

import (
	"context"
	"fmt"
	"time"
)

// A Mode says who signs, and when.
type Mode string

// The modes.
const (
	Sync    Mode = "sync"          // the caller signs its own envelope; form single
	Batched Mode = "batch"         // one signature for all that waited while the last one was made; form batch
	Sidecar Mode = "async-sidecar" // another process, which alone holds the key, signs what was frozen; form batch
	Inproc  Mode = "async-inproc"  // a goroutine of this process does: for comparison, it keeps the key in reach
)

// A Durability says what an acknowledgement outlives.
type Durability string

// The durabilities.
const (
	None  Durability = "none"  // the process (with Dir: written, not synced)
	Fsync Durability = "fsync" // a power cut
)

// A Notary signs checkpoints of what was frozen.
type Notary interface {
	// Notarize returns the signature of the checkpoint of b. It must give the same bytes when it is asked again.
	Notarize(ctx context.Context, b *Frozen) ([]byte, error)
}

// A Frozen is entries at the right edge of a log, as a notary is shown them.
type Frozen struct {
	First     uint64 // seq of the first
	Root      Hash   // of the tree with them
	Peaks     []byte // of the tree before them, 32 bytes each, the largest first
	Envelopes [][]byte
}

// Config says how a gateway works. Zero values are those named.
type Config struct {
	Name       string // of the gateway, and origin of its checkpoints; required
	Key        Key    // required; of mode async-sidecar the public key is enough
	Mode       Mode   // sync
	Notary     Notary // of mode async-sidecar; required there
	Dir        string // the log's folder; empty keeps nothing, and then Durability must be none
	Durability Durability

	MaxBatch    int           // entries of a group: 256
	MaxWaiting  int           // arrivals that may wait to be frozen: 16384
	MaxUnsigned int           // groups that may wait for their signature: 1024
	Remember    int           // request ids kept in memory; without Dir, that is how long a retry is known: 65536
	ClockBack   time.Duration // how far the clock may step back; arrivals keep the last time meanwhile: 2 s
	Segment     int64         // bytes of a log's segment: 64 MiB
	Timeout     time.Duration // of one try of the notary: 10 s
	Now         func() time.Time
	Events      func(Event) // told of what no caller hears; nil for nobody

	files files // nil is the machine's
	next  *Key  // Rotate's; nil otherwise
}

// A Timing is how long the named parts of one Sign took.
type Timing struct {
	Envelope time.Duration // until the envelope is frozen: id looked up, place taken; with a log, written and synced
	Sign     time.Duration // the signature alone; of a batch or by a notary, the wait for it
}

// An Event is something that no caller is told.
type Event struct {
	Kind   string // torn-tail | replayed | notary | index
	Detail string
}

func (c Config) withDefaults() (Config, error) {
	if why := badGateway(c.Name); why != "" {
		return c, fmt.Errorf("gateway %q %s", c.Name, why)
	}
	if c.Mode == "" {
		c.Mode = Sync
	}
	if c.Durability == "" {
		c.Durability = None
	}
	for _, d := range []struct {
		to *int
		v  int
	}{{&c.MaxBatch, 256}, {&c.MaxWaiting, 16 << 10}, {&c.MaxUnsigned, 1024}, {&c.Remember, 64 << 10}} {
		if *d.to <= 0 {
			*d.to = d.v
		}
	}
	if c.ClockBack <= 0 {
		c.ClockBack = 2 * time.Second
	}
	if c.Segment <= 0 {
		c.Segment = 64 << 20
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Events == nil {
		c.Events = func(Event) {}
	}
	if c.files == nil {
		c.files = osFiles{}
	}
	switch {
	case c.Mode != Sync && c.Mode != Batched && c.Mode != Sidecar && c.Mode != Inproc:
		return c, fmt.Errorf("mode %q is not one of %s, %s, %s, %s", c.Mode, Sync, Batched, Sidecar, Inproc)
	case c.Durability != None && c.Durability != Fsync:
		return c, fmt.Errorf("durability %q is not %s or %s", c.Durability, None, Fsync)
	case c.Durability == Fsync && c.Dir == "":
		return c, fmt.Errorf("durability %s needs a folder for the log", Fsync)
	case c.MaxBatch > MaxBulk:
		return c, fmt.Errorf("a batch of %d is more than %d", c.MaxBatch, MaxBulk)
	case len(c.Key.Public) == 0:
		return c, fmt.Errorf("no key")
	case c.Mode == Sidecar && c.Notary == nil:
		return c, fmt.Errorf("mode %s without a notary", Sidecar)
	case c.Mode != Sidecar && c.Key.Signer == nil:
		return c, fmt.Errorf("mode %s needs the private key", c.Mode)
	}
	return c, nil
}
