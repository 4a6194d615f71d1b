package contender

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A probe asks again after pauses that grow from the first to the last.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// expectReady says what the child is waited for, before it runs.
func (p *Process) expectReady() {
	switch {
	case p.spec.Probe == Probe{}:
		p.out.expect(func([]byte) bool { return true })
	case p.spec.Probe.Line != "":
		holds := func(text []byte) bool { return bytes.Contains(text, []byte(p.spec.Probe.Line)) }
		p.out.expect(holds)
		p.err.expect(holds)
	case p.spec.Probe.Ask != "":
		p.out.expect(isObject)
	}
}

// awaited describes what expectReady and awaitReady wait for.
func (p *Process) awaited() string {
	pr := p.spec.Probe
	switch {
	case pr.HTTP != "":
		return p.spec.endpoint().Addr + pr.HTTP + " to answer 2xx"
	case pr.TCP:
		return p.spec.Endpoint + " to accept a connection"
	case pr.Line != "":
		return fmt.Sprintf("a line that holds %q", pr.Line)
	case pr.Ask != "":
		return fmt.Sprintf("a line of JSON that answers %s", quote([]byte(pr.Ask)))
	}
	return wantReady + " on stdout"
}

// awaitReady returns when the child is ready, has ended, or ctx has. A dead child is a *CrashError.
func (p *Process) awaitReady(ctx context.Context) error {
	if pr := p.spec.Probe; pr.HTTP != "" || pr.TCP {
		return p.poll(ctx)
	}
	defer p.out.forget()
	defer p.err.forget()
	if ask := p.spec.Probe.Ask; ask != "" {
		if err := p.write(ctx, []byte(ask)); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	select {
	case l := <-p.out.got:
		return p.announced(l)
	case l := <-p.err.got:
		return p.announced(l)
	case <-p.out.over:
	case <-p.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	// What it wrote before it ended may still be in the pipe.
	p.drain(ctx)
	select {
	case l := <-p.out.got:
		return p.announced(l) // it was ready; that it has ended since is a crash like any other
	default:
	}
	select {
	case <-p.done:
		return p.crash()
	default:
		return fmt.Errorf("closed its stdout; expected %s", p.awaited())
	}
}

func (p *Process) announced(l line) (err error) {
	if (p.spec.Probe == Probe{}) {
		p.ready, err = parseReady(l)
		return err
	}
	p.ready = p.spec.endpoint()
	return nil
}

// endpoint returns what a Spec says of a process with a probe.
func (s Spec) endpoint() Ready {
	addr, path, err := splitAddr(s.Endpoint)
	if err != nil {
		panic("an endpoint that was checked: " + err.Error())
	}
	return Ready{Addr: addr, Path: path}
}

// poll asks until the endpoint answers.
func (p *Process) poll(ctx context.Context) error {
	ready := p.spec.endpoint()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		select {
		case <-pause.C:
		case <-p.done:
			p.drain(ctx)
			return p.crash()
		case <-ctx.Done():
			return ctx.Err()
		}
		if p.spec.Probe.answered(ctx, ready.Addr) && p.Err() == nil {
			p.ready = ready
			return nil
		}
		pause.Reset(wait)
	}
}

// answered reports whether the endpoint at addr is up.
func (pr Probe) answered(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if pr.HTTP == "" {
		nc, err := dial(ctx, addr)
		if err != nil {
			return false
		}
		nc.Close()
		return true
	}
	req, err := http.NewRequestWithContext(ctx, "GET", addr+pr.HTTP, nil)
	if err != nil {
		return false
	}
	// Whether it is up is all that is asked here; who it is, the driver verifies.
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, maxLine)
	return resp.StatusCode >= 200 && resp.StatusCode < 300
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	network, address := dialArgs(addr)
	return new(net.Dialer).DialContext(ctx, network, address)
}

// checkEndpointFree fails when somebody else is at the endpoint: the probe would take the stranger for the contender.
func (s Spec) checkEndpointFree(ctx context.Context) error {
	if s.Probe == (Probe{}) || s.Endpoint == stdioAddr {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	nc, err := dial(ctx, s.endpoint().Addr)
	if err != nil {
		return nil
	}
	nc.Close()
	return fmt.Errorf("%s: its endpoint %s is in use by another process; stop that one, or write {port} for a free port", s.Name, s.Endpoint)
}
