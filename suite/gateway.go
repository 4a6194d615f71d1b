package suite

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"toll/certs"
	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/system"
)

// The phases of the benchmark gateway: in the clear, and over TLS 1.3 with certificates on both sides.
const (
	plainPhase = "plain"
	mtlsPhase  = "mtls"

	belowPhase = "below" // in the clear, at a share of the capacity that can be answered
	abovePhase = "above" // in the clear, at a share that can't
)

// clientName is whom the gateway's list admits.
const clientName = "caller"

type gatewayBench struct {
	*house
	client *tls.Config
}

func openGateway(h *house) (lab.Opener, error) {
	client, err := h.mutual()
	return gatewayBench{h, client}, err
}

// mutual makes the run's authority and leaves the files that a gateway with mutual TLS reads; it returns a client's side.
func (h *house) mutual() (*tls.Config, error) {
	a, err := certs.New(time.Now)
	if err != nil {
		return nil, err
	}
	server, err := a.Server("127.0.0.1", "localhost", h.ground.host())
	if err != nil {
		return nil, err
	}
	if _, _, err := server.WriteFiles(h.dir, "server"); err != nil {
		return nil, err
	}
	client, err := a.Client(clientName)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(client.CertPEM, client.KeyPEM)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"ca.crt": string(a.PEM()), "allow": pair.Leaf.Subject.String() + "\n"} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("the gateway's files: %w", err)
		}
	}
	return &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, nil
}

// A front is a contender of the benchmark: what stands before the handlers.
type front struct {
	sdk   string
	serve []string
	role  string
	clear bool // in the clear whatever the phase
}

func fronts() map[string]front {
	return map[string]front{
		"toll":         {sdk: "toll's gateway on its own HTTP loop, real agents", serve: []string{"gateway"}},
		"toll-plain":   {sdk: "the same in the clear", serve: []string{"gateway"}, clear: true},
		"toll-nethttp": {sdk: "toll's gateway on net/http, real agents", serve: []string{"gateway", "--front", "nethttp"}},
		"toll-remote":  {sdk: "toll's gateway, the agents in another process behind a NATS server", serve: []string{"gateway", "--remote"}},
		"nethttp":      {sdk: "the same handlers on bare net/http, no agents", serve: []string{"gateway", "--front", "bare"}},
		socketName:     {sdk: "the same handlers on a bare socket: no HTTP, no JSON, no agents", serve: []string{"gateway", "--front", "socket"}, role: result.Floor},
		"null":         {sdk: "one canned reply", serve: []string{"null"}, role: result.Null},
		"floor":        {sdk: "raw socket, echo", serve: []string{"echo"}, role: result.Floor},
	}
}

// Open starts one server process per contender.
func (b gatewayBench) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	request, reply, err := gatewayCase(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	if known := []string{plainPhase, mtlsPhase, belowPhase, abovePhase}; !slices.Contains(known, s.Phase) {
		return lab.Set{}, fmt.Errorf("phase %q is none of the benchmark gateway; want one of %s", s.Phase, strings.Join(known, ", "))
	}
	var seats []seat
	for _, name := range b.plan.Contenders {
		f, ok := fronts()[name]
		if !ok {
			return lab.Set{}, fmt.Errorf("contender %q is none of the benchmark gateway", name)
		}
		seat, err := b.seat(s, name, f, request, reply)
		if err != nil {
			return lab.Set{}, err
		}
		seats = append(seats, seat)
		if name == b.plan.Baseline {
			control := seat
			seats[len(seats)-1].role, control.role = result.Baseline, result.Control
			seats = append(seats, control)
		}
	}
	guests, gaps := b.guests(s, request)
	set := b.open(ctx, s, append(seats, guests...))
	set.Gaps = append(set.Gaps, gaps...)
	return set, nil
}

// guests seats the outside gateways. What they answer is read, not compared byte for byte: each has its own way to write JSON.
func (b gatewayBench) guests(s lab.Setting, request driver.RawRequest) (seats []seat, gaps []result.Gap) {
	want, err := gatewayWant(s.Case)
	for _, m := range b.outside {
		switch {
		case err != nil || m.Driver != gatewayDriver:
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest says driver %s; this benchmark calls gateways by driver %s", m.Driver, gatewayDriver)))
		case s.Phase == mtlsPhase:
			gaps = append(gaps, gap(s, m.Name, "its manifest takes no certificates"))
		default:
			seats = append(seats, seat{contender: b.outsider(m, clientText(driver.ClientRaw)), spec: m.Spec,
				target: func(r contender.Ready, wire *driver.Wire) load.Target {
					return &driver.HTTP{Addr: r.Addr, RawRequest: request, Expect: driver.Expect{JSON: want}, Wire: wire, Fresh: s.Case == freshCase}
				}})
		}
	}
	return seats, gaps
}

// callsGateway reports whether a manifest's contender answers the requests of this benchmark.
func callsGateway(m contender.Manifest) bool { return m.Driver == gatewayDriver }

// gatewayWant is what the reply to a case's request must hold, whoever wrote it.
func gatewayWant(name string) (want []driver.JSONWant, err error) {
	_, reply, err := gatewayCase(name)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(reply), &doc); err != nil {
		return nil, err
	}
	for _, place := range slices.Sorted(maps.Keys(doc)) {
		if place == "server" { // it is the contender's own
			continue
		}
		text, err := json.Marshal(doc[place])
		if err != nil {
			return nil, err
		}
		want = append(want, driver.JSONWant{Path: []string{place}, Value: string(text)})
	}
	return want, nil
}

func (b gatewayBench) seat(s lab.Setting, name string, f front, request driver.RawRequest, reply string) (seat, error) {
	out := seat{contender: result.Contender{Name: name, Language: "go", SDK: f.sdk}, role: f.role}
	args := append([]string{"serve"}, f.serve...)
	digest, err := b.digest(strings.Join(args, " "), func() (string, error) {
		spec, err := contender.Self(args...)
		return spec.Digest(), err
	})
	if err != nil {
		return out, err
	}
	out.contender.CommandSHA256 = digest
	if f.role == "" && strings.HasPrefix(s.Case, workCase) {
		args = append(args, "--threads", workThreads)
	}
	bare := name == socketName
	var client *tls.Config
	switch {
	case bare:
		args = append(args, "--call", strings.TrimPrefix(request.Path, "/v1/")+" "+string(request.Body))
	case f.role == result.Null:
		canned, err := b.fixture("gateway-"+strings.ReplaceAll(s.Case, "/", "-"), driver.CannedReply(reply))
		if err != nil {
			return out, err
		}
		args = append(args, "--reply", canned)
	case f.role == "" && !f.clear && s.Phase == mtlsPhase:
		file := func(name string) string { return filepath.Join(b.dir, name) }
		args = append(args, "--cert", file("server.crt"), "--key", file("server.key"), "--clients", "required", "--client-ca", file("ca.crt"), "--allow", file("allow"))
		client = b.client
		out.tls = &result.TLS{ServerVerified: true, ClientVerified: true}
	}
	if b.plan.Model == plan.Open && driver.LoopWorks && client == nil && f.role != result.Floor {
		out.client = driver.ClientLoop // the cheaper the client, the further from what is measured its own knee
	}
	out.clear = s.Phase == mtlsPhase && out.tls == nil
	out.handles = bare || f.role == "" && name != "toll-remote" // its handlers are in another process
	out.spec = func() (contender.Spec, error) { return contender.Self(args...) }
	out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
		switch {
		case bare:
			return &driver.Echo{Addr: r.Addr, Size: system.SocketMessage, Seed: uint64(s.Seed), Cold: s.Case == freshCase, Wire: wire}
		case f.role == result.Floor:
			return &driver.Echo{Addr: r.Addr, Size: floorHead, Seed: uint64(s.Seed), Wire: wire}
		}
		return &driver.HTTP{Addr: r.Addr, Client: out.client, RawRequest: request, Expect: driver.Expect{Body: []byte(reply)}, TLS: client, Wire: wire, Fresh: s.Case == freshCase}
	}
	return out, nil
}

// workCase begins the name of a case whose handler spends so much CPU time.
const workCase = "work/"

// workThreads lets what stands before a handler that computes read meanwhile, also on one processor.
const workThreads = "2"

// socketName is the floor that does the handler's work.
const socketName = "socket"

// freshCase is the empty call over a connection of its own each time: connecting and the handshake are parts of it.
const freshCase = "empty/fresh"

// gatewayCase is a case's request and the reply that is expected, byte for byte.
func gatewayCase(name string) (request driver.RawRequest, reply string, err error) {
	request = driver.RawRequest{Method: "POST", Header: "Content-Type: application/json\r\n"}
	switch {
	case name == "echo":
		const body = `{"session_id":"bench","text":"hello"}`
		request.Path, request.Body = "/v1/echo", []byte(body)
		return request, `{"keys":["session_id","text"],"payload":` + body + `,"server":"toll"}`, nil
	case name == "empty", name == freshCase:
		request.Path, request.Body = "/v1/empty", []byte(`{}`)
		return request, `{}`, nil
	}
	if text, ok := strings.CutPrefix(name, workCase); ok {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Microsecond || d > time.Second {
			return request, "", fmt.Errorf("case %q of the benchmark gateway: expected work/ and a time from 1us to 1s", name)
		}
		us := strconv.FormatInt(d.Microseconds(), 10)
		request.Path, request.Body = "/v1/work", []byte(`{"us":`+us+`}`)
		return request, `{"us":` + us + `}`, nil
	}
	text, ok := strings.CutPrefix(name, "fib/")
	n, numErr := strconv.Atoi(text)
	if !ok || numErr != nil || n < 0 || n > 40 {
		return request, "", fmt.Errorf("case %q is none of the benchmark gateway; expected echo, empty, empty/fresh, fib/N with N up to 40 or work/TIME", name)
	}
	a, b := 0, 1
	for range n {
		a, b = b, a+b
	}
	request.Path, request.Body = "/v1/fibonacci", []byte(`{"n":`+text+`}`)
	return request, fmt.Sprintf(`{"result":%d,"server":"toll"}`, a), nil
}
