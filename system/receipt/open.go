package receipt

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
)

// Open starts a gateway. With Dir it reads the whole log first, checks it, and signs what was acknowledged and not signed;
// a log that is damaged, or another's, or whose key is another, is an error, and nothing is changed.
func Open(cfg Config) (*Gateway, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("receipt gateway: %w", err)
	}
	gw := &Gateway{
		cfg: cfg, form: formBatch, epoch: 1, text: newTemplate(cfg.Name, cfg.Key.KID),
		flat: newTexts(cfg.Remember), recent: memory{recall: newRecall[uint64](cfg.Remember)},
	}
	if cfg.Mode == Sync {
		gw.form = formSingle
	}
	gw.life, gw.stop = context.WithCancel(context.Background())
	var unsigned []*group
	if cfg.Dir != "" {
		if unsigned, err = gw.openLog(); err != nil {
			gw.stop()
			return nil, fmt.Errorf("receipt gateway: %w", err)
		}
	}
	if cfg.Mode == Sidecar || cfg.Mode == Inproc {
		gw.queue = make(chan *group, cfg.MaxUnsigned+len(unsigned))
	}
	if err := gw.replay(unsigned); err != nil {
		gw.stop()
		return nil, errors.Join(fmt.Errorf("receipt gateway: %w", err), gw.shut())
	}
	if gw.queue != nil {
		n := cfg.Notary
		if cfg.Mode == Inproc {
			n = local{&gw.cfg.Key, cfg.Name}
		}
		gw.loops.Go(func() { gw.notarize(gw.life, n) })
	}
	return gw, nil
}

// shut gives up log and index without writing to them.
func (gw *Gateway) shut() error {
	var err error
	if gw.index != nil {
		err = gw.index.db.Close()
	}
	if gw.log != nil {
		err = errors.Join(err, gw.log.close())
	}
	return err
}

// openLog reads the log and returns the groups without signatures.
func (gw *Gateway) openLog() (unsigned []*group, err error) {
	cfg := &gw.cfg
	lock, err := lockLog(cfg.files, cfg.Dir)
	if err != nil {
		return nil, err
	}
	gw.log = &log{files: cfg.files, dir: cfg.Dir, sync: cfg.Durability == Fsync, most: cfg.Segment, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, gw.shut())
		}
	}()
	if _, machine := cfg.files.(osFiles); machine {
		if gw.index, err = openIndex(cfg.Dir, cfg.Events); err != nil {
			return nil, err
		}
	}
	r := &reading{gw: gw, waits: make(map[uint64]*group)}
	if gw.index != nil {
		r.through, r.root = gw.index.through()
	}
	last, good, torn, err := scan(cfg.files, cfg.Dir, r)
	if err == nil {
		err = r.end()
	}
	if errors.Is(err, errOtherIndex) && r.through > 0 {
		cfg.Events(Event{"index", err.Error() + "; it is made again"})
		if err = gw.index.clear(); err == nil {
			r = r.anew()
			if last, good, torn, err = scan(cfg.files, cfg.Dir, r); err == nil {
				err = r.end()
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if torn > 0 {
		gw.counts.torn.Add(torn)
		cfg.Events(Event{"torn-tail", fmt.Sprintf("%d bytes at %s:%d were not whole and are cut off", torn, last, good)})
	}
	if last != "" {
		if err := gw.log.resume(last, good, torn); err != nil {
			return nil, err
		}
	}
	return r.unsigned, nil
}

// A reading is a log being read into a gateway.
type reading struct {
	gw      *Gateway
	through uint64 // the index is complete up to here, where the log has this root
	root    Hash

	pending  []*group          // behind through, in order
	waits    map[uint64]*group // those of them without signatures, by their first seq
	unsigned []*group
	last     *group
	names    int // requests in pending
}

// anew forgets what was read.
func (r *reading) anew() *reading {
	r.gw.tree, r.gw.recent.groups, r.gw.keys = frontier{}, nil, nil
	return &reading{gw: r.gw, waits: make(map[uint64]*group)}
}

func (r *reading) group(g *group, at place) error {
	g.at, g.signed = at, make(chan struct{})
	g.prepare()
	r.gw.tree, r.last = g.after(), g
	if g.form == formRotation {
		if err := r.rotation(g); err != nil {
			return err
		}
	}
	if g.size() == r.through && g.root != r.root {
		return errOtherIndex
	}
	if g.size() > r.through {
		r.pending = append(r.pending, g)
		r.waits[g.before.size] = g
		r.names += len(g.envelopes)
	}
	return nil
}

// errOtherIndex is an index that was made of another log.
var errOtherIndex = errors.New("the index is not of this log")

// rotation notes the keys of a rotation.
func (r *reading) rotation(g *group) error {
	e, err := parseEnvelope(g.envelopes[0])
	if err != nil {
		return err
	}
	for kid, x := range map[string]string{e.KID: e.X, e.NewKID: e.NewX} {
		public, err := base64.RawURLEncoding.DecodeString(x)
		if err != nil || len(public) != ed25519.PublicKeySize || KID(public) != kid {
			return fmt.Errorf("the rotation at seq %d names a key that its kid is not of", g.before.size)
		}
		r.gw.keys = append(r.gw.keys, PublicKey(public))
	}
	return nil
}

func (r *reading) sigs(first uint64, sigs [][]byte) error {
	g := r.waits[first]
	if g == nil {
		return nil // in the index, or the same signatures once more
	}
	want := 1
	switch g.form {
	case formSingle:
		want = len(g.envelopes)
	case formRotation:
		want = 2
	}
	if len(sigs) != want {
		return fmt.Errorf("%d signatures of the group of seq %d, want %d", len(sigs), first, want)
	}
	delete(r.waits, first)
	g.sigs, g.missing = sigs, 0
	if r.names > r.gw.cfg.Remember {
		return r.flush()
	}
	return nil
}

// flush moves the signed groups at the front of pending into the index.
func (r *reading) flush() error {
	n := 0
	for n < len(r.pending) && r.pending[n].missing == 0 {
		r.names -= len(r.pending[n].envelopes)
		n++
	}
	if n == 0 || r.gw.index == nil {
		return nil
	}
	done := r.pending[:n]
	r.pending = append([]*group(nil), r.pending[n:]...)
	return r.gw.index.add(done)
}

// end takes what was read into the gateway.
func (r *reading) end() error {
	gw := r.gw
	if gw.tree.size < r.through {
		return errOtherIndex
	}
	if r.last != nil {
		if err := r.follow(); err != nil {
			return err
		}
	}
	for _, g := range r.pending {
		for i, k := range g.keys() {
			if k != (key{}) {
				gw.recent.put(k, g.before.size+uint64(i))
			}
		}
		gw.recent.groups = append(gw.recent.groups, g)
		if g.missing > 0 {
			r.unsigned = append(r.unsigned, g)
			continue
		}
		if err := gw.noteOf(g); err != nil {
			return err
		}
		close(g.signed)
	}
	return nil
}

// follow continues the log's epochs, times and key.
func (r *reading) follow() error {
	gw := r.gw
	e, err := parseEnvelope(r.last.envelopes[len(r.last.envelopes)-1])
	if err != nil {
		return err
	}
	gw.epoch, gw.clock.last = e.Epoch+1, e.ArrivedAt.UnixMilli()
	kid := e.KID
	if e.Type == typeRotate {
		kid = e.NewKID
	}
	switch {
	case e.Gateway != gw.cfg.Name:
		return fmt.Errorf("the log in %s is that of gateway %q, not of %q", gw.cfg.Dir, e.Gateway, gw.cfg.Name)
	case gw.cfg.next != nil && e.Type == typeRotate && e.KID == gw.cfg.Key.KID && kid == gw.cfg.next.KID:
		gw.rotated = r.last
	case kid != gw.cfg.Key.KID:
		return fmt.Errorf("the log's key is %s, the one given %s; hand over with `toll receipt keys rotate`", kid, gw.cfg.Key.KID)
	}
	return nil
}

// noteOf makes the checkpoint of a group that was read, by the key that signed it.
func (gw *Gateway) noteOf(g *group) error {
	if g.form != formBatch {
		return nil
	}
	e, err := parseEnvelope(g.envelopes[0])
	if err != nil {
		return err
	}
	for _, k := range append(gw.keys, gw.cfg.Key) {
		if k.KID == e.KID {
			note := g.setNote(gw.cfg.Name, k.Public)
			if l := gw.latest.Load(); l == nil || l.size < g.size() {
				gw.latest.Store(&signed{g.size(), note})
			}
			return nil
		}
	}
	return fmt.Errorf("the key %s of seq %d is neither the log's current one nor one of its rotations", e.KID, g.before.size)
}

// replay signs what was acknowledged and not signed, in order; a notary is asked later. The envelopes are frozen and
// Ed25519 is deterministic, so whoever held such a receipt gets the same bytes again.
func (gw *Gateway) replay(unsigned []*group) error {
	for _, g := range unsigned {
		gw.counts.replayed.Add(int64(len(g.envelopes)))
		switch {
		case g == gw.rotated: // Rotate signs it
		case g.form == formRotation:
			return fmt.Errorf("the rotation at seq %d lacks its signatures; finish it with `toll receipt keys rotate`", g.before.size)
		case g.form == formSingle && gw.cfg.Key.Signer == nil:
			return fmt.Errorf("seq %d to %d wait for single signatures, which a notary does not make; open the log once with the key in mode %s",
				g.before.size, g.size()-1, Sync)
		case gw.queue != nil && g.form == formBatch:
			gw.queue <- g
		default:
			if err := gw.sign(g); err != nil {
				return err
			}
		}
	}
	if len(unsigned) > 0 {
		gw.cfg.Events(Event{"replayed", fmt.Sprintf("%d groups of %s were acknowledged and not signed", len(unsigned), filepath.Base(gw.cfg.Dir))})
	}
	return nil
}
