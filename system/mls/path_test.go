package mls

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomTree is a tree of some leaves, of which some were removed and some added behind a path, which made them unmerged.
func randomTree(rng *rand.Rand, s *suite) *tree {
	leaf := func() *LeafNode {
		return &LeafNode{EncryptionKey: []byte{1}, SignatureKey: []byte{2}, Source: FromUpdate}
	}
	t := newTree(s, leaf())
	for range rng.IntN(40) {
		t.add(leaf())
	}
	for range rng.IntN(30) {
		switch i := rng.Uint32N(t.width()); {
		case t.leaf(i) == nil || rng.IntN(4) == 0:
			t.add(leaf())
		case i > 0 && rng.IntN(2) == 0:
			t.remove(i)
			t.truncate()
		default:
			for _, step := range t.filteredPath(i) {
				t.setParent(step.node, newParent([]byte{byte(step.node)}, nil))
			}
			t.touch(2 * i)
		}
	}
	return t
}

// TestRecipientsAreCountedAsTheyAreListed compares what is known of a copath from its tree hashes with the list of the nodes
// that its path secret is encrypted to.
func TestRecipientsAreCountedAsTheyAreListed(t *testing.T) {
	t.Parallel()
	s := must(suiteOf(X25519AES128))(t)
	rng := rand.New(rand.NewPCG(3, 9))
	places := 0
	for range 300 {
		tr := randomTree(rng, s)
		if rng.IntN(2) == 0 {
			tr.hash()
		}
		tr = tr.clone()
		var added []uint32
		for range rng.IntN(4) {
			added = append(added, tr.add(&LeafNode{Source: FromUpdate}))
		}
		slices.Sort(added)
		for x := range tr.size {
			to := tr.recipients(nil, x, added)
			if n := tr.reach(x, added); n != len(to) {
				t.Fatalf("node %d of %d: %d recipients are counted, %v listed", x, tr.size, n, to)
			}
			for self := range tr.width() {
				if tr.leaf(self) == nil || !under(2*self, x) || slices.Contains(added, self) {
					continue
				}
				keys := make(privateKeys)
				for y := 2 * self; ; y = parentOf(y) {
					if rng.IntN(2) == 0 && !tr.node(y).blank() {
						keys[y] = &privateKey{}
					}
					if y == x {
						break
					}
				}
				want := slices.IndexFunc(to, func(y uint32) bool { return under(2*self, y) && keys[y] != nil })
				y, got, found := tr.place(x, self, keys, added)
				if found != (want >= 0) || found && (got != want || to[got] != y) {
					t.Fatalf("leaf %d below node %d of %d: node %d at %d (%v), want place %d of %v", self, x, tr.size, y, got, found, want, to)
				}
				places++
			}
		}
	}
	t.Logf("%d places compared", places)
}

// TestSealedCiphertextsAreFound reads vectors of ciphertexts of all kinds of lengths, which stay encoded.
func TestSealedCiphertextsAreFound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 32, 48, 63, 64, 65, 133, 20_000}
	for _, kinds := range []int{1, 2, len(sizes)} {
		for range 50 {
			var list []Ciphertext
			for range rng.IntN(60) {
				list = append(list, Ciphertext{make([]byte, sizes[rng.IntN(kinds)]), bytes.Repeat([]byte{byte(len(list))}, sizes[rng.IntN(kinds)])})
			}
			made := PathNode{PublicKey: []byte{1}, Ciphertexts: list}
			data := made.append(nil)
			n := must(decode(data, readPathNode))(t)
			if n.ciphertexts() != len(list) || made.ciphertexts() != len(list) || !bytes.Equal(n.append(nil), data) {
				t.Fatalf("%d ciphertexts are read of %d, or encoded as others", n.ciphertexts(), len(list))
			}
			for i := range list {
				if got := n.ciphertext(i); !bytes.Equal(got.append(nil), list[i].append(nil)) {
					t.Fatalf("ciphertext %d of %d is another", i, len(list))
				}
			}
		}
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte{3, 1, 9}, "malformed: at byte 1: too short"},
		{[]byte{2, 1, 9}, "malformed: at byte 3: too short"},
		{[]byte{4, 0, 0, 0, 1}, "malformed: at byte 5: too short"},
		{[]byte{5, 1, 9, 1, 9, 1}, "malformed: at byte 6: too short"},
		{[]byte{4, 0x40, 1, 9, 0}, "malformed: at byte 3: a length in more bytes than it needs"},
		{[]byte{2, 0, 0xc0}, "malformed: at byte 3: a length header that is reserved"},
		{[]byte{2, 0, 0, 7}, "malformed: at byte 3: trailing bytes"},
	} {
		if _, err := decode(c.data, readSealed); err == nil || err.Error() != c.want {
			t.Errorf("%x: got %v, want %s", c.data, err, c.want)
		}
	}
	r := newReader([]byte{0, 0, 0, 0})
	if n := skipCiphertexts(&r, math.MaxInt); n != 2 {
		t.Errorf("%d empty ciphertexts, want 2", n)
	}
}

// TestAStagedCommitKeepsNothingOfTheWorkbench: commits without proposals are read on the workbench, and what is staged must
// not change when the next message is read there.
func TestAStagedCommitKeepsNothingOfTheWorkbench(t *testing.T) {
	t.Parallel()
	for _, id := range Suites() {
		t.Run(fmt.Sprint(uint16(id)), func(t *testing.T) {
			t.Parallel()
			all := newClients(t, id, 5)
			createGroup(t, all, CommitOptions{})
			a, b, c := all[0], all[1], all[2]
			data := []byte("authenticated along with it")
			first := must(a.group.Commit(CommitOptions{Data: data}))(t)
			second := must(c.group.Commit(CommitOptions{}))(t)
			third := must(all[3].group.Commit(CommitOptions{Proposals: []Proposal{Remove(4)}}))(t)
			event := must(b.group.Open(first.Message))(t)
			bad := bytes.Clone(second.Message)
			bad[len(bad)-1] ^= 1
			if _, err := b.group.Open(bad); err == nil {
				t.Fatal("a commit that was changed is taken")
			}
			must(b.group.Open(second.Message))(t)
			must(b.group.Open(third.Message))(t)
			if !bytes.Equal(event.Data, data) || !bytes.Equal(event.Commit.Data, data) {
				t.Errorf("the authenticated data became %q", event.Data)
			}
			check(t, a.group.Accept(first))
			check(t, b.group.Accept(event.Commit))
			if !bytes.Equal(a.group.Tree(), b.group.Tree()) {
				t.Error("another tree")
			}
			agree(t, []*client{a, b})
			if got := b.open(t, seal(t, a, "a text")).Application; string(got) != "a text" {
				t.Errorf("read %q", got)
			}
		})
	}
}
