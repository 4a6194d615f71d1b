package mls

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// A world is a group in which anything happens: members come and go, messages are lost, late, doubled and forged, and
// members crash. What must hold: who follows every commit agrees with everyone, each message is read once, and a refusal
// changes nothing.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	id      Suite
	members []*client
	names   int
	air     []flying // messages on their way
	read    map[string]bool
	ops     map[string]int
}

// A flying message is for one member.
type flying struct {
	to   *client
	data []byte
	text string
}

func newWorld(t *testing.T, id Suite, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), id: id, read: make(map[string]bool), ops: make(map[string]int)}
	for range 3 {
		w.members = append(w.members, w.client())
	}
	createGroup(t, w.members, CommitOptions{})
	return w
}

func (w *world) client() *client {
	w.names++
	c := newClient(w.t, w.id, fmt.Sprintf("member %d", w.names))
	c.config.Public = w.rng.IntN(2) == 0
	c.config.PSK = func(p PSKID) ([]byte, error) {
		if len(p.ID) == 1 {
			return bytes.Repeat(p.ID, 20), nil
		}
		return nil, errors.New("no such key")
	}
	return c
}

func (w *world) any() *client { return w.members[w.rng.IntN(len(w.members))] }

// step does one thing at random.
func (w *world) step() {
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		w.say()
	case 3, 4, 5:
		w.hear()
	case 6:
		w.propose()
	case 7:
		w.crash()
	case 8:
		w.commit()
	case 9:
		w.external()
	}
}

// say sends a message to everyone, which is lost, doubled or damaged on the way to some.
func (w *world) say() {
	from := w.any()
	if len(from.group.proposals) > 0 {
		return
	}
	text := fmt.Sprintf("%s in %d says %x", from.name, from.group.Epoch(), w.rng.Uint64())
	m := must(from.group.Seal(nil, nil, []byte(text)))(w.t)
	for _, to := range w.members {
		if to == from || w.rng.IntN(8) == 0 {
			continue
		}
		w.air = append(w.air, flying{to, m, text})
		if w.rng.IntN(6) == 0 {
			w.air = append(w.air, flying{to, m, text})
		}
		if w.rng.IntN(4) == 0 {
			bad := bytes.Clone(m)
			bad[w.rng.IntN(len(bad))] ^= byte(1 + w.rng.IntN(255))
			w.air = append(w.air, flying{to, bad, ""})
		}
	}
	w.ops["said"]++
}

// hear delivers some of what is on its way, in any order.
func (w *world) hear() {
	for range min(len(w.air), 1+w.rng.IntN(6)) {
		at := w.rng.IntN(len(w.air))
		f := w.air[at]
		w.air[at] = w.air[len(w.air)-1]
		w.air = w.air[:len(w.air)-1]
		before := must(f.to.group.Snapshot(0))(w.t)
		event, err := f.to.group.Open(f.data)
		key := f.to.name + " " + f.text
		switch {
		case err == nil && (f.text == "" || string(event.Application) != f.text):
			w.t.Fatalf("%s reads %q, which nobody sent", f.to.name, event.Application)
		case err == nil && w.read[key]:
			w.t.Fatalf("%s reads %q twice", f.to.name, f.text)
		case err == nil:
			w.read[key] = true
			w.ops["read"]++
		case !bytes.Equal(must(f.to.group.Snapshot(0))(w.t), before):
			w.t.Fatalf("%s: a refused message changed its state: %v", f.to.name, err)
		default:
			w.ops["refused"]++
		}
	}
}

func (w *world) propose() {
	from := w.any()
	var m []byte
	switch w.rng.IntN(3) {
	case 0:
		m = must(from.group.ProposeUpdate(nil))(w.t)
	case 1:
		m = must(from.group.Propose(from.group.ExternalPSK([]byte{byte(w.rng.IntN(9))}), nil))(w.t)
	default:
		// The same proposal twice is the same message if it is not encrypted, and refused: the data tells them apart.
		m = must(from.group.Propose(SetExtensions(), fmt.Append(nil, w.ops["proposed"])))(w.t)
	}
	broadcast(w.t, w.members, from, m)
	w.ops["proposed"]++
}

// crash restores a member from its last snapshot.
func (w *world) crash() {
	c := w.any()
	c.group = must(Load(c.config, must(c.group.Snapshot(uint32(w.rng.IntN(5))))(w.t)))(w.t)
	w.ops["crashed"]++
}

// commit covers what was proposed, with members who come or go; sometimes two commit and one loses the race.
func (w *world) commit() {
	by := w.any()
	o := CommitOptions{NoPath: w.rng.IntN(3) == 0, OmitTree: w.rng.IntN(3) == 0}
	var joining []*client
	var bundles []*Bundle
	for range w.rng.IntN(3) {
		c := w.client()
		joining, bundles = append(joining, c), append(bundles, c.bundle(w.t))
		o.Proposals = append(o.Proposals, Add(bundles[len(bundles)-1].Package))
	}
	var gone *client
	if len(w.members) > 4 && w.rng.IntN(2) == 0 {
		if gone = w.any(); gone == by || w.updates(gone) {
			gone = nil
		} else {
			o.Proposals = append(o.Proposals, Remove(gone.group.Index()))
		}
	}
	var loser *Staged
	var late *client
	if late = w.any(); late != by && late != gone {
		loser = must(late.group.Commit(CommitOptions{}))(w.t)
	}
	st := must(by.group.Commit(o))(w.t)
	check(w.t, by.group.Accept(st))
	for _, c := range w.members {
		if c != by {
			c.open(w.t, st.Message)
		}
	}
	if loser != nil {
		late.group.Discard(loser)
		w.ops["races"]++
	}
	if gone != nil {
		w.leave(gone)
	}
	for i, c := range joining {
		c.group = must(Join(c.config, st.Welcome, bundles[i], JoinOptions{Tree: by.group.Tree()}))(w.t)
		w.members = append(w.members, c)
	}
	w.ops["commits"]++
	agree(w.t, w.members)
}

// updates says whether a member has an Update that waits to be committed.
func (w *world) updates(c *client) bool { return len(c.group.updates) > 0 }

// leave takes a member out of the world, and what was on its way to it.
func (w *world) leave(gone *client) {
	for i, c := range w.members {
		if c == gone {
			w.members = append(w.members[:i:i], w.members[i+1:]...)
			break
		}
	}
	kept := w.air[:0]
	for _, f := range w.air {
		if f.to != gone {
			kept = append(kept, f)
		}
	}
	w.air = kept
	w.ops["left"]++
}

// external has someone join by an external commit, or a member that lost its state come back.
func (w *world) external() {
	if w.rng.IntN(3) > 0 {
		return
	}
	c := w.client()
	o := ExternalOptions{}
	var old *client
	if w.rng.IntN(2) == 0 {
		old = w.any()
		c, o.Remove = &client{name: old.name, config: old.config}, true
	}
	var others []*client
	for _, m := range w.members {
		if m != old {
			others = append(others, m)
		}
	}
	group, message, err := JoinExternal(c.config, must(others[0].group.GroupInfo(true))(w.t), o)
	check(w.t, err)
	broadcast(w.t, others, nil, message)
	if old != nil {
		w.leave(old)
	}
	c.group = group
	w.members = append(w.members, c)
	w.ops["external"]++
	agree(w.t, w.members)
}

func TestAnythingThatHappensLeavesThemAgreed(t *testing.T) {
	t.Parallel()
	for _, id := range []Suite{X25519AES128, X25519ChaCha} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("suite-%d-seed-%d", id, seed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, id, seed)
				for range 120 {
					w.step()
				}
				t.Logf("%d members in epoch %d: %v", len(w.members), w.members[0].group.Epoch(), w.ops)
			})
		}
	}
}

// FuzzWorld lets the fuzzer choose what happens.
func FuzzWorld(f *testing.F) {
	f.Add(uint64(1), uint8(20))
	f.Add(uint64(99), uint8(60))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		w := newWorld(t, X25519AES128, seed)
		for range steps {
			w.step()
		}
	})
}
