package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/result"
	"toll/system"
	"toll/system/receipt"
)

type receiptBench struct {
	*house
	pins *receipt.Pins // of the servers' key
}

func openReceipt(h *house) (lab.Opener, error) {
	key, err := receipt.GenerateKey(filepath.Join(h.dir, "receipt.pem"))
	if err != nil {
		return nil, err
	}
	pins := &receipt.Pins{Gateway: receiptGateway, Keys: []receipt.Pin{receipt.PinOf(key.Public)}}
	return receiptBench{h, pins}, pins.WriteFile(filepath.Join(h.dir, "pinned.json"))
}

const (
	receiptGateway = "gateway.example"
	receiptTenant  = "acme"
)

// A signer is a contender of ours: how it is started, and in which phases it takes part.
type signer struct {
	mode string // of toll receipt serve; empty in phase library only
	sdk  string
	role string
}

func signers() map[string]signer {
	return map[string]signer{
		"sync":         {"sync", "crypto/ed25519, a signature each", ""},
		"sync-fast":    {"", "curve25519-voi, a signature each", ""},
		"batch":        {"batch", "crypto/ed25519, one signature for all that wait, RFC 6962 proofs", ""},
		"inproc-async": {"async-inproc", "as batch, signed by a goroutine of the same process", ""},
		"sidecar":      {"async-sidecar", "as batch, signed by a process of its own that alone holds the key", ""},
		"floor":        {"", "crypto/ed25519 alone: no envelope, no receipt", result.Floor},
		"null":         {"", "a call that does nothing", result.Null},
	}
}

// Open starts the contenders of a phase: engines in library, servers in socket and http.
func (b receiptBench) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	op, volume, ok := strings.Cut(s.Case, "/")
	if !ok || op != "receipt" && op != "accept" || volume != "volatile" && volume != "durable" {
		return lab.Set{}, fmt.Errorf("case %q is none of the benchmark receipt; want receipt or accept, /volatile or /durable", s.Case)
	}
	var seats []seat
	var gaps []result.Gap
	for _, name := range b.plan.Contenders {
		seat, why, err := b.seat(s, name, op, volume)
		switch {
		case err != nil:
			return lab.Set{}, err
		case why != "":
			gaps = append(gaps, gap(s, name, why))
			continue
		}
		seats = append(seats, seat)
		if name == b.plan.Baseline {
			seats[len(seats)-1].role = result.Baseline
			again, _, err := b.seat(s, name, op, volume)
			if err != nil {
				return lab.Set{}, err
			}
			again.role = result.Control
			seats = append(seats, again)
		}
	}
	for _, m := range b.outside {
		if why := b.refuses(s, m); why != "" {
			gaps = append(gaps, gap(s, m.Name, why))
			continue
		}
		seats = append(seats, b.outsideEngine(s, m))
	}
	set := b.open(ctx, s, seats)
	set.Gaps = append(set.Gaps, gaps...)
	return set, nil
}

// refuses says why an outside contender has no place in a setting, "" when it has.
func (b receiptBench) refuses(s lab.Setting, m contender.Manifest) string {
	switch {
	case m.Driver != "engine":
		return fmt.Sprintf("its manifest says driver %s; this benchmark asks an engine", m.Driver)
	case s.Phase != "library":
		return "it is a library: see phase library"
	case s.Case != "receipt/volatile":
		return "it signs in its own process and keeps nothing: see case receipt/volatile"
	}
	return ""
}

func (b receiptBench) outsideEngine(s lab.Setting, m contender.Manifest) seat {
	return seat{
		contender: b.outsider(m, ""), spec: m.Spec,
		engine: func(p *contender.Process) load.Target {
			return &driver.Engine{Asker: p, Case: s.Case, Input: map[string]string{"contender": m.Name}}
		},
	}
}

// seat describes a contender of ours, or says why it has no place in the setting.
func (b receiptBench) seat(s lab.Setting, name, op, volume string) (out seat, why string, err error) {
	o, ok := signers()[name]
	if !ok {
		return seat{}, "", fmt.Errorf("contender %q is none of the benchmark receipt", name)
	}
	out = seat{contender: result.Contender{Name: name, Language: "go", SDK: o.sdk}, role: o.role}
	switch {
	case s.Phase == "library":
		why, err = b.library(&out, s, name, op, volume)
	case s.Phase != "socket" && s.Phase != "http":
		return seat{}, "", fmt.Errorf("phase %q is none of the benchmark receipt; want library, socket or http", s.Phase)
	case name == "null":
		err = b.null(&out, s)
	case o.mode == "":
		return seat{}, "it has no server: see phase library", nil
	default:
		err = b.server(&out, s, name, o.mode, op, volume)
	}
	return out, why, err
}

// library seats an engine: the gateway in the process that calls it.
func (b receiptBench) library(out *seat, s lab.Setting, name, op, volume string) (why string, err error) {
	serve := "receipt-engine"
	switch {
	case name == "sidecar":
		return "its signer is a process of its own: see phases socket and http", nil
	case name == "sync-fast" && !system.FastSign():
		return "this binary has no faster Ed25519; build it with the tag voi", nil
	case name == "floor" && (op == "accept" || volume == "durable"):
		return "a signature alone is neither accepted nor kept: see case receipt/volatile", nil
	case name == "null":
		serve = "null-engine"
	}
	input := map[string]string{"contender": name, "dir": ""}
	if volume == "durable" && serve == "receipt-engine" {
		if input["dir"], err = os.MkdirTemp(b.dir, name+"-"); err != nil {
			return "", err
		}
	}
	out.connections = "shared"
	out.spec = func() (contender.Spec, error) { return contender.Self("serve", serve) }
	out.engine = func(p *contender.Process) load.Target {
		if serve == "null-engine" {
			return &driver.Engine{Asker: p, Case: s.Case}
		}
		return &driver.Engine{Asker: p, Case: s.Case, Input: input}
	}
	out.contender.CommandSHA256, err = b.digest(serve, func() (string, error) {
		spec, err := contender.Self("serve", serve)
		return spec.Digest(), err
	})
	return "", err
}

// server seats a gateway that is asked over a unix socket or HTTP. What it signed is verified before it is stopped.
func (b receiptBench) server(out *seat, s lab.Setting, name, mode, op, volume string) error {
	args := []string{"receipt", "serve", "--stdin", "--gateway", receiptGateway, "--mode", mode}
	if volume == "volatile" {
		args = append(args, "--durability", "none")
	}
	digest, err := b.digest(name+"/"+s.Phase+"/"+volume, func() (string, error) {
		spec, err := contender.Self(args...)
		return spec.Digest(), err
	})
	if err != nil {
		return err
	}
	out.contender.CommandSHA256 = digest
	args = append(args, "--key", filepath.Join(b.dir, "receipt.pem"), "--unix", b.socket(name))
	if mode == string(receipt.Sidecar) {
		args = append(args, "--start-sidecar", "--pins", filepath.Join(b.dir, "pinned.json"))
	}
	if s.Phase == "http" {
		args = append(args, "--addr", "127.0.0.1:0")
	}
	if volume == "durable" {
		dir, err := os.MkdirTemp(b.dir, name+"-")
		if err != nil {
			return err
		}
		args = append(args, "--dir", filepath.Join(dir, "log"))
	}
	out.spec = func() (contender.Spec, error) { return contender.Self(args...) }
	kept := &kept{pins: b.pins}
	out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
		t := &driver.Receipt{Addr: r.Addr, Accept: op == "accept", Seed: uint64(s.Seed), Tenant: receiptTenant, Wire: wire}
		if op == "receipt" {
			t.Keep = kept.keep
		}
		if wire != nil {
			t.Tenant += "-metered" // the metering pass asks for receipts of its own
		}
		return t
	}
	out.check = kept.verify
	return nil
}

// null seats a server that answers every request with the same bytes, as many as a single receipt has.
func (b receiptBench) null(out *seat, s lab.Setting) error {
	reply, err := b.fixture("receipt.json", []byte(`{"canned":"`+strings.Repeat("x", 545)+`"}`))
	if err != nil {
		return err
	}
	args := []string{"receipt", "serve", "--stdin", "--gateway", receiptGateway, "--canned", reply, "--unix", b.socket("null")}
	if s.Phase == "http" {
		args = append(args, "--addr", "127.0.0.1:0")
	}
	out.spec = func() (contender.Spec, error) { return contender.Self(args...) }
	out.contender.SDK = "one reply to everything"
	out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
		return &driver.Receipt{Addr: r.Addr, Seed: uint64(s.Seed), Tenant: receiptTenant, Wire: wire, Null: true}
	}
	out.contender.CommandSHA256, err = b.digest("null/"+s.Phase, func() (string, error) {
		spec, err := contender.Self("receipt", "serve", "--stdin", "--gateway", receiptGateway, "--canned")
		return spec.Digest(), err
	})
	return err
}

// kept is the receipts that a server gave.
type kept struct {
	pins *receipt.Pins
	mu   sync.Mutex
	all  []receipt.Receipt // guarded by mu
}

func (k *kept) keep(r []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, r)
}

// verify verifies every receipt by the pinned keys, and that no two have one place; tampered controls must fail.
func (k *kept) verify() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := system.VerifyReceipts(k.pins, k.all, nil)
	if err == nil && n != len(k.all) {
		err = errors.New("not every receipt was verified")
	}
	if err != nil {
		return fmt.Errorf("after the window, %d of %d receipts verified: %w", n, len(k.all), err)
	}
	return nil
}

// callsReceipt reports whether an outside contender is an engine that signs receipts: those in peers/javascript/receipts.
func callsReceipt(m contender.Manifest) bool {
	return m.Driver == "engine" && (strings.HasPrefix(m.Name, "noble-") || m.Name == "node-native")
}
