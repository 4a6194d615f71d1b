package mls

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

var errCut = errors.New("the power is cut")

// A cutStore loses its power at an operation. Whether that one was still made is not known to its caller.
type cutStore struct {
	Memory
	rng  *rand.Rand
	left int
}

func (c *cutStore) operate(do func() error) error {
	if c.left == 0 {
		if c.rng.IntN(2) == 0 {
			if err := do(); err != nil {
				return err
			}
		}
		return errCut
	}
	c.left--
	return do()
}

func (c *cutStore) Append(deltas ...[]byte) error {
	return c.operate(func() error { return c.Memory.Append(deltas...) })
}

func (c *cutStore) Snapshot(state []byte) error {
	return c.operate(func() error { return c.Memory.Snapshot(state) })
}

// A drill is a member whose power is cut, and another that sees all that leaves it.
type drill struct {
	t       *testing.T
	rng     *rand.Rand
	writer  *client
	reader  *client
	store   *cutStore
	o       StoreOptions
	cuts    int
	reached uint64 // the epoch that Accept said the writer is in
	sent    int
}

// do makes something that may be cut, and brings the writer back if it was. It says whether it was made.
func (d *drill) do(step func(g *Group) error) bool {
	d.t.Helper()
	err := step(d.writer.group)
	if err == nil {
		return true
	}
	if !errors.Is(err, errCut) {
		d.t.Fatalf("cut %d: %v", d.cuts, err)
	}
	d.cuts++
	d.store.left = -1
	d.writer.group = must(Restore(d.writer.config, d.store, d.o))(d.t)
	d.store.left = d.rng.IntN(12)
	if got := d.writer.group.Epoch(); got < d.reached {
		d.t.Fatalf("cut %d: epoch %d is back, %d was accepted", d.cuts, got, d.reached)
	}
	return false
}

// seal sends a message, which the reader must be able to read: a key that was used twice is a replay.
func (d *drill) seal() {
	var m []byte
	sealed := d.do(func(g *Group) (err error) {
		m, err = g.Seal(nil, nil, text)
		return err
	})
	if sealed {
		d.sent++
		event, err := d.reader.group.Open(m)
		if err != nil || !bytes.Equal(event.Application, text) {
			d.t.Fatalf("cut %d: message %d: %v", d.cuts, d.sent, err)
		}
	}
}

// accept makes the writer accept what the reader is in already, with as many lives as that takes.
func (d *drill) accept(message []byte, own bool) {
	for d.writer.group.Epoch() < d.reader.group.Epoch() {
		done := d.do(func(g *Group) error {
			event, err := g.Open(message)
			if err != nil {
				return err
			}
			if event.Own != own {
				d.t.Fatalf("cut %d: the commit is our own: %v, want %v", d.cuts, event.Own, own)
			}
			return g.Accept(event.Commit)
		})
		if done {
			d.reached = d.writer.group.Epoch()
		}
	}
}

func (d *drill) commitOwn() {
	var st *Staged
	made := d.do(func(g *Group) (err error) {
		st, err = g.Commit(CommitOptions{})
		return err
	})
	if !made {
		return
	}
	if d.rng.IntN(4) == 0 {
		d.writer.group.Discard(st)
		return
	}
	event := must(d.reader.group.Open(st.Message))(d.t)
	check(d.t, d.reader.group.Accept(event.Commit))
	d.accept(st.Message, true)
}

func (d *drill) commitOther() {
	st := must(d.reader.group.Commit(CommitOptions{}))(d.t)
	check(d.t, d.reader.group.Accept(st))
	d.accept(st.Message, false)
}

// update has the writer propose an Update that the reader commits: its private key must be there whatever was cut.
func (d *drill) update() {
	var m []byte
	made := d.do(func(g *Group) (err error) {
		m, err = g.ProposeUpdate(nil)
		return err
	})
	if made {
		must(d.reader.group.Open(m))(d.t)
		d.commitOther()
	}
	// What was not made, or what nobody committed, ends with the epoch.
	d.commitOther()
}

func (d *drill) read() {
	m := must(d.reader.group.Seal(nil, nil, text))(d.t)
	read := d.do(func(g *Group) error {
		_, err := g.Open(m)
		return err
	})
	if _, err := d.writer.group.Open(m); read && !errors.Is(err, ErrReplayed) {
		d.t.Fatalf("cut %d: read twice: %v", d.cuts, err)
	}
}

// TestPowerCutsReuseNoKeyAndLoseNoEpoch cuts the power at every kind of operation of the store. CUTS can be set.
func TestPowerCutsReuseNoKeyAndLoseNoEpoch(t *testing.T) {
	t.Parallel()
	cuts := 400
	if s := os.Getenv("CUTS"); s != "" {
		cuts = must(strconv.Atoi(s))(t)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	all := newClients(t, X25519AES128, 2)
	createGroup(t, all, CommitOptions{})
	rng := rand.New(rand.NewPCG(seed, 0))
	d := &drill{t: t, rng: rng, writer: all[0], reader: all[1], store: &cutStore{rng: rng, left: -1}, o: StoreOptions{Block: 4, Every: 5}}
	check(t, d.writer.group.Persist(d.store, d.o))
	d.store.left = 3
	steps := []func(){d.seal, d.seal, d.seal, d.seal, d.seal, d.read, d.read, d.commitOwn, d.commitOther, d.update}
	for d.cuts < cuts {
		steps[rng.IntN(len(steps))]()
		if d.writer.group.Epoch() == d.reader.group.Epoch() && !bytes.Equal(d.writer.group.EpochAuthenticator(), d.reader.group.EpochAuthenticator()) {
			t.Fatalf("cut %d: epoch %d is another one there than here", d.cuts, d.writer.group.Epoch())
		}
	}
	t.Logf("%d cuts, %d messages, %d epochs: no key used twice, no epoch lost", d.cuts, d.sent, d.reached)
}

// TestADrillNoticesWhatIsNotReserved: without reservations the drill must find a key that was used twice.
func TestADrillNoticesWhatIsNotReserved(t *testing.T) {
	t.Parallel()
	all := newClients(t, X25519AES128, 2)
	createGroup(t, all, CommitOptions{})
	var store Memory
	check(t, all[0].group.Persist(&store, StoreOptions{}))
	m := must(all[0].group.Seal(nil, nil, text))(t)
	must(all[1].group.Open(m))(t)
	forgetful := Memory{snapshot: bytes.Clone(store.snapshot)} // the reservation is lost
	back := must(Restore(all[0].config, &forgetful, StoreOptions{}))(t)
	if _, err := all[1].group.Open(must(back.Seal(nil, nil, text))(t)); !errors.Is(err, ErrReplayed) {
		t.Errorf("a generation that was used twice: %v, want %v", err, ErrReplayed)
	}
	kept := must(Restore(all[0].config, &store, StoreOptions{}))(t)
	must(all[1].group.Open(must(kept.Seal(nil, nil, text))(t)))(t)
}

// TestDeltasAreSmall: what a message and a commit write does not grow with what the group has.
func TestDeltasAreSmall(t *testing.T) {
	t.Parallel()
	all := newClients(t, X25519AES128, 40)
	createGroup(t, all, CommitOptions{})
	var store Memory
	g := all[0].group
	check(t, g.Persist(&store, StoreOptions{Every: -1}))
	whole := len(store.snapshot)
	for range 3 * defaultBlock {
		must(g.Seal(nil, nil, text))(t)
	}
	if len(store.deltas) != 3 {
		t.Errorf("%d deltas for three blocks of messages", len(store.deltas))
	}
	for range 4 {
		st := must(all[1].group.Commit(CommitOptions{}))(t)
		check(t, all[1].group.Accept(st))
		check(t, g.Accept(must(g.Open(st.Message))(t).Commit))
	}
	for _, d := range store.deltas {
		if len(d) > 4096 {
			t.Errorf("a delta of %d bytes", len(d))
		}
	}
	check(t, g.Compact())
	if now := len(store.snapshot); now > whole+whole/2 {
		t.Errorf("a snapshot of %d bytes with three past epochs, of %d without", now, whole)
	}
	back := must(Restore(all[0].config, &store, StoreOptions{}))(t)
	if !bytes.Equal(back.EpochAuthenticator(), all[1].group.EpochAuthenticator()) || !bytes.Equal(back.Tree(), g.Tree()) {
		t.Error("another group came back")
	}
	late := must(all[2].group.Seal(nil, nil, text))(t) // of an epoch that is past
	if event, err := back.Open(late); err == nil || !errors.Is(err, ErrPastEpoch) {
		t.Errorf("a message of four epochs ago: %v, %v", event, err)
	}
}

// FuzzRestore gives a store's content to Restore: no panic, and what comes back can be stored again.
func FuzzRestore(f *testing.F) {
	all := newClients(f, X25519AES128, 3)
	createGroup(f, all, CommitOptions{})
	var store Memory
	g := all[0].group
	check(f, g.Persist(&store, StoreOptions{}))
	must(g.Seal(nil, nil, text))(f)
	must(g.ProposeUpdate(nil))(f)
	must(g.Open(must(all[1].group.Seal(nil, nil, text))(f)))(f)
	check(f, g.Flush())
	must(g.Commit(CommitOptions{SkipPending: true}))(f)
	for _, d := range store.deltas {
		f.Add(d)
		for n := range d {
			f.Add(d[:n])
		}
	}
	snapshot := bytes.Clone(store.snapshot)
	f.Fuzz(func(t *testing.T, delta []byte) {
		back := Memory{snapshot: bytes.Clone(snapshot), deltas: [][]byte{delta}}
		restored, err := Restore(all[0].config, &back, StoreOptions{})
		if err == nil {
			must(restored.Snapshot(0))(t)
		} else if !errors.Is(err, ErrState) {
			t.Errorf("%v is no %v", err, ErrState)
		}
	})
}
