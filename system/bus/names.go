package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"toll/wire/envelope"
)

// ErrTaken is for a name that another node owns and has lately said so.
var ErrTaken = errors.New("bus: the name is taken")

// Table is the directory of one process: nodes that share it are in that process, or in a test.
type Table struct {
	mu    sync.Mutex
	names map[string]entry // guarded by mu
	last  uint64           // guarded by mu: the highest epoch ever given
}

type entry struct {
	owner Owner
	lost  func()
	gone  bool
}

// NewTable makes an empty table.
func NewTable() *Table { return &Table{names: make(map[string]entry)} }

// Claim makes o the owner. A node takes its own name again under a new epoch.
func (t *Table) Claim(_ context.Context, name string, o Owner, lost func()) (uint64, error) {
	t.mu.Lock()
	old, ok := t.names[name]
	if ok && !old.gone && old.owner.Node != o.Node {
		t.mu.Unlock()
		return 0, fmt.Errorf("%w: %s by %s", ErrTaken, name, old.owner.Node)
	}
	t.last++
	o.Epoch = t.last
	t.names[name] = entry{owner: o, lost: lost}
	t.mu.Unlock()
	if ok && !old.gone && old.lost != nil {
		old.lost()
	}
	return o.Epoch, nil
}

// Release gives a claim up; that of another epoch is left alone.
func (t *Table) Release(_ context.Context, name string, epoch uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[name].owner.Epoch == epoch {
		delete(t.names, name)
	}
	return nil
}

// Lookup returns the owner.
func (t *Table) Lookup(_ context.Context, name string, _ bool) (Owner, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.names[name]
	if !ok {
		return Owner{}, unknown(name)
	}
	return e.owner, nil
}

// Expire forgets that a node lives, as when it has not renewed its claims: others may take its names.
func (t *Table) Expire(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, e := range t.names {
		if e.owner.Node == node {
			e.gone = true
			t.names[name] = e
		}
	}
}

func unknown(name string) error {
	return &envelope.Failure{Code: envelope.NotFound, Agent: name, Detail: "no process has registered this name"}
}
