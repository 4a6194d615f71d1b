// Package faults stands between a client and a server and spoils their connection on purpose: it delays, drops, splits,
// replays and resets what passes through it, in user space, on any system. It works on what one read brought, which knows
// nothing of the protocol; given a function that finds frames, it works on whole frames. It does not shape packets: below it
// is TCP, so dropped bytes are gone for the reader, as a broken middlebox loses them, and are not sent again.
package faults

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Direction is one of the two ways through the proxy.
type Direction uint8

// The directions.
const (
	Up   Direction = iota // from the client to the server
	Down                  // from the server to the client
)

// String returns up or down.
func (d Direction) String() string {
	if d == Up {
		return "up"
	}
	return "down"
}

// A Way is what happens in one direction; the zero value passes everything on.
type Way struct {
	Delay  time.Duration // added to everything
	Jitter time.Duration // up to so much more, evenly; the order is kept
	Drop   float64       // share of pieces that are swallowed; 1 is a link that is dead in this direction
	Replay float64       // share of pieces that are sent twice
	Reset  float64       // share of pieces in whose place the connection is reset
	Split  int           // largest write, bytes; 0 = as it came
	Stall  bool          // nothing passes until it is taken back; nothing is lost
}

// Faults are what a proxy does.
type Faults struct{ Up, Down Way }

// Parse reads faults such as "delay=5ms,jitter=1ms,drop=0.01,replay=0.1,reset=0.001,split=1". A name that begins with up. or
// down. holds for one direction. delay and jitter without a direction are of a round trip: half goes to each.
func Parse(text string) (Faults, error) {
	var f Faults
	for item := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return f, fmt.Errorf("fault %q: want name=value, such as delay=5ms", item)
		}
		ways := []*Way{&f.Up, &f.Down}
		name, up := strings.CutPrefix(name, "up.")
		name, down := strings.CutPrefix(name, "down.")
		switch {
		case up:
			ways = ways[:1]
		case down:
			ways = ways[1:]
		}
		for _, w := range ways {
			if err := w.set(name, value, len(ways)); err != nil {
				return f, fmt.Errorf("fault %s: %w", item, err)
			}
		}
	}
	return f, nil
}

// set sets one field; shares is over how many directions a time is spread.
func (w *Way) set(name, value string, shares int) (err error) {
	switch name {
	case "delay":
		w.Delay, err = parseTime(value, shares)
	case "jitter":
		w.Jitter, err = parseTime(value, shares)
	case "drop":
		w.Drop, err = parseShare(value)
	case "replay":
		w.Replay, err = parseShare(value)
	case "reset":
		w.Reset, err = parseShare(value)
	case "split":
		w.Split, err = strconv.Atoi(value)
		if err != nil || w.Split < 1 {
			err = fmt.Errorf("%q is not a number of bytes from 1", value)
		}
	default:
		err = fmt.Errorf("%q is none of delay, jitter, drop, replay, reset and split, each perhaps behind up. or down", name)
	}
	return err
}

const longest = time.Minute

func parseTime(text string, shares int) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("%q is not a time from 0s to %v", text, longest)
	}
	return d / time.Duration(shares), nil
}

func parseShare(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 1 {
		return 0, fmt.Errorf("%q is not a share from 0 to 1", text)
	}
	return v, nil
}

// String returns what Parse reads, each direction for itself.
func (f Faults) String() string {
	var out []string
	for i, w := range []Way{f.Up, f.Down} {
		add := func(name string, set bool, value any) {
			if set {
				out = append(out, fmt.Sprintf("%s.%s=%v", Direction(i), name, value))
			}
		}
		add("delay", w.Delay > 0, w.Delay)
		add("jitter", w.Jitter > 0, w.Jitter)
		add("drop", w.Drop > 0, w.Drop)
		add("replay", w.Replay > 0, w.Replay)
		add("reset", w.Reset > 0, w.Reset)
		add("split", w.Split > 0, w.Split)
	}
	return strings.Join(out, ",")
}
