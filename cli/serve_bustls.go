package cli

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"

	"toll/system"
)

// busTLS is how a process of the bus is encrypted: a worker that listens by the gateway's flags, a client that dials by those
// of toll load. Without any of them it is nil.
func (c *serveCmd) busTLS() (*tls.Config, error) {
	flag := c.busTLSFlag()
	switch {
	case flag == "" && c.System == "bus" && strings.HasPrefix(c.Bus.At, "tls://"):
		return nil, usage("--at %s: needs --cacert: who signs the worker's certificate", c.Bus.At)
	case flag == "":
		return nil, nil
	}
	direct := c.Bus.Carrier == system.Direct || c.Bus.Carrier == system.DirectMailbox
	switch {
	case c.System != "bus" && c.System != "bus-worker":
		return nil, usage("%s: %s is not encrypted from the command line; bus-worker and bus of the carriers direct and direct-mailbox are", flag, c.System)
	case !direct:
		return nil, usage("%s: carrier %s is not encrypted from the command line; direct and direct-mailbox are", flag, c.Bus.Carrier)
	case c.System == "bus":
		return c.busDials(flag)
	}
	return c.busListens()
}

// busTLSFlag returns the first flag given that is about certificates.
func (c *serveCmd) busTLSFlag() string {
	for _, f := range []struct{ name, value string }{{"--cert", c.Cert}, {"--client-ca", c.Gateway.ClientCA}, {"--cacert", c.Bus.CA}} {
		if f.value != "" {
			return f.name
		}
	}
	return ""
}

// busListens shows a certificate and, with --client-ca, wants one.
func (c *serveCmd) busListens() (*tls.Config, error) {
	switch {
	case c.Bus.CA != "":
		return nil, usage("--cacert: bus-worker listens; --client-ca says who signs the certificates of those that connect")
	case c.Cert == "":
		return nil, usage("--client-ca: needs --cert and --key")
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS13}
	var err error
	if secure.Certificates, err = c.pair(); err != nil {
		return nil, err
	}
	if c.Gateway.ClientCA != "" {
		secure.ClientAuth = tls.RequireAndVerifyClientCert
		secure.ClientCAs, err = authorities("--client-ca", c.Gateway.ClientCA)
	}
	return secure, err
}

// busDials verifies the worker and shows a certificate where one is given.
func (c *serveCmd) busDials(flag string) (secure *tls.Config, err error) {
	at, tcp := strings.CutPrefix(strings.Replace(c.Bus.At, "tls://", "tcp://", 1), "tcp://")
	switch {
	case c.Gateway.ClientCA != "":
		return nil, usage("--client-ca: bus connects; --cacert says who signs the worker's certificate")
	case c.Bus.At == "":
		return nil, usage("%s: needs --at: the worker that bus starts itself is reached over loopback, in the clear", flag)
	case c.Bus.CA == "":
		return nil, usage("--cert: needs --cacert: who signs the worker's certificate")
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil || !tcp {
		return nil, usage("--at %q: over TLS, want tls://host:port", c.Bus.At)
	}
	secure = &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host}
	if secure.RootCAs, err = authorities("--cacert", c.Bus.CA); err != nil || c.Cert == "" {
		return secure, err
	}
	secure.Certificates, err = c.pair()
	return secure, err
}

// pair reads our certificate.
func (c *serveCmd) pair() ([]tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, usage("--cert, --key: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// authorities reads who signs certificates.
func authorities(flag, file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usage("%s: %s holds no certificate in PEM form", flag, file)
	}
	return pool, nil
}
