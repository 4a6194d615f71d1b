package agent

import (
	"cmp"
	"slices"
)

// A View is what can be seen of a node of the tree.
type View struct {
	Kind     string `json:"kind"` // agent, supervisor, dynamic
	Name     string `json:"name"`
	State    string `json:"state"` // of an agent, see Ref.State; up or down for the others; down for one whose restart is not due yet
	Epoch    uint64 `json:"epoch,omitempty"`
	Queued   int    `json:"queued,omitempty"`
	Handled  uint64 `json:"handled,omitempty"`
	Restarts int    `json:"restarts,omitempty"`
	Children []View `json:"children,omitempty"`
	Count    int    `json:"count,omitempty"` // of a dynamic supervisor: children, of which at most some are shown
}

// maxShown bounds how many children of a dynamic supervisor a view holds.
const maxShown = 1000

// Tree returns the supervisors without a parent and all below them, by name.
func (rt *Runtime) Tree() []View {
	rt.mu.Lock()
	var tops []*Supervisor
	for _, s := range rt.supervisors {
		if s.parent == nil {
			tops = append(tops, s)
		}
	}
	var ds []*Dynamic
	for _, d := range rt.dynamic {
		if d.parent == nil {
			ds = append(ds, d)
		}
	}
	rt.mu.Unlock()
	var out []View
	for _, s := range tops {
		out = append(out, s.view())
	}
	for _, d := range ds {
		out = append(out, d.view())
	}
	slices.SortFunc(out, func(a, b View) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (s *Supervisor) view() View {
	v := View{Kind: "supervisor", Name: s.spec.Name, State: "up"}
	s.mu.Lock()
	v.Restarts = s.restarts
	if s.over {
		v.State = "down"
	}
	s.mu.Unlock()
	for _, seat := range s.seats {
		v.Children = append(v.Children, seat.view())
	}
	return v
}

func (seat *seat) view() (v View) {
	seat.mu.Lock()
	who, restarts := seat.who, seat.restarts
	seat.mu.Unlock()
	switch who := who.(type) {
	case *process:
		v = Ref{who}.View()
	case *Supervisor:
		v = who.view()
	case *Dynamic:
		v = who.view()
	default:
		v = View{Kind: "agent", Name: seat.spec.Name, State: "down"}
		switch {
		case seat.spec.Supervisor != nil:
			v.Kind, v.Name = "supervisor", seat.spec.Supervisor.Name
		case seat.spec.Dynamic != nil:
			v.Kind, v.Name = "dynamic", seat.spec.Dynamic.Name
		}
	}
	if _, own := who.(*Supervisor); !own {
		v.Restarts = restarts
	}
	return v
}

func (d *Dynamic) view() View {
	v := View{Kind: "dynamic", Name: d.spec.Name, State: "up", Count: d.Len()}
	for i, r := range d.Children() {
		if i == maxShown {
			break
		}
		v.Children = append(v.Children, r.View())
	}
	return v
}

// View returns what can be seen of the agent.
func (r Ref) View() View {
	p := r.p
	p.mu.Lock()
	handled := p.handled
	p.mu.Unlock()
	return View{Kind: "agent", Name: p.name, State: r.State(), Epoch: p.epoch, Queued: r.Queued(), Handled: handled}
}
