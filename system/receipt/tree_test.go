package receipt

import (
	"encoding/json"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// Every proof of every group of every small tree is one that tlog's verifier takes, and the roots are tlog's.
func TestProofsAreThoseOfRFC6962(t *testing.T) {
	t.Parallel()
	var leaves []Hash
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(at))
		for i, x := range at {
			out[i] = stored[x]
		}
		return out, nil
	})
	roots := []Hash{tlog.Hash{}}
	for i := range 70 {
		entry := fmt.Appendf(nil, "entry %d", i)
		h, _ := leafHash(nil, entry)
		if h != tlog.RecordHash(entry) {
			t.Fatalf("leaf hash of %s", entry)
		}
		leaves = append(leaves, h)
		more, err := tlog.StoredHashes(int64(i), entry, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
		root, err := tlog.TreeHash(int64(i+1), reader)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	var old frontier
	for first := range 66 {
		if first > 0 {
			old.add(leaves[first-1])
			if old.root() != roots[first] {
				t.Fatalf("root of %d leaves", first)
			}
		}
		for size := first + 1; size <= len(leaves); size++ {
			n, after := newNodes(&old, leaves[first:size])
			if after.root() != roots[size] || after.size != uint64(size) {
				t.Fatalf("%d leaves added to %d: the root is wrong", size-first, first)
			}
			for i := first; i < size; i++ {
				var proof []tlog.Hash
				var texts [][]byte
				if err := json.Unmarshal(n.appendProof(nil, uint64(i)), &texts); err != nil {
					t.Fatal(err)
				}
				for _, b := range texts {
					proof = append(proof, tlog.Hash(b))
				}
				if err := tlog.CheckRecord(proof, int64(size), roots[size], int64(i), leaves[i]); err != nil {
					t.Fatalf("leaf %d of group %d to %d: %v", i, first, size, err)
				}
			}
		}
	}
}

func TestPeaksAreReadAsWritten(t *testing.T) {
	t.Parallel()
	var f frontier
	for i := range 300 {
		h, _ := leafHash(nil, fmt.Append(nil, i))
		f.add(h)
		var g frontier
		rest, ok := g.read(f.size, append(f.append(nil), 'x'))
		if !ok || string(rest) != "x" || g.root() != f.root() {
			t.Fatalf("%d leaves: %q, %v", f.size, rest, ok)
		}
		if _, ok := g.read(f.size, f.append(nil)[1:]); ok {
			t.Fatalf("%d leaves: peaks that are cut short were read", f.size)
		}
	}
}
