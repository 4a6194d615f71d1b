package certs_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"testing"
	"time"

	"toll/certs"
)

func authority(t *testing.T, now func() time.Time) *certs.Authority {
	t.Helper()
	a, err := certs.New(now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func server(t *testing.T, a *certs.Authority, hosts ...string) certs.Pair {
	t.Helper()
	p, err := a.Server(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func client(t *testing.T, a *certs.Authority) certs.Pair {
	t.Helper()
	p, err := a.Client("load")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pair(t *testing.T, p certs.Pair) []tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{c}
}

func leaf(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(text)
	if block == nil || len(rest) != 0 {
		t.Fatalf("not one PEM block: %q", text)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// exchange sends one byte to a server on loopback and back. With TLS 1.3 a client learns only from its first read that
// the server refused its certificate.
func exchange(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() { done <- answer(l, server) }()
	clientErr = ask(l.Addr().String(), client)
	return <-done, clientErr
}

func answer(l net.Listener, config *tls.Config) error {
	raw, err := l.Accept()
	if err != nil {
		return err
	}
	c := tls.Server(raw, config)
	defer c.Close()
	b := make([]byte, 1)
	if _, err := c.Read(b); err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

func ask(addr string, config *tls.Config) error {
	c, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte{7}); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

// mutual is a server that wants a certificate and a client that has one, both of the authority.
func mutual(t *testing.T, a *certs.Authority) (s, c *tls.Config) {
	t.Helper()
	s = &tls.Config{Certificates: pair(t, server(t, a, "127.0.0.1", "gateway.test")), ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	return s, &tls.Config{Certificates: pair(t, client(t, a)), RootCAs: a.Pool()}
}

func TestBothSidesAreVerified(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, host := range []string{"", "127.0.0.1", "gateway.test"} {
			s, c := mutual(t, authority(t, time.Now))
			c.MinVersion, c.MaxVersion, c.ServerName = version, version, host
			var name string
			s.VerifyConnection = func(cs tls.ConnectionState) error {
				name = cs.VerifiedChains[0][0].Subject.CommonName
				return nil
			}
			if serverErr, clientErr := exchange(t, s, c); serverErr != nil || clientErr != nil || name != "load" {
				t.Errorf("%s, host %q: server %v, client %v, client's name %q", tls.VersionName(version), host, serverErr, clientErr, name)
			}
		}
	}
}

func TestClientRefusesServer(t *testing.T) {
	t.Parallel()
	a, other := authority(t, time.Now), authority(t, time.Now)
	for name, change := range map[string]func(s, c *tls.Config){
		"another CA":           func(s, c *tls.Config) { c.RootCAs = other.Pool() },
		"no CA":                func(s, c *tls.Config) { c.RootCAs = x509.NewCertPool() },
		"another name":         func(s, c *tls.Config) { c.ServerName = "other.test" },
		"a client certificate": func(s, c *tls.Config) { s.Certificates = pair(t, client(t, a)) },
		"a day later":          func(s, c *tls.Config) { c.Time = func() time.Time { return time.Now().Add(25 * time.Hour) } },
		"an hour before":       func(s, c *tls.Config) { c.Time = func() time.Time { return time.Now().Add(-time.Hour) } },
	} {
		s, c := mutual(t, a)
		change(s, c)
		serverErr, clientErr := exchange(t, s, c)
		var refused *tls.CertificateVerificationError
		if serverErr == nil || !errors.As(clientErr, &refused) {
			t.Errorf("%s: server %v, client %v, want a certificate verification error", name, serverErr, clientErr)
		}
	}
}

func TestServerRefusesClient(t *testing.T) {
	t.Parallel()
	a, other := authority(t, time.Now), authority(t, time.Now)
	for name, change := range map[string]func(s, c *tls.Config){
		"another CA":           func(s, c *tls.Config) { s.ClientCAs = other.Pool() },
		"a server certificate": func(s, c *tls.Config) { c.Certificates = pair(t, server(t, a, "localhost")) },
		"a day later":          func(s, c *tls.Config) { s.Time = func() time.Time { return time.Now().Add(25 * time.Hour) } },
		"another CA's pair":    func(s, c *tls.Config) { c.Certificates = pair(t, client(t, other)) },
	} {
		s, c := mutual(t, a)
		change(s, c)
		// Without this a client leaves out a certificate that the server's list of authorities does not name.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.Certificates[0], nil }
		serverErr, clientErr := exchange(t, s, c)
		var refused *tls.CertificateVerificationError
		if clientErr == nil || !errors.As(serverErr, &refused) {
			t.Errorf("%s: server %v, client %v, want a certificate verification error", name, serverErr, clientErr)
		}
	}
}

func TestClientWithoutCertificateIsRefused(t *testing.T) {
	t.Parallel()
	s, c := mutual(t, authority(t, time.Now))
	c.Certificates = nil
	if serverErr, clientErr := exchange(t, s, c); serverErr == nil || clientErr == nil {
		t.Errorf("server %v, client %v; want both to fail", serverErr, clientErr)
	}
}

func TestExpiredAuthorityIsRefusedAndWasValidInItsTime(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-48 * time.Hour)
	then := func() time.Time { return past }
	s, c := mutual(t, authority(t, then))
	_, clientErr := exchange(t, s, c)
	var invalid x509.CertificateInvalidError
	if !errors.As(clientErr, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("two days later: %v, want expired", clientErr)
	}
	s.Time, c.Time = then, then
	if serverErr, clientErr := exchange(t, s, c); serverErr != nil || clientErr != nil {
		t.Errorf("in its time: server %v, client %v", serverErr, clientErr)
	}
}

func TestCertificatesSayWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	a := authority(t, func() time.Time { return now })
	for name, c := range map[string]struct {
		text []byte
		ca   bool
		use  []x509.ExtKeyUsage
	}{
		"authority": {a.PEM(), true, nil},
		"server":    {server(t, a, "localhost").CertPEM, false, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		"client":    {client(t, a).CertPEM, false, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		got := leaf(t, c.text)
		if got.IsCA != c.ca || len(got.ExtKeyUsage) != len(c.use) || len(c.use) == 1 && got.ExtKeyUsage[0] != c.use[0] {
			t.Errorf("%s: CA %v, extended use %v", name, got.IsCA, got.ExtKeyUsage)
		}
		if !got.NotBefore.Equal(now.Add(-time.Minute)) || !got.NotAfter.Equal(now.Add(24*time.Hour)) {
			t.Errorf("%s: valid %v to %v, made at %v", name, got.NotBefore, got.NotAfter, now)
		}
		if key, ok := got.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
			t.Errorf("%s: key %T is not ECDSA P-256", name, got.PublicKey)
		}
	}
}

func TestServerCertificateHoldsItsHosts(t *testing.T) {
	t.Parallel()
	got := leaf(t, server(t, authority(t, time.Now), "localhost", "127.0.0.1", "::1", "gateway.test").CertPEM)
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "gateway.test": true, "127.0.0.2": false, "a.gateway.test": false} {
		if err := got.VerifyHostname(host); (err == nil) != want {
			t.Errorf("%s: %v, want covered %v", host, err, want)
		}
	}
	if len(got.IPAddresses) != 2 || len(got.DNSNames) != 2 {
		t.Errorf("addresses %v, names %v", got.IPAddresses, got.DNSNames)
	}
}

func TestNamelessCertificatesAreErrors(t *testing.T) {
	t.Parallel()
	a := authority(t, time.Now)
	if _, err := a.Server(); err == nil {
		t.Error("a server without hosts got a certificate")
	}
	for _, host := range []string{"", "127.0.0.1:8443", "[::1]", "https://gateway.test"} {
		if _, err := a.Server("localhost", host); err == nil {
			t.Errorf("host %q got a certificate", host)
		}
	}
	if _, err := a.Client(""); err == nil {
		t.Error("a client without a name got a certificate")
	}
}

func TestKeyFileIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), client(t, authority(t, time.Now))
	certFile, keyFile, err := p.WriteFiles(dir, "load")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(keyFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: mode %v, %v", keyFile, info.Mode(), err)
	}
	if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(certFile); err != nil || !bytes.Equal(text, p.CertPEM) {
		t.Errorf("%s: %v, %q", certFile, err, text)
	}
	if _, _, err := p.WriteFiles(dir, "load"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written twice: %v, want %v", err, fs.ErrExist)
	}
	for _, name := range []string{"", "..", "a/b", "/load"} {
		if _, _, err := p.WriteFiles(dir, name); err == nil {
			t.Errorf("%q was taken for a file name", name)
		}
	}
}
