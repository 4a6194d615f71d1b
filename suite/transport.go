package suite

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

type transport struct {
	*house
	client *tls.Config // trusts the run's own authority
	guests string      // the client that outside contenders are called with
}

func openTransport(h *house) (lab.Opener, error) {
	client, err := h.authority()
	return transport{h, client, driver.ClientHTTP}, err
}

// Open starts one server process per contender: the plan's, the control, and those that manifests brought.
func (t transport) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	note, err := noteBytes(s.Case)
	if s.Case == emptyRead {
		note, err = 0, nil
	}
	if err != nil {
		return lab.Set{}, err
	}
	if t.plan.Processes == plan.Shared && s.Phase != "tcp" {
		return lab.Set{}, fmt.Errorf("a shared process serves phase tcp only")
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
	outside, gaps := t.visitors(s, note)
	set := t.open(ctx, s, append(seats, outside...))
	set.Gaps = append(set.Gaps, gaps...)
	return set, nil
}

// seat describes one contender of ours.
func (t transport) seat(s lab.Setting, name string, note int) (seat, error) {
	o, ok := ours()[name]
	if !ok {
		return seat{}, fmt.Errorf("contender %q is none of the benchmark transport", name)
	}
	if s.Case == emptyRead && o.role == "" {
		read, there := emptyReads()[name]
		if !there {
			return seat{}, fmt.Errorf("contender %q has no call for case %s", name, emptyRead)
		}
		o.target, o.unverified = read.target, read.unverified
	}
	if t.plan.Processes == plan.Shared && o.serve[0] != "ops" {
		return seat{}, fmt.Errorf("contender %q is not served by a process that all contenders share", name)
	}
	serve := slices.Clone(o.serve)
	if name == "null" {
		reply, err := t.fixture(fmt.Sprintf("reply-%d", note), driver.NoteReply(1, note))
		if err != nil {
			return seat{}, err
		}
		serve = append(serve, "--reply", reply)
	}
	out := seat{
		contender: result.Contender{Name: name, Language: "go", SDK: o.sdk},
		role:      o.role,
		target: func(r contender.Ready, wire *driver.Wire) load.Target {
			return o.target(call{addr: r.Addr, note: note, seed: uint64(s.Seed), wire: wire, tls: t.client})
		},
		spec: t.self(o.phase(s.Phase), name, serve),
	}
	out.unverified = o.unverified
	if o.phase(s.Phase) == "tls" {
		out.tls = &result.TLS{ServerVerified: true}
	}
	if o.shared && s.Concurrency > 1 {
		out.connections = "shared"
	}
	// The paths of a run's own folder are not part of what the contender is.
	digest, err := t.digest(name, func() (string, error) {
		spec, err := contender.Self(append([]string{"serve"}, o.serve...)...)
		return spec.Digest(), err
	})
	out.contender.CommandSHA256 = digest
	return out, err
}

// self is our own binary, started as anyone's is.
func (t transport) self(phase, name string, serve []string) func() (contender.Spec, error) {
	return func() (contender.Spec, error) {
		args := append([]string{"serve"}, serve...)
		switch phase {
		case "unix":
			args = append(args, "--unix", t.socket(name))
		case "tls":
			args = append(args, "--cert", filepath.Join(t.dir, "server.crt"), "--key", filepath.Join(t.dir, "server.key"), "--pq")
		}
		return contender.Self(args...)
	}
}

// visitors seats the outside contenders. They are called by the baseline's client, so that what differs is the server.
func (t transport) visitors(s lab.Setting, note int) (seats []seat, gaps []result.Gap) {
	for _, m := range t.outside {
		switch {
		case m.Driver != "rest":
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest says driver %s; this benchmark calls by rest", m.Driver)))
		case s.Case == emptyRead:
			gaps = append(gaps, gap(s, m.Name, "case "+emptyRead+" is made of our own contenders' calls"))
		case t.plan.Processes == plan.Shared:
			gaps = append(gaps, gap(s, m.Name, "the plan has one server process, ours, for all contenders"))
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
		contender: t.outsider(m, clientText(t.guests)),
		spec:      m.Spec,
		target: func(r contender.Ready, wire *driver.Wire) load.Target {
			return &driver.REST{Addr: r.Addr, Path: r.Path, Client: t.guests, Note: note, Seed: uint64(s.Seed), Wire: wire}
		},
	}
	return out
}

func clientText(kind string) string {
	if kind == driver.ClientRaw {
		return "toll's raw client"
	}
	return "net/http client"
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
