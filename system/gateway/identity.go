package gateway

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// A peer is one connection's other end: read once, when the connection is new.
type peer struct {
	addr  netip.Addr
	names []string // of its verified certificate; nil without one

	proxied atomic.Pointer[proxied] // the last Client-Cert header, where the peer is a proxy
	checked atomic.Pointer[checked]
}

// A checked is the allow-list's word on a peer, and which list said it.
type checked struct {
	list *allowed
	ok   bool
}

// A proxied is the identity in a Client-Cert header, kept because a proxy sends many requests of one client.
type proxied struct {
	header string
	names  []string
	err    error
}

func newPeer(nc net.Conn) *peer {
	p := new(peer)
	if a, err := netip.ParseAddrPort(nc.RemoteAddr().String()); err == nil {
		p.addr = a.Addr().Unmap()
	}
	return p
}

// names are those by which a certificate can be listed: its subject (RFC 4514) and its alternative names.
func names(c *x509.Certificate) []string {
	out := []string{c.Subject.String()}
	for _, n := range c.DNSNames {
		out = append(out, "DNS:"+n)
	}
	for _, n := range c.EmailAddresses {
		out = append(out, "email:"+n)
	}
	for _, n := range c.IPAddresses {
		out = append(out, "IP:"+n.String())
	}
	for _, n := range c.URIs {
		out = append(out, "URI:"+n.String())
	}
	return out
}

// allowed is who may make requests; nil allows all whom the handshake let in.
type allowed struct{ names []string }

// parseAllowed reads one name a line: a subject such as CN=agent,O=Example, or an alternative name such as DNS:agent.example
// or URI:spiffe://example/agent. Empty lines and those that begin with # are skipped.
func parseAllowed(text string) (*allowed, error) {
	a := new(allowed)
	n := 0
	for line := range strings.Lines(text) {
		n++
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		kind, _, ok := strings.Cut(name, ":")
		if !strings.Contains(name, "=") && !(ok && slices.Contains([]string{"DNS", "email", "IP", "URI"}, kind)) {
			return nil, fmt.Errorf("line %d: %q; expected a subject such as CN=agent,O=Example, or DNS:, email:, IP: or URI: and a name", n, name)
		}
		a.names = append(a.names, name)
	}
	if a.names == nil {
		return nil, errors.New("it lists nobody, so that nobody could make a request")
	}
	return a, nil
}

func (a *allowed) has(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(a.names, n) })
}

// admit says whether a request of p may be answered. clientCert is its Client-Cert header, believed only from a proxy.
func (g *Gateway) admit(p *peer, clientCert string) error {
	list := g.material().allow
	if list == nil {
		return nil
	}
	who := p.names
	if clientCert != "" && g.trusts(p.addr) {
		got := p.behind(clientCert, g)
		if got.err != nil {
			return &problem{status: http.StatusForbidden, text: "Client-Cert: " + got.err.Error()}
		}
		if !list.has(got.names) {
			return &problem{status: http.StatusForbidden, text: fmt.Sprintf("the client %s is not on the list", got.names[0])}
		}
		return nil
	}
	if who == nil {
		return &problem{status: http.StatusUnauthorized, text: "a client certificate is needed"}
	}
	last := p.checked.Load()
	if last == nil || last.list != list {
		last = &checked{list, list.has(who)}
		p.checked.Store(last)
	}
	if !last.ok {
		return &problem{status: http.StatusForbidden, text: fmt.Sprintf("the client %s is not on the list", who[0])}
	}
	return nil
}

func (g *Gateway) trusts(a netip.Addr) bool {
	return a.IsValid() && slices.ContainsFunc(g.cfg.Proxies, func(n netip.Prefix) bool { return n.Contains(a) })
}

// behind returns the identity that a proxy passed on.
func (p *peer) behind(header string, g *Gateway) *proxied {
	if last := p.proxied.Load(); last != nil && last.header == header {
		return last
	}
	got := &proxied{header: header}
	cert, err := parseClientCert(header)
	if err == nil {
		if pool := g.material().clients; pool != nil {
			_, err = cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		}
	}
	if got.err = err; err == nil {
		got.names = names(cert)
	}
	p.proxied.Store(got)
	return got
}

// parseClientCert parses a certificate between colons in base64, an RFC 8941 byte sequence (RFC 9440 §2.1).
func parseClientCert(header string) (*x509.Certificate, error) {
	text, begun := strings.CutPrefix(header, ":")
	text, ended := strings.CutSuffix(text, ":")
	if !begun || !ended {
		return nil, errors.New("no byte sequence; expected base64 between colons")
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("its base64: %w", err)
	}
	return x509.ParseCertificate(der)
}
