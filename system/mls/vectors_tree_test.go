package mls

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVectorsTreeOperations(t *testing.T) {
	type vector struct {
		Suite    Suite `json:"cipher_suite"`
		Proposal hexBytes
		Sender   uint32   `json:"proposal_sender"`
		Before   hexBytes `json:"tree_before"`
		After    hexBytes `json:"tree_after"`
		Hash     hexBytes `json:"tree_hash_before"`
		HashNow  hexBytes `json:"tree_hash_after"`
	}
	each(t, "tree-operations", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		tree := must(parseTree(s, v.Before))(t)
		same(t, "hash before", tree.hash(), v.Hash)
		p := must(decode(v.Proposal, readProposal))(t)
		ch := &change{tree: tree.clone()}
		if err := ch.applyTree([]proposed{{Proposal: p, sender: Sender{SenderMember, v.Sender}}}); err != nil {
			t.Fatal(err)
		}
		same(t, "tree after", ch.tree.append(nil), v.After)
		same(t, "hash after", ch.tree.hash(), v.HashNow)
		same(t, "the tree it was applied to", tree.append(nil), v.Before)
		same(t, "its hash", tree.hash(), v.Hash)
	})
}

func TestVectorsTreeValidation(t *testing.T) {
	type vector struct {
		Suite       Suite `json:"cipher_suite"`
		Tree        hexBytes
		GroupID     hexBytes   `json:"group_id"`
		Hashes      []hexBytes `json:"tree_hashes"`
		Resolutions [][]uint32
	}
	each(t, "tree-validation", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		tree := must(parseTree(s, v.Tree))(t)
		tree.hash()
		for x := range tree.size {
			same(t, "tree hash", tree.node(x).hash, v.Hashes[x])
			if d := cmp.Diff(append([]uint32{}, v.Resolutions[x]...), append([]uint32{}, tree.resolution(nil, uint32(x))...)); d != "" {
				t.Errorf("resolution of %d: %s", x, d)
			}
		}
		c := &checker{s: s, anyLifetime: true}
		if err := c.tree(tree, &groupContext{groupID: v.GroupID, treeHash: tree.hash()}); err != nil {
			t.Error(err)
		}
		same(t, "encoded again", tree.append(nil), v.Tree)
	})
}

// A treekemVector is a tree with its members' private keys and what they receive.
type treekemVector struct {
	Suite      Suite    `json:"cipher_suite"`
	GroupID    hexBytes `json:"group_id"`
	Epoch      uint64
	Transcript hexBytes `json:"confirmed_transcript_hash"`
	Tree       hexBytes `json:"ratchet_tree"`
	Leaves     []struct {
		Index         uint32
		EncryptionKey hexBytes `json:"encryption_priv"`
		SignatureKey  hexBytes `json:"signature_priv"`
		Secrets       []struct {
			Node   uint32
			Secret hexBytes `json:"path_secret"`
		} `json:"path_secrets"`
	} `json:"leaves_private"`
	Paths []struct {
		Sender  uint32
		Path    hexBytes   `json:"update_path"`
		Secrets []hexBytes `json:"path_secrets"`
		Commit  hexBytes   `json:"commit_secret"`
		Hash    hexBytes   `json:"tree_hash_after"`
	} `json:"update_paths"`
}

// privates are the members' private keys, by leaf.
func (v *treekemVector) privates(t *testing.T, s *suite, tree *tree) (map[uint32]privateKeys, map[uint32]*signer) {
	keys, signers := make(map[uint32]privateKeys), make(map[uint32]*signer)
	for _, l := range v.Leaves {
		own := privateKeys{2 * l.Index: must(s.privateKey(l.EncryptionKey))(t)}
		for _, p := range l.Secrets {
			own[p.Node] = must(s.nodeKey(p.Secret))(t)
		}
		if held := tree.holds(own); len(held) != len(own) {
			t.Fatalf("leaf %d: %d of %d private keys belong to the tree", l.Index, len(held), len(own))
		}
		keys[l.Index], signers[l.Index] = own, must(s.parseSigner(l.SignatureKey))(t)
	}
	return keys, signers
}

func TestVectorsTreeKEM(t *testing.T) {
	each(t, "treekem", func(v *treekemVector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *treekemVector) {
		before := must(parseTree(s, v.Tree))(t)
		keys, signers := v.privates(t, s, before)
		context := groupContext{version: 1, suite: s.id, groupID: v.GroupID, epoch: v.Epoch, transcript: v.Transcript}
		c := &checker{s: s, anyLifetime: true}
		for i, u := range v.Paths {
			path := must(decode(u.Path, readUpdatePath))(t)
			after := before.clone()
			if err := verifyLeaf(s, path.Leaf, v.GroupID, u.Sender); err != nil {
				t.Fatal(err)
			}
			steps := must(after.mergePath(u.Sender, path, nil))(t)
			same(t, "tree hash", after.hash(), u.Hash)
			context.treeHash = after.hash()
			for leaf, own := range keys {
				if leaf == u.Sender {
					continue
				}
				_, commit, err := after.decryptPath(steps, path, leaf, own, context.append(nil), nil)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "commit secret", commit, u.Commit)
				at := secretAt(t, s, after, steps, path, leaf, own, context.append(nil))
				same(t, "path secret", at, u.Secrets[leaf])
			}
			if i == 0 {
				ownPath(t, c, before, u.Sender, signers[u.Sender], keys, context)
			}
		}
	})
}

// verifyLeaf checks the signature alone: these leaves of suite 7 do not list suite 7.
func verifyLeaf(s *suite, l *LeafNode, groupID []byte, index uint32) error {
	return s.verify(l.SignatureKey, "LeafNodeTBS", l.appendTBS(nil, groupID, index), l.Signature)
}

// secretAt decrypts the path secret that is meant for a leaf.
func secretAt(t *testing.T, s *suite, tree *tree, steps []step, path *UpdatePath, leaf uint32, own privateKeys, context []byte) []byte {
	for i, step := range steps {
		for j, x := range tree.recipients(nil, step.copath, nil) {
			if under(2*leaf, step.copath) && own[x] != nil {
				return must(s.open(own[x], encryptInfo("UpdatePathNode", context), path.Nodes[i].ciphertext(j)))(t)
			}
		}
	}
	t.Fatalf("leaf %d has no place on the path", leaf)
	return nil
}

// ownPath makes an update path of our own and has everyone process it.
func ownPath(t *testing.T, c *checker, before *tree, sender uint32, key *signer, keys map[uint32]privateKeys, context groupContext) {
	made := before.clone()
	leaf := *before.leaf(sender)
	draft := must(made.draftPath(sender, &leaf, key, context.groupID))(t)
	context.treeHash = made.hash()
	path := must(draft.encrypt(made, &leaf, context.append(nil), nil))(t)
	if err := verifyLeaf(c.s, path.Leaf, context.groupID, sender); err != nil {
		t.Fatal(err)
	}
	for leaf, own := range keys {
		if leaf == sender {
			continue
		}
		got := before.clone()
		steps := must(got.mergePath(sender, path, nil))(t)
		_, commit, err := got.decryptPath(steps, path, leaf, own, context.append(nil), nil)
		if err != nil || !bytes.Equal(commit, draft.commit) || !bytes.Equal(got.hash(), made.hash()) {
			t.Fatalf("leaf %d does not follow our path: %v", leaf, err)
		}
	}
}
