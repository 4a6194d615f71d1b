// Package place holds processes to processors. Left to itself, a system may put the two ends of a connection on one processor
// or on two, keeps them there for a while, and a round trip between two that sleep costs several times what it costs on one.
package place

import (
	"errors"
	"slices"
)

// A Set is numbers of processors in ascending order, as the system counts them; empty means any.
type Set []int

// ErrUnavailable is why processes can't be held to processors.
var ErrUnavailable = errors.New("this system does not hold processes to processors")

// A Placement is where the two sides of a measurement run.
type Placement struct{ Client, Contenders Set }

// Both is the processors of either side.
func (p Placement) Both() Set {
	both := slices.Concat(p.Client, p.Contenders)
	slices.Sort(both)
	return slices.Compact(both)
}

// Held deals the processors that may be used. With one caller nothing runs at the same time as anything else, so both sides
// share the last one: the first is where most interrupts go. With more, the client has the lower half and the contenders the
// rest; who has one processor only shares it.
func Held(usable Set, callers int) Placement {
	n := len(usable)
	if callers <= 1 || n < 2 {
		last := usable[max(n-1, 0):]
		return Placement{slices.Clone(last), slices.Clone(last)}
	}
	return Placement{slices.Clone(usable[:n/2]), slices.Clone(usable[n/2:])}
}
