package suite_test

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"toll/certs"
	"toll/system/bus"
)

// Direct connections are encrypted, and each side knows the other, when it is asked for.
func TestDirectOverMutualTLS(t *testing.T) {
	t.Parallel()
	authority, err := certs.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := authority.Client("worker")
	if err != nil {
		t.Fatal(err)
	}
	serverPair, err := tls.X509KeyPair(server.CertPEM, server.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	clientPair, err := tls.X509KeyPair(client.CertPEM, client.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	s := bus.NewServer(bus.NewResponder(echo, bus.Config{}), true)
	l := listen(t)
	secure := tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{serverPair}, ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	})
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(secure) })
	t.Cleanup(func() { s.Shutdown(within(t, 60*time.Second)); wg.Wait() })
	dial := func(c *tls.Config) (*bus.Direct, error) {
		c.MinVersion = tls.VersionTLS13
		return bus.DialDirect(within(t, 60*time.Second), "tcp://"+l.Addr().(*net.TCPAddr).String(), c, bus.Config{})
	}
	d, err := dial(&tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{clientPair}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for n := range uint64(100) {
		if err := ask(within(t, 60*time.Second), d, bus.NewCall("a", "b", "c"), n); err != nil {
			t.Fatal(err)
		}
	}
	other, err := certs.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*tls.Config{
		"without a certificate": {RootCAs: authority.Pool()},
		"an unknown authority":  {RootCAs: other.Pool(), Certificates: []tls.Certificate{clientPair}},
	} {
		if d, err := dial(c); err == nil {
			d.Close()
			t.Errorf("%s: it was let in", name)
		}
	}
}
