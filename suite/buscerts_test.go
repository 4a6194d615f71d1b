package suite_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"toll/certs"
	"toll/system"
	"toll/system/bus"
)

// papers are an authority and what it has signed for a worker and for who connects.
type papers struct {
	pool           *x509.CertPool
	server, client []tls.Certificate
}

func newPapers(t *testing.T, hosts ...string) papers {
	t.Helper()
	authority, err := certs.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	pair := func(p certs.Pair, err error) []tls.Certificate {
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	return papers{authority.Pool(), pair(authority.Server(hosts...)), pair(authority.Client("worker"))}
}

// Over mutual TLS who has the right papers is answered, and everybody else is told what is wrong with theirs.
func TestABusWorkerOverMutualTLS(t *testing.T) {
	t.Parallel()
	ours, theirs, elsewhere := newPapers(t, "127.0.0.1"), newPapers(t, "127.0.0.1"), newPapers(t, "elsewhere.example")
	worker := func(p papers) string {
		r, err := system.Start(t.Context(), "bus-worker", system.Config{Carrier: system.DirectMailbox, TLS: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: p.server, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.pool,
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r.Addr
	}
	at, misnamed := worker(ours), worker(elsewhere)
	if !strings.HasPrefix(at, "tls://127.0.0.1:") {
		t.Errorf("the worker says that it is at %s", at)
	}
	for _, x := range []struct {
		name, at string
		secure   *tls.Config
		want     string // of the error; AT is the address
	}{
		{"both known", at, &tls.Config{RootCAs: ours.pool, Certificates: ours.client}, ""},
		{"wrong authority", at, &tls.Config{RootCAs: theirs.pool, Certificates: ours.client}, "connecting to tcp://AT: tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of \"x509: ECDSA verification failure\" while trying to verify candidate authority certificate \"toll throw-away CA\")"},
		{"no certificate", at, &tls.Config{RootCAs: ours.pool}, "connecting to tcp://AT: probing: unreachable: reading: remote error: tls: certificate required"},
		{"a certificate of another authority", at, &tls.Config{RootCAs: ours.pool, Certificates: theirs.client}, "connecting to tcp://AT: probing: unreachable: reading: remote error: tls: unknown certificate authority"},
		{"wrong name", misnamed, &tls.Config{RootCAs: elsewhere.pool, Certificates: ours.client}, "connecting to tcp://AT: tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"},
		{"no authority", at, nil, "connecting to tls://AT: who signs its certificate is not known; name a file of authorities"},
		{"in the clear", strings.Replace(at, "tls://", "tcp://", 1), nil, "connecting to tcp://AT: probing: unreachable: reading: EOF: it hung up on what is not encrypted; perhaps it listens over TLS"},
	} {
		c := system.NewBusClient(system.DirectMailbox, x.at, "", false)
		c.Secure(x.secure)
		l, err := c.Link(within(t, 60*time.Second))
		got := ""
		if err == nil {
			err = ask(within(t, 60*time.Second), l, bus.NewCall("target", "test", "ping"), 1)
		}
		if err != nil {
			got = strings.ReplaceAll(err.Error(), x.at[len("tls://"):], "AT")
		}
		if got != x.want {
			t.Errorf("%s: %q; want %q", x.name, got, x.want)
		}
		c.Close()
	}
}
