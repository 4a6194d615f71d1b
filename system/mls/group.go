package mls

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"slices"
)

// An epoch is one state of a group as one member has it. Of all its parts only the secret tree changes.
type epoch struct {
	context      groupContext
	encoded      []byte // the context
	tree         *tree
	self         uint32
	keys         privateKeys
	secrets      secrets
	ratchets     *secretTree
	interim      []byte // interim_transcript_hash
	confirmation []byte // confirmation_tag of the commit that began it
	external     []External
}

// A past is what is kept of an epoch that is over: enough to read what was sent in it.
type past struct {
	number        uint64
	authenticator []byte
	encoded       []byte
	tree          *tree
	self          uint32
	senderData    []byte
	ratchets      *secretTree
}

// A Group is one member's view of a group.
type Group struct {
	s         *suite
	config    Config
	epoch     *epoch
	past      []past // the latest last
	proposals []proposed
	updates   []ownUpdate
	resumed   map[uint64][]byte // resumption PSKs by epoch
	bench     workbench
	ring      keyring  // of members' signature keys
	staged    *Staged  // our own commit that is on its way
	journal   *journal // nil when the group is kept nowhere
	removed   bool
	reinit    *ReInit // what follows, once a commit with it was accepted
}

// maxProposals bounds the proposals that are kept in one epoch.
const maxProposals = 1 << 14

// Create makes a group with one member (§11). A nil id is drawn at random.
func Create(config Config, id []byte, extensions ...Extension) (*Group, error) {
	s, err := config.suite()
	if err != nil {
		return nil, err
	}
	leaf, key, err := config.packageLeaf()
	if err != nil {
		return nil, fmt.Errorf("create a group: %w", err)
	}
	if id == nil {
		id = make([]byte, s.nh)
		rand.Read(id)
	}
	t := newTree(s, leaf)
	e := &epoch{tree: t, keys: privateKeys{0: key}}
	e.context = groupContext{version: versionMLS10, suite: s.id, groupID: bytes.Clone(id), treeHash: t.hash(), extensions: extensions}
	secret := make([]byte, s.nh)
	rand.Read(secret)
	e.begin(secret, config.window())
	e.confirm()
	if err := config.checker().members(t, extensions, nil, true); err != nil {
		return nil, fmt.Errorf("create a group: %w", err)
	}
	return newGroup(config, s, e)
}

func newGroup(config Config, s *suite, e *epoch) (*Group, error) {
	g := &Group{s: s, config: config, epoch: e, resumed: make(map[uint64][]byte)}
	g.bench.padding = config.Padding
	g.remember()
	return g, e.decodeExtensions()
}

// begin derives an epoch's secrets; its context must be set. secret is overwritten.
func (e *epoch) begin(secret []byte, w Window) {
	s := e.tree.s
	if e.encoded == nil {
		e.encoded = e.context.append(make([]byte, 0, 256))
	}
	e.secrets = s.secretsOf(secret)
	clear(secret)
	e.ratchets = newSecretTree(s, e.tree.width(), e.secrets.encryption, w)
	e.secrets.encryption = nil
}

// confirm makes the confirmation tag and the interim transcript hash.
func (e *epoch) confirm() {
	s := e.tree.s
	e.confirmation = s.tag(e.secrets.confirm, e.context.transcript)
	e.interim = s.interimHash(e.context.transcript, e.confirmation)
}

func (e *epoch) decodeExtensions() (err error) {
	_, e.external, err = decodeKnown(e.context.extensions)
	return err
}

// remember keeps the epoch's resumption PSK and forgets the oldest.
func (g *Group) remember() {
	limit := g.config.Resumption
	if limit == 0 {
		limit = 16
	}
	n := g.epoch.context.epoch
	g.resumed[n] = g.epoch.secrets.resumption
	for k := range g.resumed {
		if k+uint64(limit) < n {
			clear(g.resumed[k])
			delete(g.resumed, k)
		}
	}
}

// checker is the config's, with the signature keys that were met in this group.
func (g *Group) checker() *checker {
	c := g.config.checker()
	c.docket.ring = &g.ring
	return c
}

// ID returns the group's identifier.
func (g *Group) ID() []byte { return bytes.Clone(g.epoch.context.groupID) }

// Epoch returns the number of the current epoch.
func (g *Group) Epoch() uint64 { return g.epoch.context.epoch }

// Suite returns the group's ciphersuite.
func (g *Group) Suite() Suite { return g.s.id }

// Index returns our leaf index.
func (g *Group) Index() uint32 { return g.epoch.self }

// Extensions returns those of the group context.
func (g *Group) Extensions() []Extension { return slices.Clone(g.epoch.context.extensions) }

// A Member is one leaf of a group. Its node must not be changed.
type Member struct {
	Index uint32
	Node  *LeafNode
}

// Members lists the group's members by leaf index.
func (g *Group) Members() []Member {
	var out []Member
	for i, l := range g.epoch.tree.leaves {
		out = append(out, Member{i, l})
	}
	return out
}

// Tree encodes the ratchet tree, for those who join by a welcome without it.
func (g *Group) Tree() []byte { return g.epoch.tree.append(nil) }

// EpochAuthenticator returns what members compare to see that they are in the same state (§8.7).
func (g *Group) EpochAuthenticator() []byte { return bytes.Clone(g.epoch.secrets.authenticator) }

// CheckAuthenticator compares another member's epoch and authenticator with ours. It is nil when they are the same,
// ErrForked when the group has split, ErrPastEpoch or ErrFutureEpoch when it can't be told.
func (g *Group) CheckAuthenticator(epoch uint64, authenticator []byte) error {
	own := g.epoch.secrets.authenticator
	switch now := g.Epoch(); {
	case epoch > now:
		return refuse(ErrFutureEpoch, "epoch %d, ours is %d", epoch, now)
	case epoch < now:
		p := g.pastEpoch(epoch)
		if p == nil {
			return refuse(ErrPastEpoch, "epoch %d is not kept, ours is %d", epoch, now)
		}
		own = p.authenticator
	}
	if !equal(own, authenticator) {
		return refuse(ErrForked, "epoch %d has another authenticator there than here", epoch)
	}
	return nil
}

func (g *Group) pastEpoch(n uint64) *past {
	for i := range g.past {
		if g.past[i].number == n {
			return &g.past[i]
		}
	}
	return nil
}

// Export derives a secret of n bytes for use outside MLS (§8.5).
func (g *Group) Export(label string, context []byte, n int) ([]byte, error) {
	if n < 0 || n > 255*g.s.nh {
		return nil, refuse(ErrArgument, "an exported secret of %d bytes", n)
	}
	if g.removed {
		return nil, refuse(ErrInactive, "we are no member any more")
	}
	return g.s.exportSecret(g.epoch.secrets.exporter, label, context, n), nil
}

// Active says whether messages can be sent: we are a member, and no ReInit was committed.
func (g *Group) Active() error {
	switch {
	case g.removed:
		return refuse(ErrInactive, "we are no member any more")
	case g.reinit != nil:
		return refuse(ErrInactive, "it was reinitialised")
	}
	return nil
}

// psk finds a pre-shared key.
func (g *Group) psk(id *PSKID) ([]byte, error) {
	if id.Resumption && bytes.Equal(id.GroupID, g.epoch.context.groupID) {
		if key, ok := g.resumed[id.Epoch]; ok {
			return key, nil
		}
	}
	return g.config.psk(id)
}

func (c *Config) psk(id *PSKID) ([]byte, error) {
	if c.PSK == nil {
		return nil, refuse(ErrPSK, "%x is asked for and Config.PSK is nil", id.ID)
	}
	key, err := c.PSK(*id)
	if err != nil {
		return nil, refuseFor(ErrPSK, err, "look-up")
	}
	return key, nil
}

// pskSecret looks keys up and chains them.
func pskSecret(s *suite, ids []*PSKID, find func(*PSKID) ([]byte, error)) ([]byte, error) {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		var err error
		if keys[i], err = find(id); err != nil {
			return nil, err
		}
	}
	return s.pskSecret(ids, keys), nil
}
