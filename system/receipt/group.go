package receipt

import (
	"context"
	"crypto/ed25519"

	"toll/wire/jcs"
)

// A round is the callers that are frozen together. It ends with them: the group that comes of it stays, and refers to none.
type round struct {
	calls     []call        // guarded by Gateway.mu until the round's leader has taken it, then the leader's
	committed chan struct{} // closed when calls' outcomes are there
}

// A group is the entries that were frozen together, and whose durability is one sync.
type group struct {
	// Written by the leader before the round's callers are told, and read only from then on.
	form      byte
	before    frontier
	root      Hash // after it
	envelopes [][]byte
	leaves    []Hash
	nodes     *nodes // of form batch
	at        place

	signed  chan struct{} // closed when sigs and note are there
	sigs    [][]byte      // what a 'S' record holds; until signed is closed, guarded by Gateway.sigs
	missing int           // how many of them are not there; guarded by Gateway.sigs
	note    []byte        // of form batch: the signed checkpoint as a JSON string
}

// A call is one arrival that waits to be frozen.
type call struct {
	arrival Arrival
	key     key
	entry   entry // the outcome: where its envelope is, in this group or in an older one
	err     error
}

// An entry is one envelope's place in a group.
type entry struct {
	g *group
	i int
}

func (e entry) envelope() []byte { return e.g.envelopes[e.i] }
func (e entry) seq() uint64      { return e.g.before.size + uint64(e.i) }

// build computes what follows from before and the envelopes, and returns the frontier after them.
func (g *group) build() (after frontier) {
	g.leaves = make([]Hash, len(g.envelopes))
	scratch := make([]byte, 0, 1024)
	for i, e := range g.envelopes {
		g.leaves[i], scratch = leafHash(scratch, e)
	}
	if g.form == formBatch {
		g.nodes, after = newNodes(&g.before, g.leaves)
	} else {
		after = g.after()
	}
	g.root = after.root()
	return after
}

// after returns the frontier with a group's leaves, once they are built.
func (g *group) after() frontier {
	f := g.before
	for _, h := range g.leaves {
		f.add(h)
	}
	return f
}

// isSigned reports whether the group's receipts can be made.
func (g *group) isSigned() bool {
	select {
	case <-g.signed:
		return true
	default:
		return false
	}
}

// size is how many leaves the tree has with the group in it.
func (g *group) size() uint64 { return g.before.size + uint64(len(g.envelopes)) }

// setNote makes the checkpoint that every receipt of the group carries, and returns it.
func (g *group) setNote(origin string, public ed25519.PublicKey) []byte {
	text := appendCheckpoint(nil, origin, g.size(), g.root)
	note := appendNote(make([]byte, 0, 2*len(text)+256), text, origin, public, g.sigs[0])
	// A checkpoint is ASCII but for the dash, so it always has a form.
	g.note, _ = jcs.AppendString(make([]byte, 0, len(note)+16), string(note))
	return note
}

// receipt makes the receipt of an envelope whose signatures are there.
func (e entry) receipt() Receipt {
	g, env := e.g, e.envelope()
	switch g.form {
	case formBatch:
		return appendBatch(make([]byte, 0, len(g.note)+len(env)+64+len(g.nodes.level)*(hashText+3)), g.note, env, g.nodes, e.seq())
	case formRotation:
		return appendRotated(nil, env, g.leaves[e.i], g.sigs[0], g.sigs[1])
	}
	return appendSingle(make([]byte, 0, len(singleHead)+len(env)+singleTail), env, g.leaves[e.i], g.sigs[e.i])
}

// await waits until the group is signed or ctx ends.
func (g *group) await(ctx context.Context) error {
	select {
	case <-g.signed:
		return nil
	default:
	}
	select {
	case <-g.signed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
