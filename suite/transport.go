package suite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/result"
)

// floorHead is about what the HTTP head and the JSON around a note add to it, so that the floor carries a message of the
// same size as the rows it stands under.
const floorHead = 160

type transport struct{ *house }

func openTransport(h *house) lab.Opener { return transport{h} }

// Open starts one server process per contender: the plan's, the control, and those that manifests brought.
func (t transport) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	note, err := noteBytes(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	var seats []seat
	for _, name := range t.plan.Contenders {
		seat, err := t.seat(s, name, note)
		if err != nil {
			return lab.Set{}, err
		}
		seats = append(seats, seat)
		if name == t.plan.Baseline {
			seats[len(seats)-1].role = result.Baseline
			again, err := t.seat(s, name, note)
			if err != nil {
				return lab.Set{}, err
			}
			again.role = result.Control
			seats = append(seats, again)
		}
	}
	outside, gaps := t.guests(s, note)
	set := t.open(ctx, s, append(seats, outside...))
	set.Gaps = append(set.Gaps, gaps...)
	return set, nil
}

// seat describes one contender of ours.
func (t transport) seat(s lab.Setting, name string, note int) (seat, error) {
	rest := func(client string, constant int64) func(contender.Ready, *driver.Wire) load.Target {
		return func(r contender.Ready, wire *driver.Wire) load.Target {
			return &driver.REST{Addr: r.Addr, Client: client, Note: note, Seed: uint64(s.Seed), ConstantID: constant, Wire: wire}
		}
	}
	out := seat{contender: result.Contender{Name: name, Language: "go"}}
	serve := []string{"ops"}
	switch name {
	case "rest":
		out.contender.SDK = "net/http client, net/http server"
		out.target = rest(driver.ClientHTTP, 0)
	case "rest-raw":
		out.contender.SDK = "toll's raw client, net/http server"
		out.target = rest(driver.ClientRaw, 0)
	case "null":
		out.contender.SDK = "toll's raw client, one canned reply"
		out.role = result.Null
		out.target = rest(driver.ClientRaw, 1)
		reply, err := t.fixture(fmt.Sprintf("reply-%d", note), driver.NoteReply(1, note))
		if err != nil {
			return seat{}, err
		}
		serve = []string{"null", "--reply", reply}
	case "floor":
		out.contender.SDK = "raw socket, echo"
		out.role = result.Floor
		out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
			return &driver.Echo{Addr: r.Addr, Size: min(floorHead+note, 64<<10), Seed: uint64(s.Seed), Wire: wire}
		}
		serve = []string{"echo"}
	default:
		return seat{}, fmt.Errorf("contender %q is none of the benchmark transport", name)
	}
	out.spec = t.self(s, name, serve)
	// The paths of a run's own folder are not part of what the contender is.
	digest, err := t.digest(name, func() (string, error) {
		spec, err := contender.Self("serve", serve[0])
		return spec.Digest(), err
	})
	out.contender.CommandSHA256 = digest
	return out, err
}

// self is our own binary, started as anyone's is.
func (t transport) self(s lab.Setting, name string, serve []string) func() (contender.Spec, error) {
	return func() (contender.Spec, error) {
		args := append([]string{"serve"}, serve...)
		if s.Phase == "unix" {
			args = append(args, "--unix", t.socket(name))
		}
		return contender.Self(args...)
	}
}

// guests seats the outside contenders. They are called by the baseline's client, so that what differs is the server.
func (t transport) guests(s lab.Setting, note int) (seats []seat, gaps []result.Gap) {
	for _, m := range t.outside {
		switch {
		case m.Driver != "rest":
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest says driver %s; this benchmark calls by rest", m.Driver)))
		case s.Phase == "unix":
			gaps = append(gaps, gap(s, m.Name, "its manifest gives no unix socket"))
		default:
			seats = append(seats, t.guest(s, m, note))
		}
	}
	return seats, gaps
}

func (t transport) guest(s lab.Setting, m contender.Manifest, note int) seat {
	out := seat{
		contender: t.outsider(m, "net/http client"),
		spec:      m.Spec,
		target: func(r contender.Ready, wire *driver.Wire) load.Target {
			return &driver.REST{Addr: r.Addr, Path: r.Path, Client: driver.ClientHTTP, Note: note, Seed: uint64(s.Seed), Wire: wire}
		},
	}
	return out
}

// outsider is what a manifest says of its contender; client is the library that we call it with.
func (h *house) outsider(m contender.Manifest, client string) result.Contender {
	digest, _ := h.digest(m.Name, func() (string, error) { return m.Digest(), nil })
	c := result.Contender{Name: m.Name, Version: m.Version, Language: m.Language, SDK: client, CommandSHA256: digest}
	if m.SDK != "" {
		c.SDK = strings.TrimPrefix(client+", "+m.SDK, ", ")
	}
	return c
}

// noteBytes returns how many bytes of note a case sends.
func noteBytes(name string) (int, error) { return sizeOf(name, "call/") }

// sizeOf parses the size of a case such as call/32B or call/4KiB.
func sizeOf(name, prefix string) (int, error) {
	size, ok := strings.CutPrefix(name, prefix)
	unit := 1
	if kib, found := strings.CutSuffix(size, "KiB"); found {
		size, unit = kib, 1024
	} else {
		size, found = strings.CutSuffix(size, "B")
		ok = ok && found
	}
	n, err := strconv.Atoi(size)
	if !ok || err != nil || n < 0 || n*unit > 64<<10 {
		return 0, fmt.Errorf("case %q is none of this benchmark; expected a size up to 64 KiB, such as %s32B or %s4KiB", name, prefix, prefix)
	}
	return n * unit, nil
}
