package suite

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/result"
)

// nullReply is a reply with a body, and fields as servers send them.
func nullReply(body []byte) []byte {
	b := []byte("HTTP/1.1 200 OK\r\nServer: toll\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: ")
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\nConnection: keep-alive\r\n\r\n"...)
	return append(b, body...)
}

// nullDocument is what the null target answers: the first target's body where one was probed.
func (l *loader) nullDocument() []byte {
	if l.nullDoc == nil {
		return nullReply([]byte("{}"))
	}
	return l.nullDoc
}

// Open starts what has to be started and seats every target, the baseline once more as the control where there is something
// to compare, and the null target.
func (l *loader) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	l.hold(s.Concurrency)
	var set lab.Set
	var seats []seat
	comparing := len(l.cfg.Targets) > 1
	for i, t := range l.cfg.Targets {
		role := ""
		if comparing && i == 0 {
			role = result.Baseline
		}
		for _, role := range []string{role, result.Control} {
			if role == result.Control && (!comparing || i > 0) {
				continue
			}
			if t.Command != "" {
				seats = append(seats, l.commandSeat(t, role))
				continue
			}
			addr, host, path := t.address()
			set.Entries = append(set.Entries, l.entry(t, role, addr, host, path))
		}
	}
	if !l.cfg.NoNull {
		null, err := l.nullSeat(s)
		if err != nil {
			return set, err
		}
		seats = append(seats, null)
	}
	if l.cfg.Floor {
		seats = append(seats, floorSeat(s))
	}
	started := l.open(ctx, s, seats)
	for i := range started.Entries {
		e := &started.Entries[i]
		e.Client = l.clientFor("")
		if h, ok := e.Target.(*driver.HTTP); ok {
			e.Client = h.Client
		}
		e.Unverified = e.Unverified || e.Role != result.Null && l.blind()
	}
	set.Entries = append(set.Entries, started.Entries...)
	set.Failures, set.Gaps = started.Failures, started.Gaps
	return set, nil
}

// blind reports whether nothing of a reply but its status and framing is looked at.
func (l *loader) blind() bool { return !l.cfg.Expect.Content() && len(l.cfg.Steps) == 0 }

// entry seats a URL.
func (l *loader) entry(t LoadTarget, role, addr, host, path string) lab.Entry {
	wire := new(driver.Wire)
	h := l.target(addr, host, path, l.client, nil)
	e := lab.Entry{
		Contender: result.Contender{Name: t.Name}, Role: role, Connections: "per-caller", Client: h.Client,
		Target: h, Metered: l.target(addr, host, path, l.client, wire),
		Wire: func() (out, in int64) { return wire.Out.Load(), wire.In.Load() },
		TLS:  l.verified(addr), Unverified: l.blind(),
		ClientOn: l.held.Client,
		Unseen:   "called by its address; toll did not start it and does not see its process",
	}
	if len(l.cfg.Targets) > 1 {
		e.Unseen += " by itself: what it spends on one row can't be told from what it spends on the others"
		return e
	}
	if found, err := contender.Listening(h.Socket()); err == nil {
		e.Process, e.Watched = watched{found}, true
	} else {
		e.Unseen += ": " + err.Error()
	}
	return e
}

// watched is a process that listens at a URL's address and that is not ours.
type watched struct{ l *contender.Listener }

// Usage is what it has used since the run began.
func (w watched) Usage() (lab.Usage, error) {
	u, err := w.l.Usage()
	return lab.Usage{CPU: u.CPU, User: u.User, System: u.System, RSSPeak: u.RSSPeak, Threads: u.Threads}, err
}

// Counters can't be asked for.
func (watched) Counters(context.Context) (lab.Counters, error) {
	return lab.Counters{}, errors.New("toll did not start this process and has no way to ask it")
}

// Stop leaves it alone.
func (watched) Stop(context.Context) error { return nil }

// verified says what of a TLS connection was verified, as far as the probe has seen.
func (l *loader) verified(addr string) *result.TLS {
	if !strings.HasPrefix(addr, "https:") {
		return nil
	}
	t := &result.TLS{ServerVerified: true, ClientVerified: l.cfg.Cert != "" && l.asked.Load(), Resumption: "off"}
	if l.cfg.Resume {
		t.Resumption = "on"
	}
	return t
}

func (l *loader) commandSeat(t LoadTarget, role string) seat {
	return seat{
		contender: result.Contender{Name: t.Name}, role: role, unverified: l.blind(),
		spec: func() (contender.Spec, error) {
			spec := contender.Spec{Name: t.Name, Command: []string{"sh", "-c", t.Command}}
			if strings.Contains(t.Command, "{port}") {
				spec.Endpoint, spec.Probe.TCP = "http://127.0.0.1:{port}", true
			}
			return spec, nil
		},
		target: func(r contender.Ready, wire *driver.Wire) load.Target {
			_, host, _ := strings.Cut(r.Addr, "://")
			return l.target(r.Addr, host, cmp.Or(t.Path, r.Path, "/"), l.client, wire)
		},
	}
}

// floorSeat is a server of ours that sends back what it reads.
func floorSeat(s lab.Setting) seat {
	return seat{
		contender: result.Contender{Name: result.Floor, Language: "go"}, role: result.Floor,
		spec: func() (contender.Spec, error) { return contender.Self("serve", "echo") },
		target: func(r contender.Ready, wire *driver.Wire) load.Target {
			return &driver.Echo{Addr: r.Addr, Seed: uint64(s.Seed), Wire: wire}
		},
	}
}

// nullSeat is a server of ours that answers with the first target's reply and does nothing else, over the same kind of
// socket.
func (l *loader) nullSeat(s lab.Setting) (seat, error) {
	file, err := l.fixture("null.http", l.nullDocument())
	if err != nil {
		return seat{}, err
	}
	args := []string{"serve", "null", "--reply", file}
	x := seat{contender: result.Contender{Name: result.Null, Language: "go"}, role: result.Null}
	switch s.Phase {
	case "unix":
		args = append(args, "--unix", l.socket("null"))
	case "tls":
		args = append(args, "--cert", filepath.Join(l.dir, "server.crt"), "--key", filepath.Join(l.dir, "server.key"))
		x.tls = &result.TLS{ServerVerified: true, Resumption: "off"}
	}
	x.spec = func() (contender.Spec, error) { return contender.Self(args...) }
	x.target = func(r contender.Ready, wire *driver.Wire) load.Target {
		h := l.target(r.Addr, "", "/", l.ca, wire)
		h.Expect, h.Steps = driver.Expect{}, nil
		if h.Client == driver.ClientH2 || h.Client == driver.ClientH2C {
			h.Client = driver.ClientHTTP
		}
		return h
	}
	return x, nil
}
