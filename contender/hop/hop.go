// Package hop puts a real network between the lab and a contender: a network namespace of its own, reached over a veth pair
// or, with a delay, over netem or a pair of TUN devices between which a process carries packets. Namespaces have no name
// and devices no permanence, so nothing is left behind however a run ends.
package hop

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrUnavailable is why a hop can't be made on this machine.
var ErrUnavailable = errors.New("no such hop on this machine")

// Kinds of hop, as the result document names them.
const (
	Loopback = "loopback"
	Netns    = "netns"
)

// A Hop is what is asked for.
type Hop struct {
	Kind string
	RTT  time.Duration // added to a round trip; 0 adds nothing
}

// mostRTT bounds a delay: a packet in flight is held in memory.
const mostRTT = 2 * time.Second

// Parse parses loopback, netns or netns:5ms.
func Parse(s string) (Hop, error) {
	kind, delay, has := strings.Cut(s, ":")
	h := Hop{Kind: kind}
	if kind != Loopback && kind != Netns {
		return h, fmt.Errorf("hop %q; expected loopback, netns or netns:5ms", s)
	}
	if !has {
		return h, nil
	}
	d, err := time.ParseDuration(delay)
	if err != nil || kind == Loopback || d <= 0 || d > mostRTT {
		return h, fmt.Errorf("hop %q; expected netns and a round trip up to %v, such as netns:5ms", s, mostRTT)
	}
	h.RTT = d
	return h, nil
}

// String returns what Parse takes.
func (h Hop) String() string {
	if h.RTT > 0 {
		return h.Kind + ":" + h.RTT.String()
	}
	return h.Kind
}

// The mechanisms of a link: a veth pair, with a delay the kernel's own on it, or a process that carries packets.
const (
	Veth  = "veth"
	Netem = "netem"
	TUN   = "tun"
)

// Mechanism names how a link is made.
func (l *Link) Mechanism() string {
	if l.Delay == "" {
		return Veth
	}
	return l.Delay
}
