package receipt

import (
	"fmt"
	"path/filepath"
)

// A LogView is a log that was read and checked: what a verifier holds against a receipt, and what fsck reports.
type LogView struct {
	Gateway  string `json:"gateway"`
	Entries  uint64 `json:"entries"`
	Groups   int    `json:"groups"`
	Signed   int    `json:"signed_groups"`
	Epochs   int    `json:"epochs"`
	Rotated  int    `json:"rotations"`
	Root     Hash   `json:"root"`
	KID      string `json:"kid"` // of the key that signs next
	Torn     int64  `json:"torn_bytes"`
	TornAt   string `json:"torn_at,omitempty"`
	Repeated int    `json:"repeated_requests"` // the same tenant and request id twice: must be 0

	leaves []Hash
	roots  map[uint64]Hash
	seen   map[key]uint64
	epoch  int64
	last   int64
	sigsOf map[uint64]bool
}

// ReadLog reads a gateway's log and changes nothing. Its error is a *[Damage] when something other than a torn end is wrong.
func ReadLog(dir string) (*LogView, error) { return readLog(osFiles{}, dir) }

func readLog(fs files, dir string) (*LogView, error) {
	v := &LogView{roots: make(map[uint64]Hash), seen: make(map[key]uint64), sigsOf: make(map[uint64]bool)}
	name, good, torn, err := scan(fs, dir, v)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	if v.Torn = torn; torn > 0 {
		v.TornAt = fmt.Sprintf("%s:%d", filepath.Join(dir, name), good)
	}
	return v, nil
}

// group checks one group against all before it.
func (v *LogView) group(g *group, _ place) error {
	for i, raw := range g.envelopes {
		e, err := parseEnvelope(raw)
		if err != nil {
			return fmt.Errorf("seq %d: %w", v.Entries, err)
		}
		switch {
		case e.Seq != int64(v.Entries):
			return fmt.Errorf("an envelope says seq %d at %d", e.Seq, v.Entries)
		case v.Entries > 0 && e.Gateway != v.Gateway:
			return fmt.Errorf("seq %d is of gateway %q, those before of %q", e.Seq, e.Gateway, v.Gateway)
		case v.Entries > 0 && e.KID != v.KID:
			return fmt.Errorf("seq %d is of key %s, and no rotation leads there from %s", e.Seq, e.KID, v.KID)
		case e.Epoch < v.epoch:
			return fmt.Errorf("seq %d is of epoch %d, those before of %d", e.Seq, e.Epoch, v.epoch)
		case e.ArrivedAt.UnixMilli() < v.last:
			return fmt.Errorf("seq %d arrived before the one in front of it", e.Seq)
		}
		if e.Epoch > v.epoch {
			v.epoch = e.Epoch
			v.Epochs++
		}
		v.Gateway, v.KID, v.last = e.Gateway, e.KID, e.ArrivedAt.UnixMilli()
		if e.Type == typeRotate {
			v.KID = e.NewKID
			v.Rotated++
		} else {
			k := keyOf(e.Tenant, e.RequestID)
			if _, twice := v.seen[k]; twice {
				v.Repeated++
			}
			v.seen[k] = v.Entries
		}
		v.leaves = append(v.leaves, g.leaves[i])
		v.Entries++
	}
	v.Groups++
	v.Root = g.root
	v.roots[v.Entries] = g.root
	return nil
}

func (v *LogView) sigs(first uint64, _ [][]byte) error {
	if !v.sigsOf[first] {
		v.sigsOf[first] = true
		v.Signed++
	}
	return nil
}

// Leaf is the leaf hash of a place.
func (v *LogView) Leaf(seq uint64) (Hash, bool) {
	if seq >= v.Entries {
		return Hash{}, false
	}
	return v.leaves[seq], true
}

// rootAt is the tree's hash when it had so many leaves.
func (v *LogView) rootAt(size uint64) Hash {
	var f frontier
	for _, h := range v.leaves[:size] {
		f.add(h)
	}
	return f.root()
}

// logRoots is a LogView as a verifier wants it: Root is the method there, and a field of the report here.
type logRoots struct{ *LogView }

// Root is the hash of the tree of so many leaves.
func (v logRoots) Root(size uint64) (Hash, bool) {
	if size > v.Entries {
		return Hash{}, false
	}
	h, ok := v.roots[size]
	if !ok {
		h = v.rootAt(size)
		v.roots[size] = h
	}
	return h, true
}

// Log returns the view as a verifier takes it.
func (v *LogView) Log() Log { return logRoots{v} }
