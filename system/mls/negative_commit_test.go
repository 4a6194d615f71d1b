package mls

import (
	"bytes"
	"crypto/rand"
	"slices"
	"testing"
)

func newRandom(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := rand.Read(b)
	return b, err
}

// A commitMutation is a commit that members must refuse for something its committer alone makes.
type commitMutation struct {
	name string
	edit func(st *stage, at string, v any)
	want error
}

// onPath edits the update path of a commit and signs its leaf again.
func onPath(edit func(st *stage, p *UpdatePath)) func(*stage, string, any) {
	return func(st *stage, at string, v any) {
		if at != "commit" {
			return
		}
		p := v.(*Commit).Path
		leaf := *p.Leaf
		p.Leaf = &leaf
		edit(st, p)
		g := st.all[0].group
		check(st.t, p.Leaf.sign(st.s, g.config.Identity.signer, g.ID(), 0))
	}
}

func onAuthenticated(edit func(st *stage, a *authenticated)) func(*stage, string, any) {
	return func(st *stage, at string, v any) {
		if at == "authenticated" {
			edit(st, v.(*authenticated))
		}
	}
}

func commitMutations() []commitMutation {
	key := func(st *stage) []byte { return must(st.s.generateKeyPair())(st.t).public }
	return []commitMutation{
		{"no path where one is needed", func(_ *stage, at string, v any) {
			if at == "commit" {
				c := v.(*Commit)
				c.Path, c.Proposals = nil, []ProposalOrRef{{Proposal: &Proposal{Type: ProposeRemove, Remove: 2}}}
			}
		}, ErrPath},
		{"no path and no proposals", func(_ *stage, at string, v any) {
			if at == "commit" {
				v.(*Commit).Path, v.(*Commit).Proposals = nil, nil
			}
		}, ErrPath},
		{"a path node too many", onPath(func(st *stage, p *UpdatePath) { p.Nodes = append(p.Nodes, PathNode{PublicKey: key(st)}) }), ErrPath},
		{"a path node too few", onPath(func(_ *stage, p *UpdatePath) { p.Nodes = p.Nodes[1:] }), ErrPath},
		{"a ciphertext too many", onPath(func(_ *stage, p *UpdatePath) {
			n := &p.Nodes[0]
			n.Ciphertexts = append(n.Ciphertexts, n.Ciphertexts[0])
		}), ErrPath},
		{"a ciphertext too few", onPath(func(_ *stage, p *UpdatePath) { p.Nodes[0].Ciphertexts = nil }), ErrPath},
		{"a ciphertext changed", onPath(func(_ *stage, p *UpdatePath) { p.Nodes[0].Ciphertexts[0].Data[3] ^= 1 }), ErrDecrypt},
		{"an ephemeral key of small order", onPath(func(_ *stage, p *UpdatePath) { p.Nodes[0].Ciphertexts[0].KEMOutput = smallOrderKey }), ErrKey},
		{"leaf from an update", onPath(func(_ *stage, p *UpdatePath) { p.Leaf.Source = FromUpdate }), ErrSource},
		{"leaf from a key package", onPath(func(_ *stage, p *UpdatePath) { p.Leaf.Source = FromKeyPackage }), ErrSource},
		{"leaf keeps its encryption key", onPath(func(st *stage, p *UpdatePath) {
			p.Leaf.EncryptionKey = st.all[1].group.epoch.tree.leaf(0).EncryptionKey
		}), ErrDuplicate},
		{"leaf with another member's signature key", onPath(func(st *stage, p *UpdatePath) {
			p.Leaf.SignatureKey = st.all[2].config.Identity.signer.public
		}), ErrSignature},
		{"leaf changes who it is", onPath(func(_ *stage, p *UpdatePath) { p.Leaf.Credential = Basic([]byte("another")) }), ErrCredential},
		{"leaf without the group's ciphersuite", onPath(func(_ *stage, p *UpdatePath) { p.Leaf.Capabilities.Suites = nil }), ErrCapabilities},
		{"leaf's parent hash", onPath(func(_ *stage, p *UpdatePath) { p.Leaf.ParentHash = bytes.Repeat([]byte{1}, 32) }), ErrParentHash},
		{"a node key that is in the tree", onPath(func(st *stage, p *UpdatePath) {
			p.Nodes[0].PublicKey = st.all[1].group.epoch.tree.leaf(2).EncryptionKey
		}), ErrDuplicate},
		{"a node key twice", onPath(func(_ *stage, p *UpdatePath) { p.Nodes[1].PublicKey = p.Nodes[0].PublicKey }), ErrDuplicate},
		{"a node key of small order", onPath(func(_ *stage, p *UpdatePath) { p.Nodes[0].PublicKey = smallOrderKey }), ErrKey},
		{"leaf signature", func(st *stage, at string, v any) {
			if at == "commit" {
				p := v.(*Commit).Path
				leaf := *p.Leaf
				p.Leaf, leaf.Signature = &leaf, bytes.Clone(leaf.Signature)
				leaf.Signature[9] ^= 1
			}
		}, ErrSignature},
		{"an unknown proposal reference", func(_ *stage, at string, v any) {
			if at == "commit" {
				v.(*Commit).Proposals = []ProposalOrRef{{Ref: make([]byte, 32)}}
			}
		}, ErrUnknown},
		{"signature", onAuthenticated(func(_ *stage, a *authenticated) { a.auth.signature[8] ^= 1 }), ErrSignature},
		{"confirmation tag", onAuthenticated(func(_ *stage, a *authenticated) {
			a.auth.confirmation = bytes.Clone(a.auth.confirmation)
			a.auth.confirmation[0] ^= 1
		}), ErrConfirmation},
		{"signed for the next epoch", onAuthenticated(func(st *stage, a *authenticated) {
			c := *a.content
			c.epoch++
			b := *a
			b.content = &c
			check(st.t, b.sign(st.s, st.all[0].config.Identity.signer, st.all[0].group.epoch.encoded))
			a.auth.signature = b.auth.signature
		}), ErrSignature},
		{"sender that is no member", onAuthenticated(func(_ *stage, a *authenticated) { a.content.sender.Index = 3 }), nil},
	}
}

func TestBadCommitsAreRefused(t *testing.T) {
	t.Parallel()
	count := make(counter)
	for _, m := range commitMutations() {
		for _, public := range []bool{false, true} {
			t.Run(m.name, func(t *testing.T) {
				st := newStage(t, X25519AES128, func(c *Config) { c.Public = public })
				staged := st.forge(CommitOptions{}, func(at string, v any) { m.edit(st, at, v) })
				want := m.want
				if want == nil { // a private message is encrypted with that leaf's keys, and they open it
					want = ErrSender
				}
				st.memberRefuses(staged.Message, want)
				count[member]++
			})
		}
	}
	count.print(t)
}

func TestAMembershipTagMustBeTheGroups(t *testing.T) {
	t.Parallel()
	st := newStage(t, X25519AES128, func(c *Config) { c.Public = true })
	staged := must(st.all[0].group.Commit(CommitOptions{}))(t)
	bad := bytes.Clone(staged.Message)
	bad[len(bad)-1] ^= 1
	st.memberRefuses(bad, ErrMembership)
	st.memberRefuses(staged.Message[:len(staged.Message)-1], ErrMalformed)
	st.memberRefuses(append(bytes.Clone(staged.Message), 0), ErrMalformed)
	broadcast(t, st.all[1:], nil, staged.Message)
}

// A treeMutation is a ratchet tree that a joiner must refuse.
type treeMutation struct {
	name string
	edit func(st *stage, t *tree)
	want error
}

func treeMutations() []treeMutation {
	parent := func(t *tree, x uint32, edit func(p *parentNode)) {
		p := *t.node(x).parent
		p.unmerged = slices.Clone(p.unmerged)
		edit(&p)
		t.edit(x).parent = &p
	}
	return []treeMutation{
		{"parent's key", func(st *stage, t *tree) {
			parent(t, 3, func(p *parentNode) { p.key = must(st.s.generateKeyPair())(st.t).public })
		}, ErrParentHash},
		{"parent's parent hash", func(_ *stage, t *tree) { parent(t, 1, func(p *parentNode) { p.parentHash = []byte("no") }) }, ErrParentHash},
		{"a parent from nowhere", func(st *stage, t *tree) {
			t.edit(5).parent = &parentNode{key: must(st.s.generateKeyPair())(st.t).public}
		}, ErrParentHash},
		{"an unmerged leaf that is blank", func(_ *stage, t *tree) { parent(t, 7, func(p *parentNode) { p.unmerged = []uint32{7} }) }, ErrTree},
		{"an unmerged leaf that is elsewhere", func(_ *stage, t *tree) { parent(t, 1, func(p *parentNode) { p.unmerged = []uint32{2} }) }, ErrTree},
		{"an unmerged leaf that is not in the tree", func(_ *stage, t *tree) { parent(t, 3, func(p *parentNode) { p.unmerged = []uint32{1 << 20} }) }, ErrTree},
		{"an unmerged leaf that a node below has merged", func(_ *stage, t *tree) { parent(t, 3, func(p *parentNode) { p.unmerged = []uint32{1} }) }, ErrTree},
		{"unmerged leaves out of order", func(_ *stage, t *tree) { parent(t, 3, func(p *parentNode) { p.unmerged = []uint32{3, 2} }) }, ErrMalformed},
		{"a leaf's signature", func(_ *stage, t *tree) {
			l := *t.node(0).leaf
			l.Signature = bytes.Clone(l.Signature)
			l.Signature[3] ^= 1
			t.edit(0).leaf = &l
		}, ErrSignature},
		{"an encryption key twice, at a leaf and a parent", func(st *stage, t *tree) {
			l := *t.node(4).leaf
			l.EncryptionKey = t.node(3).parent.key
			check(st.t, l.sign(st.s, st.all[2].config.Identity.signer, nil, 0))
			t.edit(4).leaf = &l
		}, ErrTree},
	}
}

func TestBadTreesAreRefusedByTheJoiner(t *testing.T) {
	t.Parallel()
	count := make(counter)
	for _, m := range treeMutations() {
		t.Run(m.name, func(t *testing.T) {
			st := bigStage(t)
			staged := st.forge(CommitOptions{}, func(at string, v any) {
				if at == "tree" {
					p := v.(**tree)
					bad := (*p).clone()
					m.edit(st, bad)
					for i := range bad.size {
						bad.edit(i).hash = nil
					}
					*p = bad
				}
			})
			st.joinerRefuses(staged.Welcome, m.want)
			count[joiner]++
		})
	}
	count.print(t)
}

// bigStage is a group of five whose parents are there: leaf 0 commits to a tree of eight.
func bigStage(t *testing.T) *stage {
	st := newStage(t, X25519AES128, nil)
	for range 2 {
		c := newClient(t, X25519AES128, "more")
		b := c.bundle(t)
		added := commit(t, st.all, st.all[0], CommitOptions{Proposals: []Proposal{Add(b.Package)}})
		c.group = must(Join(c.config, added.Welcome, b, JoinOptions{}))(t)
		st.all = append(st.all, c)
	}
	return st
}

// A welcomeMutation is a welcome that its joiner must refuse.
type welcomeMutation struct {
	name string
	edit func(st *stage, at string, v any)
	want error
}

func welcomeMutations() []welcomeMutation {
	info := func(edit func(st *stage, g *groupInfo)) func(*stage, string, any) {
		return func(st *stage, at string, v any) {
			if at == "info" {
				edit(st, v.(*groupInfo))
			}
		}
	}
	secrets := func(edit func(st *stage, g *groupSecrets)) func(*stage, string, any) {
		return func(st *stage, at string, v any) {
			if at == "secrets" {
				edit(st, v.(*groupSecrets))
			}
		}
	}
	wire := func(edit func(st *stage, w *welcome)) func(*stage, string, any) {
		return func(st *stage, at string, v any) {
			if at == "welcome" {
				edit(st, v.(*welcome))
			}
		}
	}
	psks := func(st *stage, list ...*PSKID) []*PSKID {
		for _, p := range list {
			p.Nonce = must(newRandom(32))(st.t)
		}
		return list
	}
	return []welcomeMutation{
		{"tree hash", info(func(_ *stage, g *groupInfo) { g.context.treeHash = make([]byte, 32) }), ErrTreeHash},
		{"signer that is blank", info(func(_ *stage, g *groupInfo) { g.signer = 7 }), ErrGroupInfo},
		{"signer that did not sign", info(func(_ *stage, g *groupInfo) { g.signer = 1 }), ErrSignature},
		{"group info of another ciphersuite", info(func(_ *stage, g *groupInfo) { g.context.suite = X25519ChaCha }), ErrSuite},
		{"group info of another version", info(func(_ *stage, g *groupInfo) { g.context.version = 2 }), ErrGroupInfo},
		{"no tree", info(func(_ *stage, g *groupInfo) { g.extensions = nil }), ErrGroupInfo},
		{"confirmation tag", info(func(_ *stage, g *groupInfo) { g.confirmation = make([]byte, 32) }), ErrConfirmation},
		{"transcript hash", info(func(_ *stage, g *groupInfo) { g.context.transcript = make([]byte, 32) }), ErrConfirmation},
		{"a tree that ends in a blank", info(func(_ *stage, g *groupInfo) {
			data := g.extensions[0].Data
			r := newReader(data)
			g.extensions[0].Data = appendVector(nil, append(bytes.Clone(r.vector()), 0))
		}), ErrMalformed},
		{"an extension of the group that we do not support", info(func(_ *stage, g *groupInfo) { g.context.extensions = []Extension{{Type: 0xf00d}} }), ErrCapabilities},
		{"path secret", secrets(func(_ *stage, g *groupSecrets) { g.path = make([]byte, 32) }), ErrPath},
		{"path secret of another length", secrets(func(_ *stage, g *groupSecrets) { g.path = make([]byte, 31) }), ErrPath},
		{"joiner secret", secrets(func(_ *stage, g *groupSecrets) { g.joiner = make([]byte, 32) }), ErrDecrypt},
		{"joiner secret of another length", secrets(func(_ *stage, g *groupSecrets) { g.joiner = make([]byte, 33) }), ErrWelcome},
		{"a PSK that we do not have", secrets(func(st *stage, g *groupSecrets) { g.psks = psks(st, &PSKID{ID: []byte("unknown")}) }), ErrPSK},
		{"one PSK twice", secrets(func(st *stage, g *groupSecrets) {
			g.psks = psks(st, &PSKID{ID: []byte("known")}, &PSKID{ID: []byte("known")})
			g.psks[1].Nonce = g.psks[0].Nonce
		}), ErrPSK},
		{"one PSK with a nonce more", secrets(func(st *stage, g *groupSecrets) {
			g.psks = psks(st, &PSKID{ID: []byte("known")}, &PSKID{ID: []byte("known")})
		}), ErrDecrypt}, // two IDs, and not those of the commit
		{"a PSK nonce too short", secrets(func(st *stage, g *groupSecrets) {
			g.psks = psks(st, &PSKID{ID: []byte("known")})
			g.psks[0].Nonce = g.psks[0].Nonce[1:]
		}), ErrPSK},
		{"two PSKs of former groups", secrets(func(st *stage, g *groupSecrets) {
			g.psks = psks(st, &PSKID{Resumption: true, Usage: ForBranch}, &PSKID{Resumption: true, Usage: ForReInit})
		}), ErrPSK},
		{"encrypted group info", wire(func(_ *stage, w *welcome) { w.info[9] ^= 1 }), ErrDecrypt},
		{"encrypted group secrets", wire(func(_ *stage, w *welcome) { w.secrets[0].secrets.Data[9] ^= 1 }), ErrDecrypt},
		{"ciphersuite", wire(func(_ *stage, w *welcome) { w.suite = X25519ChaCha }), ErrSuite},
		{"not for our key package", wire(func(_ *stage, w *welcome) { w.secrets[0].ref = make([]byte, 32) }), ErrWelcome},
	}
}

func TestBadWelcomesAreRefused(t *testing.T) {
	t.Parallel()
	count := make(counter)
	for _, m := range welcomeMutations() {
		t.Run(m.name, func(t *testing.T) {
			st := newStage(t, X25519AES128, withPSK)
			staged := st.forge(CommitOptions{}, func(at string, v any) { m.edit(st, at, v) })
			st.joinerRefuses(staged.Welcome, m.want)
			count[joiner]++
		})
	}
	t.Run("our leaf is not in the tree", func(t *testing.T) {
		st := newStage(t, X25519AES128, nil)
		var plain []byte
		other := st.stranger.bundle(t)
		staged := st.forge(CommitOptions{}, func(at string, v any) {
			switch v := v.(type) {
			case *groupSecrets:
				plain = v.append(nil)
			case *welcome:
				to := must(st.s.publicKey(other.Package.InitKey))(t)
				v.secrets[0] = encryptedSecrets{other.Package.ref(st.s), must(st.s.seal(to, hashed(st.s, encryptInfo("Welcome", v.info)), plain))(t)}
			}
		})
		_, err := Join(st.stranger.config, staged.Welcome, other, JoinOptions{})
		refuses(t, joiner, err, ErrWelcome)
		count[joiner]++
	})
	t.Run("a group that we are in", func(t *testing.T) {
		st := newStage(t, X25519AES128, nil)
		staged := st.forge(CommitOptions{}, nil)
		_, err := Join(st.stranger.config, staged.Welcome, st.bundle, JoinOptions{Member: func([]byte) bool { return true }})
		refuses(t, joiner, err, ErrWelcome)
		must(Join(st.stranger.config, staged.Welcome, st.bundle, JoinOptions{}))(t)
		count[joiner]++
	})
	count.print(t)
}

func TestBadProposalsAreRefusedWhenTheyCome(t *testing.T) {
	t.Parallel()
	server := newClient(t, X25519AES128, "server")
	senders := ExternalSendersExtension([]External{{server.config.Identity.PublicKey(), server.config.Identity.Credential}})
	begin := func(t *testing.T) (*stage, Place) {
		st := newStage(t, X25519AES128, func(c *Config) { c.Public = true }, senders)
		return st, Place{st.all[0].group.ID(), st.all[0].group.Epoch()}
	}
	update := func(edit func(st *stage, l *LeafNode)) func(*testing.T) {
		return func(t *testing.T) {
			st, _ := begin(t)
			g := st.all[0].group
			l := g.config.leaf()
			l.Source, l.EncryptionKey = FromUpdate, must(st.s.generateKeyPair())(t).public
			edit(st, l)
			if l.Signature == nil {
				check(t, l.sign(st.s, g.config.Identity.signer, g.ID(), 0))
			}
			st.memberRefuses(st.send(Sender{SenderMember, 0}, &Proposal{Type: ProposeUpdate, Update: l}, g.config.Identity.signer), updateError(l))
		}
	}
	t.Run("update from a key package", update(func(_ *stage, l *LeafNode) { l.Source = FromKeyPackage }))
	t.Run("update with a bad signature", update(func(_ *stage, l *LeafNode) { l.Signature = make([]byte, 64) }))
	t.Run("update that keeps its key", update(func(st *stage, l *LeafNode) { l.EncryptionKey = st.all[1].group.epoch.tree.leaf(0).EncryptionKey }))
	t.Run("update that changes who it is", update(func(_ *stage, l *LeafNode) { l.Credential = Basic([]byte("another")) }))
	outside := func(sender Sender, p Proposal, signer *signer, want error) func(*testing.T) {
		return func(t *testing.T) {
			st, _ := begin(t)
			st.memberRefuses(st.send(sender, &p, signer), want)
		}
	}
	key := server.config.Identity.signer
	t.Run("external update", outside(Sender{SenderExternal, 0}, Proposal{Type: ProposeUpdate, Update: server.bundle(t).Package.Leaf}, key, ErrSender))
	t.Run("external init from outside", outside(Sender{SenderExternal, 0}, Proposal{Type: ProposeExternalInit}, key, ErrSender))
	t.Run("an external sender that is not listed", outside(Sender{SenderExternal, 1}, Remove(1), key, ErrSender))
	t.Run("an external sender with another key", outside(Sender{SenderExternal, 0}, Remove(1), must(must(suiteOf(1))(t).generateSigner())(t), ErrSignature))
	t.Run("a new member that removes", outside(Sender{Type: SenderNewMemberProposal}, Remove(1), key, ErrSender))
	t.Run("a new member signed by another", outside(Sender{Type: SenderNewMemberProposal}, Add(newClient(t, 1, "x").bundle(t).Package), key, ErrSignature))
	t.Run("a commit's sender with a proposal", outside(Sender{Type: SenderNewMemberCommit}, Remove(1), key, ErrSender))
	t.Run("a sender beyond the tree", outside(Sender{SenderMember, 99}, Remove(1), key, ErrSender))
	t.Run("the same proposal twice", func(t *testing.T) {
		st, at := begin(t)
		m := must(ProposeExternal(server.config.Identity, at, 0, Remove(2)))(t)
		st.all[1].open(t, m)
		st.memberRefuses(m, ErrReplayed)
	})
}

// updateError is what an Update must be refused for.
func updateError(l *LeafNode) error {
	switch {
	case l.Source != FromUpdate:
		return ErrSource
	case bytes.Equal(l.Signature, make([]byte, 64)):
		return ErrSignature
	case string(l.Credential.Identity) == "another":
		return ErrCredential
	}
	return ErrDuplicate
}

// send frames a proposal as any sender, with a membership tag that is right.
func (st *stage) send(sender Sender, p *Proposal, key *signer) []byte {
	e := st.all[0].group.epoch
	a := &authenticated{wire: wirePublic, content: &framedContent{
		groupID: e.context.groupID, epoch: e.context.epoch, sender: sender, kind: ContentProposal, proposal: p,
	}}
	check(st.t, a.sign(st.s, key, e.encoded))
	return a.protectPublic(st.s, e)
}

func TestBadExternalCommitsAreRefused(t *testing.T) {
	t.Parallel()
	list := func(edit func(list []ProposalOrRef) []ProposalOrRef) func(string, any) {
		return func(at string, v any) {
			if at == "commit" {
				v.(*Commit).Proposals = edit(v.(*Commit).Proposals)
			}
		}
	}
	add := newClient(t, X25519AES128, "friend").bundle(t).Package
	for name, m := range map[string]struct {
		edit func(string, any)
		want error
	}{
		"no ExternalInit":   {list(func([]ProposalOrRef) []ProposalOrRef { return nil }), ErrProposals},
		"two ExternalInits": {list(func(l []ProposalOrRef) []ProposalOrRef { return append(l, l[0]) }), ErrProposals},
		"an Add": {list(func(l []ProposalOrRef) []ProposalOrRef {
			p := Add(add)
			return append(l, ProposalOrRef{Proposal: &p})
		}), ErrProposals},
		"two Removes": {list(func(l []ProposalOrRef) []ProposalOrRef {
			a, b := Remove(1), Remove(2)
			return append(l, ProposalOrRef{Proposal: &a}, ProposalOrRef{Proposal: &b})
		}), ErrProposals},
		"a KEM output of small order": {list(func(l []ProposalOrRef) []ProposalOrRef {
			return []ProposalOrRef{{Proposal: &Proposal{Type: ProposeExternalInit, KEMOutput: smallOrderKey}}}
		}), ErrKey},
		"a reference": {list(func(l []ProposalOrRef) []ProposalOrRef { return append(l, ProposalOrRef{Ref: []byte{1}}) }), ErrUnknown},
		"no path": {func(at string, v any) {
			if at == "commit" {
				v.(*Commit).Path = nil
			}
		}, ErrPath},
		"confirmation tag": {func(at string, v any) {
			if at == "authenticated" {
				v.(*authenticated).auth.confirmation = make([]byte, 32)
			}
		}, ErrConfirmation},
		"signature": {func(at string, v any) {
			if at == "authenticated" {
				v.(*authenticated).auth.signature = make([]byte, 64)
			}
		}, ErrSignature},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, X25519AES128, nil)
			st.stranger.config.forge = m.edit
			_, message, err := JoinExternal(st.stranger.config, must(st.all[0].group.GroupInfo(true))(t), ExternalOptions{})
			check(t, err)
			st.memberRefuses(message, m.want)
		})
	}
	// A resync takes one's own place, nobody else's.
	other := newStage(t, X25519AES128, nil)
	info, resync := must(other.all[0].group.GroupInfo(true))(t), ExternalOptions{RemoveLeaf: true, Leaf: 2}
	_, _, err := JoinExternal(other.stranger.config, info, resync)
	refuses(t, committer, err, ErrCredential)
	other.stranger.config.forge = func(string, any) {}
	_, message, err := JoinExternal(other.stranger.config, info, resync)
	check(t, err)
	other.memberRefuses(message, ErrCredential)

	// A proposal that the members have is no better in an external commit.
	st := newStage(t, X25519AES128, nil)
	broadcast(t, st.all, st.all[0], must(st.all[0].group.Propose(Remove(2), nil))(t))
	ref := st.all[1].group.proposals[0].ref
	st.stranger.config.forge = list(func(l []ProposalOrRef) []ProposalOrRef { return append(l, ProposalOrRef{Ref: ref}) })
	_, message, err = JoinExternal(st.stranger.config, must(st.all[0].group.GroupInfo(true))(t), ExternalOptions{})
	check(t, err)
	st.memberRefuses(message, ErrProposals)
}

// TestAHiddenUnmergedLeafIsRefused: a member that does not know a parent's key must be among its unmerged leaves, or the
// others would encrypt past it.
func TestAHiddenUnmergedLeafIsRefused(t *testing.T) {
	t.Parallel()
	st := newStage(t, X25519AES128, nil)
	by := st.all[1]
	commit(t, st.all[1:], by, CommitOptions{Proposals: []Proposal{Remove(0)}})
	c := newClient(t, X25519AES128, "again at leaf 0")
	commit(t, st.all[1:], by, CommitOptions{Proposals: []Proposal{Add(c.bundle(t).Package)}, NoPath: true})
	st.all[0] = by
	hide := func(at string, v any) {
		if at != "tree" {
			return
		}
		p := v.(**tree)
		bad := (*p).clone()
		top := *bad.node(3).parent
		if len(top.unmerged) != 2 || top.unmerged[0] != 0 {
			t.Fatalf("unmerged leaves %v, want leaf 0 and the joiner's", top.unmerged)
		}
		top.unmerged = top.unmerged[1:]
		bad.edit(3).parent = &top
		for i := range bad.size {
			bad.edit(i).hash = nil
		}
		*p = bad
	}
	staged := st.forge(CommitOptions{NoPath: true}, hide)
	st.joinerRefuses(staged.Welcome, ErrParentHash)
	must(Join(st.stranger.config, st.forge(CommitOptions{NoPath: true}, nil).Welcome, st.bundle, JoinOptions{}))(t)
}
