package receipt

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// counts are what a gateway's metrics show.
type counts struct {
	frozen, receipts, repeated, refused, conflicts, groups, replayed, torn atomic.Int64
}

// A clock gives arrivals times that never go back.
type clock struct {
	last   int64    // ms
	second int64    // that text is of
	text   [40]byte // of which 24 count: formatting needs room behind them
}

// now returns the time of an arrival, formatted. It is the last one's again when the clock stepped back within the bound.
func (c *clock) now(t time.Time, back time.Duration) ([]byte, error) {
	ms := t.UnixMilli()
	if behind := c.last - ms; behind > 0 {
		if behind > back.Milliseconds() {
			return nil, refuse(Unavailable, "the clock is %v behind the last arrival; set it right", time.Duration(behind)*time.Millisecond)
		}
		ms = c.last
	}
	c.last = ms
	if s := ms / 1000; s != c.second || c.text[0] == 0 {
		c.second = s
		time.UnixMilli(ms).UTC().AppendFormat(c.text[:0], timeLayout)
	}
	m := ms % 1000
	c.text[20], c.text[21], c.text[22] = byte('0'+m/100), byte('0'+m/10%10), byte('0'+m%10)
	return c.text[:len(timeLayout)], nil
}

// isFlat reports whether the gateway keeps neither log nor tree: each receipt is signed by itself, and ids are remembered.
func (gw *Gateway) isFlat() bool { return gw.cfg.Mode == Sync && gw.cfg.Dir == "" }

// signFlat signs an arrival of a flat gateway. Its memory is the receipt's and the signature's, no more. t may be nil.
func (gw *Gateway) signFlat(a *Arrival, t *Timing) (Receipt, error) {
	var begin time.Time
	if t != nil {
		begin = time.Now()
	}
	buf, envelope, err := gw.freezeFlat(a)
	if err != nil {
		return nil, err
	}
	if t != nil {
		t.Envelope = time.Since(begin)
	}
	return gw.signEnvelope(buf, envelope, t)
}

// signEnvelope makes the receipt of a frozen envelope. buf is the start of the receipt up to the envelope's end, with room
// for the rest, or nil; t may be nil.
func (gw *Gateway) signEnvelope(buf, envelope []byte, t *Timing) (Receipt, error) {
	var begin time.Time
	if t != nil {
		begin = time.Now()
	}
	sig, err := gw.cfg.Key.sign(envelope)
	if err != nil {
		return nil, err
	}
	if t != nil {
		t.Sign = time.Since(begin)
	}
	gw.counts.receipts.Add(1)
	if buf == nil {
		buf = append(append(make([]byte, 0, len(singleHead)+len(envelope)+singleTail), singleHead...), envelope...)
	}
	return finishSingle(buf, leafInPlace(buf), sig), nil
}

// leafInPlace is the leaf hash of the envelope at the end of a receipt's start: the byte in front of it, which nobody else
// reads, is for that moment the hash's prefix.
func leafInPlace(buf []byte) Hash {
	const last = len(singleHead) - 1
	buf[last] = 0
	h := Hash(sha256.Sum256(buf[last:]))
	buf[last] = singleHead[last]
	return h
}

// freezeFlat gives an arrival its place and its envelope. buf is nil when the envelope was frozen before.
func (gw *Gateway) freezeFlat(a *Arrival) (buf, envelope []byte, err error) {
	k := gw.flat.keyOf(a.Tenant, a.RequestID)
	gw.commit.Lock()
	defer gw.commit.Unlock()
	if envelope, ok := gw.flat.find(k); ok {
		return nil, envelope, gw.again(envelope, a)
	}
	at, err := gw.clock.now(gw.cfg.Now(), gw.cfg.ClockBack)
	if err != nil {
		return nil, nil, err
	}
	room := len(singleHead) + 380 + len(a.RequestID) + len(a.Tenant) + len(a.Namespace) + len(a.PolicyID) + len(gw.cfg.Name) + singleTail
	buf, err = gw.text.append(append(make([]byte, 0, room), singleHead...), a, at, gw.seq, gw.epoch)
	if err != nil {
		return nil, nil, invalid("", "%v", err)
	}
	envelope = buf[len(singleHead):len(buf):len(buf)]
	gw.seq++
	gw.flat.put(k, envelope)
	gw.counts.frozen.Add(1)
	return buf, envelope, nil
}

// again says whether an arrival whose id is known is the same request.
func (gw *Gateway) again(envelope []byte, a *Arrival) error {
	if string(hashOf(envelope)) != a.RequestHash {
		gw.counts.conflicts.Add(1)
		return refuse(Conflict, "request id %q was given a receipt for another hash", a.RequestID)
	}
	gw.counts.repeated.Add(1)
	return nil
}

// find looks an envelope up in memory, in open, which is being made or nil, and in the index. The caller holds commit.
func (gw *Gateway) find(k key, open *group) (e entry, ok bool, err error) {
	if e, ok = gw.recent.find(k, open); ok || gw.index == nil {
		return e, ok, nil
	}
	at, i, ok := gw.index.find(k)
	if !ok {
		return e, false, nil
	}
	g, err := gw.log.read(at)
	if err != nil {
		return e, false, refuse(Unavailable, "the log can't be read: %v", err)
	}
	g.at, g.signed, g.sigs = at, make(chan struct{}), gw.index.sigs(g.before.size)
	if i >= len(g.envelopes) || len(g.sigs) == 0 {
		return e, false, refuse(Unavailable, "the index does not fit the log; remove %s and restart", indexFile)
	}
	if err := gw.noteOf(g); err != nil {
		return e, false, refuse(Unavailable, "the log can't be read: %v", err)
	}
	close(g.signed)
	return entry{g, i}, true, nil
}

// freeze gives arrivals their places and envelopes in a new group and makes it durable; each call gets its outcome. The caller
// holds commit. Without a new envelope there is no group; on an error nothing of it remains.
func (gw *Gateway) freeze(calls []call) *group {
	g := &group{form: gw.form, before: gw.tree, signed: make(chan struct{})}
	fail := func(err error) *group {
		for i := range calls {
			if c := &calls[i]; c.entry.g == g || c.entry.g == nil && c.err == nil {
				c.entry, c.err = entry{}, err
			}
		}
		return nil
	}
	at, err := gw.clock.now(gw.cfg.Now(), gw.cfg.ClockBack)
	if err == nil && gw.queue != nil && len(gw.queue) == cap(gw.queue) {
		err = refuse(Overloaded, "%d batches wait for the notary; try again later", len(gw.queue))
	}
	if err != nil {
		return fail(err)
	}
	slab := make([]byte, 0, 400*len(calls))
	g.envelopes = make([][]byte, 0, len(calls))
	for i := range calls {
		c := &calls[i]
		e, known, err := gw.find(c.key, g)
		if err != nil {
			c.err = err
			continue
		}
		if known {
			if c.err = gw.again(e.envelope(), &c.arrival); c.err == nil {
				c.entry = e
			}
			continue
		}
		from := len(slab)
		seq := int64(g.before.size) + int64(len(g.envelopes))
		if slab, err = gw.text.append(slab, &c.arrival, at, seq, gw.epoch); err != nil {
			slab, c.err = slab[:from], invalid("", "%v", err)
			continue
		}
		c.entry = entry{g, len(g.envelopes)}
		g.envelopes = append(g.envelopes, slab[from:len(slab):len(slab)])
		gw.recent.put(c.key, uint64(seq))
	}
	if len(g.envelopes) == 0 {
		return nil
	}
	after := g.build()
	if err := gw.store(g); err != nil {
		for i := range calls {
			if calls[i].entry.g == g {
				gw.recent.drop(calls[i].key)
			}
		}
		return fail(err)
	}
	gw.admit(g, after)
	return g
}

// store writes a group, and the signatures of earlier ones, and syncs both at once.
func (gw *Gateway) store(g *group) error {
	if gw.log == nil {
		return nil
	}
	gw.sigs.Lock()
	save := gw.unsaved
	gw.unsaved = nil
	gw.sigs.Unlock()
	records := appendGroup(make([]byte, 0, 512*len(g.envelopes)+1024), g)
	for _, s := range save {
		records = appendSigs(records, s)
	}
	at, err := gw.log.append(records, g.before.size)
	if err != nil {
		gw.sigs.Lock()
		gw.unsaved = append(save, gw.unsaved...)
		gw.sigs.Unlock()
		return err
	}
	g.at = at
	return nil
}

// save writes the signatures that are not in the log yet. The caller holds commit.
func (gw *Gateway) save() error {
	gw.sigs.Lock()
	save := gw.unsaved
	gw.unsaved = nil
	gw.sigs.Unlock()
	if len(save) == 0 {
		return nil
	}
	var records []byte
	for _, s := range save {
		records = appendSigs(records, s)
	}
	_, err := gw.log.append(records, gw.tree.size)
	return err
}

// admit takes a group that is durable into the gateway's state.
func (gw *Gateway) admit(g *group, after frontier) {
	gw.tree = after
	g.prepare()
	gw.counts.frozen.Add(int64(len(g.envelopes)))
	gw.counts.groups.Add(1)
	gw.recent.groups = append(gw.recent.groups, g)
	if gw.queue != nil {
		gw.queue <- g // there is room: the holder of commit alone puts something in
	}
	if gw.recent.full() {
		gw.turnOver()
	}
}

// prepare makes the room for a group's signatures.
func (g *group) prepare() {
	g.sigs, g.missing = nil, 1
	if g.form == formSingle {
		g.sigs, g.missing = make([][]byte, len(g.envelopes)), len(g.envelopes)
	}
}

// turnOver begins a new generation of recent. With an index the old one is kept until it is in there, and the current one
// grows meanwhile: what was acknowledged is never forgotten.
func (gw *Gateway) turnOver() {
	switch {
	case gw.log == nil:
		gw.recent.turn()
		return
	case gw.index == nil:
		return // a log without an index is remembered whole: a test's
	case gw.flushed != nil:
		select {
		case <-gw.flushed:
		default:
			return
		}
	}
	done := make(chan struct{})
	gw.recent.turn()
	groups := gw.recent.older
	gw.flushed = done
	gw.loops.Go(func() {
		if err := gw.flush(gw.life, groups); err != nil {
			gw.cfg.Events(Event{"index", fmt.Sprintf("%v; it is completed when the log is opened again", err)})
			return
		}
		close(done)
	})
}

// maxFlush bounds the groups of one transaction of the index.
const maxFlush = 512

// flush puts groups into the index, in order. A group that nobody waited for is signed here.
func (gw *Gateway) flush(ctx context.Context, groups []*group) error {
	for len(groups) > 0 {
		n := min(len(groups), maxFlush)
		for _, g := range groups[:n] {
			if !g.isSigned() && gw.queue == nil {
				if err := gw.sign(g); err != nil {
					return err
				}
			}
			if err := g.await(ctx); err != nil {
				return fmt.Errorf("the group of seq %d is not signed yet", g.before.size)
			}
		}
		if err := gw.index.add(groups[:n]); err != nil {
			return err
		}
		groups = groups[n:]
	}
	return nil
}

// notarize has frozen groups signed, in order, until the queue is closed or ctx ends.
func (gw *Gateway) notarize(ctx context.Context, n Notary) {
	for g := range gw.queue {
		f := &Frozen{First: g.before.size, Root: g.root, Peaks: g.before.append(nil), Envelopes: g.envelopes}
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
			sig, err := gw.ask(ctx, n, f, g)
			if err == nil {
				gw.settle(g, sig)
				break
			}
			if ctx.Err() != nil {
				return
			}
			gw.cfg.Events(Event{"notary", err.Error()})
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
	}
}

// ask asks the notary once, and believes only a signature that verifies.
func (gw *Gateway) ask(ctx context.Context, n Notary, f *Frozen, g *group) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gw.cfg.Timeout)
	defer cancel()
	sig, err := n.Notarize(ctx, f)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(gw.cfg.Key.Public, appendCheckpoint(nil, gw.cfg.Name, g.size(), g.root), sig) {
		return nil, errors.New("the notary's signature is not that of the checkpoint by the gateway's key")
	}
	return sig, nil
}

// local is a notary with the key in this process.
type local struct {
	key  *Key
	name string
}

// Notarize signs the checkpoint.
func (l local) Notarize(_ context.Context, b *Frozen) ([]byte, error) {
	return l.key.sign(appendCheckpoint(nil, l.name, b.First+uint64(len(b.Envelopes)), b.Root))
}
