package receipt

import (
	"encoding/base64"
	"errors"
	"fmt"
)

// Rotate hands a log over from its key to the next one: it appends an entry that both sign, and syncs everything that the
// old key signed, so that the old key is not needed again. No gateway may have the log open. When an earlier Rotate to the
// same key was interrupted, this one finishes it. The result is a receipt of form rotation.
func Rotate(cfg Config, next Key) (Receipt, error) {
	cfg.Mode, cfg.Durability, cfg.next = Batched, Fsync, &next
	if cfg.Dir == "" || next.Signer == nil {
		return nil, errors.New("rotation: needs the log's folder and the next private key")
	}
	if next.KID == cfg.Key.KID {
		return nil, fmt.Errorf("rotation: %s is the key already", next.KID)
	}
	gw, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	r, err := gw.rotate(next)
	if cerr := gw.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("rotation: %w", err)
	}
	return r, nil
}

func (gw *Gateway) rotate(next Key) (Receipt, error) {
	gw.commit.Lock()
	defer gw.commit.Unlock()
	g := gw.rotated
	if g == nil {
		var err error
		if g, err = gw.freezeRotation(next); err != nil {
			return nil, err
		}
	}
	if !g.isSigned() {
		old, err := gw.cfg.Key.sign(g.envelopes[0])
		if err != nil {
			return nil, err
		}
		new, err := next.sign(g.envelopes[0])
		if err != nil {
			return nil, err
		}
		gw.sigs.Lock()
		g.sigs, g.missing = [][]byte{old, new}, 0
		gw.saveLater(g)
		gw.sigs.Unlock()
	}
	return entry{g, 0}.receipt(), gw.save()
}

// freezeRotation appends the entry.
func (gw *Gateway) freezeRotation(next Key) (*group, error) {
	at, err := gw.clock.now(gw.cfg.Now(), gw.cfg.ClockBack)
	if err != nil {
		return nil, err
	}
	b64 := base64.RawURLEncoding.EncodeToString
	env, err := appendRotation(nil, gw.cfg.Name, gw.cfg.Key.KID, b64(gw.cfg.Key.Public), next.KID, b64(next.Public), at,
		int64(gw.tree.size), gw.epoch)
	if err != nil {
		return nil, err
	}
	g := &group{form: formRotation, before: gw.tree, envelopes: [][]byte{env}, signed: make(chan struct{})}
	after := g.build()
	if err := gw.store(g); err != nil {
		return nil, err
	}
	gw.admit(g, after)
	return g, nil
}
