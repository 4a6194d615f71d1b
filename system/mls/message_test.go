package mls

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// pair is a group of two.
func pair(t testing.TB, w *Window) (*client, *client) {
	all := newClients(t, X25519AES128, 2)
	for _, c := range all {
		c.config.Window = w
	}
	createGroup(t, all, CommitOptions{})
	return all[0], all[1]
}

// refused fails unless a message is refused with an error and the receiver stays as it was.
func (c *client) refused(t *testing.T, message []byte, want error) {
	t.Helper()
	before := must(c.group.Snapshot(0))(t)
	_, err := c.group.Open(message)
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
	if !bytes.Equal(must(c.group.Snapshot(0))(t), before) {
		t.Errorf("the refused message (%v) changed the state", want)
	}
}

func seal(t testing.TB, c *client, text string) []byte {
	return must(c.group.Seal(nil, nil, []byte(text)))(t)
}

func TestMessagesInAnyOrderOnce(t *testing.T) {
	t.Parallel()
	a, b := pair(t, &Window{Past: 1, Reorder: 20, Ahead: 30, Skipped: 100})
	var sent [][]byte
	for i := range 64 {
		sent = append(sent, seal(t, a, fmt.Sprint(i)))
	}
	b.refused(t, sent[31], ErrTooFarAhead)
	for _, i := range []int{5, 0, 3, 30, 29, 1} {
		want := error(nil)
		if i == 1 {
			want = ErrTooOld // 30 was read, and the window is 20
		}
		if want != nil {
			b.refused(t, sent[i], want)
			continue
		}
		if got := string(b.open(t, sent[i]).Application); got != fmt.Sprint(i) {
			t.Errorf("message %d reads %q", i, got)
		}
		b.refused(t, sent[i], ErrReplayed)
	}
	// A forged copy does not use up the honest message's key.
	forged := bytes.Clone(sent[40])
	forged[len(forged)-1] ^= 1
	b.refused(t, forged, ErrDecrypt)
	b.open(t, sent[40])
	b.refused(t, sent[40], ErrReplayed)
	a.refused(t, sent[50], ErrOwnMessage)
}

func TestTheSkippedKeysAreBounded(t *testing.T) {
	t.Parallel()
	a, b := pair(t, &Window{Past: 1, Reorder: 1000, Ahead: 1000, Skipped: 50})
	var sent [][]byte
	for i := range 400 {
		sent = append(sent, seal(t, a, fmt.Sprint(i)))
	}
	b.open(t, sent[200])
	b.open(t, sent[399])
	if n := b.group.epoch.ratchets.kept; n > 50 {
		t.Errorf("%d keys are kept, want at most 50", n)
	}
	b.open(t, sent[398])
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	message := seal(t, a, "something")
	before := must(b.group.Snapshot(0))(t)
	for i := range message {
		bad := bytes.Clone(message)
		bad[i] ^= 0x10
		if _, err := b.group.Open(bad); err == nil {
			t.Fatalf("byte %d may be flipped", i)
		}
		if _, err := b.group.Open(message[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
	}
	if !bytes.Equal(must(b.group.Snapshot(0))(t), before) {
		t.Error("the state changed")
	}
	b.refused(t, append(bytes.Clone(message), 0), ErrMalformed)
	b.open(t, message)
}

func TestMessagesOfOtherEpochsAndGroups(t *testing.T) {
	t.Parallel()
	a, b := pair(t, &Window{Past: 2, Reorder: 10, Ahead: 10, Skipped: 100})
	all := []*client{a, b}
	late := [][]byte{seal(t, a, "epoch 1")}
	for i := range 3 {
		commit(t, all, all[i%2], CommitOptions{})
		late = append(late, seal(t, a, fmt.Sprintf("epoch %d", i+2)))
	}
	b.refused(t, late[0], ErrPastEpoch) // of epoch 1; we are in 4 and keep two
	if got := string(b.open(t, late[1]).Application); got != "epoch 2" {
		t.Errorf("a late message reads %q", got)
	}
	b.refused(t, late[1], ErrReplayed)
	b.open(t, late[3])

	st := must(a.group.Commit(CommitOptions{}))(t)
	check(t, a.group.Accept(st))
	future := seal(t, a, "epoch 5")
	b.refused(t, future, ErrFutureEpoch)
	b.open(t, st.Message)
	b.open(t, future)
	b.refused(t, st.Message, ErrPastEpoch)
	c, _ := pair(t, nil)
	b.refused(t, seal(t, c, "elsewhere"), ErrWrongGroup)
}

func TestPaddingIsZeroAndHidesTheLength(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	a.group.bench.padding = 256
	short, long := seal(t, a, "x"), seal(t, a, "a message that is longer")
	if len(short) != len(long) {
		t.Errorf("%d and %d bytes, which tells them apart", len(short), len(long))
	}
	if got := string(b.open(t, short).Application); got != "x" {
		t.Errorf("read %q", got)
	}
	// A sender that pads with something else.
	g := a.group
	for _, padding := range [][]byte{{1}, {0, 0, 1}, {0, 2, 0}} {
		c := &framedContent{groupID: g.ID(), epoch: g.Epoch(), sender: Sender{SenderMember, 0}, kind: ContentApplication, application: append([]byte("x"), padding...)}
		b.refused(t, sealPadded(t, g, c, padding), ErrMalformed)
	}
}

// sealPadded encrypts c with a padding of its own.
func sealPadded(t *testing.T, g *Group, c *framedContent, padding []byte) []byte {
	s, w := g.s, &g.bench
	c.application = c.application[:len(c.application)-len(padding)]
	a := &authenticated{wire: wirePrivate, content: c}
	check(t, a.sign(s, g.config.Identity.signer, g.epoch.encoded))
	inner := append(a.auth.append(c.appendBody(nil), c.kind), padding...)
	generation := must(g.epoch.ratchets.next(&w.key, 0, c.kind))(t)
	sender := append(appendU32(appendU32(nil, 0), generation), 0, 0, 0, 0)
	m := &privateMessage{groupID: c.groupID, epoch: c.epoch, kind: c.kind}
	head := append(appendU64(appendVector(nil, c.groupID), c.epoch), byte(c.kind))
	m.ciphertext = must(s.aead(w.key.key[:s.nk]))(t).Seal(nil, w.key.nonce[:], inner, appendVector(bytes.Clone(head), c.data))
	aead := must(w.senderDataAEAD(s, g.epoch.secrets.senderData, m.ciphertext))(t)
	m.senderData = aead.Seal(nil, w.outer.nonce[:], sender, head)
	return (&message{wire: wirePrivate, private: m}).append(nil)
}

func TestARatchetEndsAtItsLastGeneration(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	for _, c := range []*client{a, b} {
		pair, fresh, top, err := c.group.epoch.ratchets.ratchetsOf(0)
		check(t, err)
		c.group.epoch.ratchets.settle(0, pair, fresh, top)
		pair[applications].secret = make([]byte, 32)
		pair[applications].next = maxGeneration
	}
	last := seal(t, a, "the last one")
	if _, err := a.group.Seal(nil, nil, []byte("one more")); !errors.Is(err, ErrGenerations) {
		t.Errorf("after the last generation: %v", err)
	}
	if got := string(b.open(t, last).Application); got != "the last one" {
		t.Errorf("read %q", got)
	}
	b.refused(t, last, ErrReplayed)
}

func TestASenderThatIsBlankIsRefused(t *testing.T) {
	t.Parallel()
	all := newClients(t, X25519AES128, 3)
	createGroup(t, all, CommitOptions{})
	commit(t, all[:2], all[0], CommitOptions{Proposals: []Proposal{Remove(2)}})
	// Leaf 3 of 4 would be blank; the tree has two leaves now, and leaf 2 is beyond it.
	for _, leaf := range []uint32{2, 3, 1 << 31} {
		g := all[0].group
		c := &framedContent{groupID: g.ID(), epoch: g.Epoch(), sender: Sender{SenderMember, leaf}, kind: ContentApplication}
		a := &authenticated{wire: wirePrivate, content: c}
		check(t, a.sign(g.s, g.config.Identity.signer, g.epoch.encoded))
		g.bench.key = messageKey{}
		all[1].refused(t, must(g.bench.sealWith(nil, g.s, 0, g.epoch.secrets.senderData, a))(t), ErrSender)
	}
}

// secretsUsed collects every key and secret that reading or sending a message must leave no trace of.
func secretsUsed(g *Group, leaf uint32, kind ContentType, upTo uint32) (used [][]byte) {
	t := g.epoch.ratchets
	for x := 2 * leaf; ; x = parentOf(x) {
		if secret := t.nodes[x]; secret != nil {
			used = append(used, bytes.Clone(secret))
			break
		}
		if x == rootOf(t.width) {
			break
		}
	}
	pair, _, _, err := t.ratchetsOf(leaf)
	if err != nil {
		return nil
	}
	secret := bytes.Clone(pair[ratchetOf(kind)].secret)
	for n := pair[ratchetOf(kind)].next; n <= upTo; n++ {
		var k messageKey
		t.keys(&k, secret, n)
		used = append(used, bytes.Clone(secret))
		if n == upTo {
			used = append(used, bytes.Clone(k.key[:t.s.nk]), bytes.Clone(k.nonce[:]))
		}
		t.s.treeSecret(secret, secret, "secret", n)
	}
	return used
}

// TestTheStoredStateHoldsNoUsedKey is forward secrecy: what is on disk after use does not open what was sent before.
func TestTheStoredStateHoldsNoUsedKey(t *testing.T) {
	t.Parallel()
	quickSuites(t, func(t *testing.T, id Suite, _ bool) {
		all := newClients(t, id, 3)
		createGroup(t, all, CommitOptions{})
		a, b := all[0], all[1]
		absent := func(c *client, what string, used [][]byte) {
			t.Helper()
			if len(used) == 0 {
				t.Fatalf("%s: nothing was used", what)
			}
			stored := must(c.group.Snapshot(0))(t)
			for i, secret := range used {
				if len(secret) >= nonceSize && bytes.Contains(stored, secret) {
					t.Errorf("%s: secret %d of %d is still there", what, i, len(used))
				}
			}
		}
		// The keys are there before they are used, or the test would show nothing.
		used := secretsUsed(a.group, 0, ContentApplication, 0)
		if !bytes.Contains(must(a.group.Snapshot(0))(t), used[0]) {
			t.Fatal("the secret tree's root is not stored")
		}
		first := seal(t, a, "one")
		absent(a, "sent", used)
		used = secretsUsed(b.group, 0, ContentApplication, 0)
		b.open(t, first)
		absent(b, "read", used)
		used = secretsUsed(a.group, 0, ContentApplication, 3)
		for range 3 {
			first = seal(t, a, "more")
		}
		absent(a, "sent four", used[:len(used)-3])
		// A skipped key is kept until it is used.
		used = secretsUsed(b.group, 0, ContentApplication, 3)
		b.open(t, first)
		absent(b, "read the fourth", used)

		old := a.group.epoch
		used = [][]byte{bytes.Clone(old.secrets.init), bytes.Clone(old.secrets.exporter), bytes.Clone(old.secrets.external),
			bytes.Clone(old.secrets.confirm), bytes.Clone(old.secrets.membership), bytes.Clone(old.keys[0].Bytes())}
		used = append(used, secretsUsed(a.group, 0, ContentCommit, 0)...)
		st := must(a.group.Commit(CommitOptions{}))(t)
		check(t, a.group.Accept(st))
		absent(a, "committed", used)
		old = b.group.epoch
		used = [][]byte{bytes.Clone(old.secrets.init), bytes.Clone(old.secrets.exporter), bytes.Clone(old.secrets.external), bytes.Clone(old.secrets.membership)}
		used = append(used, secretsUsed(b.group, 0, ContentCommit, 0)...)
		b.open(t, st.Message)
		absent(b, "followed", used)
	})
}

func TestACrashUsesNoKeyTwice(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	const reserve = 8
	stored := must(a.group.Snapshot(reserve))(t)
	seen := make(map[uint32]bool)
	generation := func(m []byte) uint32 {
		event := b.open(t, m)
		g := b.group.epoch.ratchets.ratchets[event.Sender.Index][applications].next - 1
		if seen[g] {
			t.Errorf("generation %d was used twice", g)
		}
		seen[g] = true
		return g
	}
	for crash := range 10 {
		for range crash % (reserve + 1) {
			generation(seal(t, a, "before the crash"))
		}
		// The crash: what is stored is all there is.
		a.group = must(Load(a.config, stored))(t)
		stored = must(a.group.Snapshot(reserve))(t)
	}
	generation(seal(t, a, "after it"))
	if _, err := a.group.Snapshot(a.config.window().Ahead + 1); !errors.Is(err, ErrArgument) {
		t.Errorf("more reserved than others follow: %v", err)
	}
}

func TestStateIsStoredWhole(t *testing.T) {
	t.Parallel()
	quickSuites(t, func(t *testing.T, id Suite, public bool) {
		all := publicly(newClients(t, id, 4), public)
		createGroup(t, all, CommitOptions{}, ExternalSendersExtension([]External{{all[0].config.Identity.PublicKey(), Basic([]byte("x"))}}))
		chat(t, all)
		broadcast(t, all, all[1], must(all[1].group.ProposeUpdate(nil))(t))
		seal3 := must(all[3].group.Commit(CommitOptions{}))(t) // staged, and not accepted before the crash
		for _, c := range all {
			stored := must(c.group.Snapshot(0))(t)
			c.group = must(Load(c.config, stored))(t)
			if again := must(c.group.Snapshot(0))(t); !bytes.Equal(again, stored) {
				t.Fatalf("%s: another state after it was restored", c.name)
			}
		}
		agree(t, all)
		event := must(all[3].group.Open(seal3.Message))(t)
		if !event.Own {
			t.Fatal("the staged commit was forgotten")
		}
		check(t, all[3].group.Accept(event.Commit))
		broadcast(t, all, all[3], seal3.Message)
		agree(t, all)
		chat(t, all)
		if _, err := Load(newClient(t, id, "another").config, must(all[0].group.Snapshot(0))(t)); !errors.Is(err, ErrState) {
			t.Errorf("restored as another: %v", err)
		}
	})
}

func TestADamagedStateIsRefused(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	b.open(t, seal(t, a, "x"))
	stored := must(b.group.Snapshot(0))(t)
	for i := range stored {
		if _, err := Load(b.config, stored[:i]); !errors.Is(err, ErrState) && !errors.Is(err, ErrSuite) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		bad := bytes.Clone(stored)
		for range 1 + rng.IntN(3) {
			bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
		}
		if g, err := Load(b.config, bad); err == nil {
			// Whatever it is, it must not panic.
			g.Open(slices.Clone(stored))
			g.Seal(nil, nil, nil)
			g.Commit(CommitOptions{})
		}
	}
}
