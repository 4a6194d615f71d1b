package agent

import (
	"context"
	"fmt"
	"slices"

	"toll/wire/envelope"
)

// admit examines a request and takes a place for its child. again is the earlier spawn of the same ID.
func (d *Dynamic) admit(r *SpawnRequest) (o *offspring, again *ordered, err error) {
	// Where nothing else is examined, that a name is taken shows when it is to be taken.
	taken := d.picky && d.rt.registry.get(r.Name) != nil
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.ID != "" {
		if again = d.byID[r.ID]; again != nil {
			return nil, again, nil
		}
	}
	if err := d.examine(r, taken); err != nil {
		return nil, nil, err
	}
	n := new(newborn) // one piece of memory for both
	o = &n.o
	*o = offspring{d: d, class: d.classes[r.Class], spawner: r.Spawner, config: r.Config, name: r.Name, first: &n.p}
	if r.ID != "" {
		o.order = &ordered{id: r.ID, done: make(chan struct{})}
		d.byID[r.ID] = o.order
	}
	o.prev, o.next = d.head.prev, &d.head
	o.prev.next, o.next.prev = o, o
	d.live++
	d.spawns++
	if d.spec.MaxPerSpawner > 0 {
		d.perSpawner[r.Spawner]++
	}
	if d.spec.MaxSpawnsPerSpawner > 0 {
		d.spawnsOf[r.Spawner]++
	}
	return o, nil, nil
}

// examine says why r is refused, or nil. mu is held.
func (d *Dynamic) examine(r *SpawnRequest, taken bool) error {
	refuse := func(reason Reason, format string, args ...any) error {
		return &Refusal{Reason: reason, Name: fmt.Sprintf("%.40s", r.Name), Detail: fmt.Sprintf(format, args...)}
	}
	_, known := d.spawnsOf[r.Spawner]
	switch {
	case d.closed:
		return refuse(ShuttingDown, "supervisor %s has been closed", d.spec.Name)
	case taken || d.restarting[r.Name] != nil:
		return refuse(DuplicateName, "an agent has this name")
	case d.spec.MaxChildren > 0 && d.live >= d.spec.MaxChildren:
		return refuse(MaxChildren, "supervisor %s has %d children", d.spec.Name, d.live)
	case d.spec.MaxSpawns > 0 && d.spawns >= d.spec.MaxSpawns:
		return refuse(MaxSpawns, "supervisor %s has admitted %d", d.spec.Name, d.spawns)
	case d.spec.MaxPerSpawner > 0 && d.perSpawner[r.Spawner] >= d.spec.MaxPerSpawner:
		return refuse(MaxPerSpawner, "%.40q has %d children", r.Spawner, d.perSpawner[r.Spawner])
	case d.spec.MaxSpawnsPerSpawner > 0 && d.spawnsOf[r.Spawner] >= d.spec.MaxSpawnsPerSpawner:
		return refuse(MaxSpawnsPerSpawner, "%.40q has had %d", r.Spawner, d.spawnsOf[r.Spawner])
	case d.spec.MaxSpawnsPerSpawner > 0 && !known && len(d.spawnsOf) >= d.spec.MaxSpawners:
		return refuse(MaxSpawners, "supervisor %s counts the spawns of %d others already", d.spec.Name, len(d.spawnsOf))
	case d.classes[r.Class] == nil:
		return refuse(UnknownClass, "%.40q", r.Class)
	case d.spec.Spawners != nil && !slices.Contains(d.spec.Spawners, r.Spawner):
		return refuse(NotAllowed, "%.40q is not on the list of spawners", r.Spawner)
	}
	return nil
}

// remove gives a child's place back; refund gives its admission back too, when it never got a name.
func (d *Dynamic) remove(o *offspring, refund bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.prev.next, o.next.prev = o.next, o.prev
	o.prev, o.next = nil, nil
	d.live--
	if o.order != nil && d.byID[o.order.id] == o.order {
		delete(d.byID, o.order.id)
	}
	if d.spec.MaxPerSpawner > 0 {
		if d.perSpawner[o.spawner]--; d.perSpawner[o.spawner] == 0 {
			delete(d.perSpawner, o.spawner)
		}
	}
	if !refund {
		return
	}
	d.spawns--
	if d.spec.MaxSpawnsPerSpawner > 0 {
		if d.spawnsOf[o.spawner]--; d.spawnsOf[o.spawner] == 0 {
			delete(d.spawnsOf, o.spawner)
		}
	}
}

func notFound(name string) error {
	return failure(envelope.NotFound, name, "no child of this supervisor has the name")
}

func failureIn(ctx context.Context, name string) error {
	return failure(envelope.FromContext(ctx), name, "waiting for a spawn of the same id")
}
