package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"toll/lab/record"
)

// An address is where a target listens, taken apart.
type address struct {
	network, addr string // as net.Dial wants them
	host          string // as the Host field wants it
	tls           bool
}

// parseAddress reads http://host:port, https://host:port, tcp://host:port, tls://host:port or unix:/path.
func parseAddress(s string) (address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return address{}, fmt.Errorf("address %q: no socket path", s)
		}
		return address{network: "unix", addr: path, host: "localhost"}, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return address{}, fmt.Errorf("address: %w", err)
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return address{}, fmt.Errorf("address %q: more than scheme, host and port", s)
	}
	return hostAddress(u)
}

func hostAddress(u *url.URL) (address, error) {
	ports := map[string]string{"http": "80", "https": "443", "tcp": "", "tls": ""}
	port, known := ports[u.Scheme]
	if !known {
		return address{}, fmt.Errorf("address %q: want unix:/path, or http, https, tcp or tls with host and port", u)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if u.Hostname() == "" || port == "" {
		return address{}, fmt.Errorf("address %q: want a host and a port", u)
	}
	return address{"tcp", net.JoinHostPort(u.Hostname(), port), u.Host, u.Scheme == "https" || u.Scheme == "tls"}, nil
}

// A dialer connects to one address.
type dialer struct {
	address
	config  *tls.Config // used only if the address says TLS
	timeout time.Duration
	wire    *Wire
}

func newDialer(cfg ConnConfig) (dialer, error) {
	a, err := parseAddress(cfg.Addr)
	if err != nil {
		return dialer{}, err
	}
	d := dialer{a, new(tls.Config), cfg.Timeout, cfg.Wire}
	if cfg.TLS != nil {
		d.config = cfg.TLS.Clone()
	}
	if d.config.ServerName == "" {
		d.config.ServerName, _, _ = net.SplitHostPort(a.addr)
	}
	if d.config.NextProtos == nil {
		d.config.NextProtos = []string{"http/1.1"}
	}
	return d, nil
}

// dial connects, and shakes hands where the address says TLS. Its error is a *record.Failure.
func (d *dialer) dial(ctx context.Context) (net.Conn, error) { return d.timedDial(ctx, nil) }

// timedDial is dial, and tells timed, unless it is nil, what connecting and the TLS handshake took.
func (d *dialer) timedDial(ctx context.Context, timed func(string, time.Duration)) (net.Conn, error) {
	if timed == nil {
		timed = func(string, time.Duration) {}
	}
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	begin := time.Now()
	nc, err := new(net.Dialer).DialContext(ctx, d.network, d.addr)
	if err != nil {
		return nil, dialFailure(ctx, err)
	}
	connected := time.Now()
	timed("connect", connected.Sub(begin))
	nc = d.wire.count(nc)
	if !d.tls {
		return nc, nil
	}
	tc := tls.Client(nc, d.config)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, dialFailure(ctx, fmt.Errorf("tls with %s: %w", d.addr, err))
	}
	timed("tls", time.Since(connected))
	return tc, nil
}

func dialFailure(ctx context.Context, err error) error {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return record.Fail(record.Other, err)
	case record.KindOf(err) == record.Timeout:
		return record.Fail(record.Timeout, err)
	case unverified:
		return record.Fail(record.NotVerified, err)
	}
	return record.Fail(record.Connect, err)
}
