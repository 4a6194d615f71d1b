package driver_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"toll/driver"
	"toll/lab/record"
)

func serveTLS(t *testing.T, auth tls.ClientAuthType) (addr string, trust *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := driver.NoteReply(1, 32)
		w.Write(reply[len(reply)-len(`{"id":1,"note":"","status":"done","owner":"toll"}`)-32:])
	}))
	s.TLS = &tls.Config{ClientAuth: auth}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, &tls.Config{RootCAs: roots}
}

func TestTLSIsVerified(t *testing.T) {
	addr, trust := serveTLS(t, tls.NoClientCert)
	for _, client := range clients {
		c := open(t, &driver.REST{Addr: addr, Client: client, ConstantID: 1, Note: 32, TLS: trust})
		for range 2 {
			if err := call(t, c); err != nil {
				t.Errorf("%s: %v", client, err)
			}
		}
		_, err := (&driver.REST{Addr: addr, Client: client}).Open(t.Context())
		if kind(err) != record.NotVerified {
			t.Errorf("%s, unknown CA: %v, want kind %s", client, err, record.NotVerified)
		}
		_, err = (&driver.REST{Addr: addr, Client: client, TLS: &tls.Config{RootCAs: trust.RootCAs, ServerName: "other.test"}}).Open(t.Context())
		if kind(err) != record.NotVerified {
			t.Errorf("%s, another name: %v, want kind %s", client, err, record.NotVerified)
		}
	}
}

// With TLS 1.3 a server that wants a certificate says so only after our side of the handshake is done.
func TestTLSPeerThatWantsACertificateIsNoConnection(t *testing.T) {
	addr, trust := serveTLS(t, tls.RequireAnyClientCert)
	for _, client := range clients {
		c := open(t, &driver.REST{Addr: addr, Client: client, ConstantID: 1, Note: 32, TLS: trust})
		if err := call(t, c); kind(err) != record.Connect {
			t.Errorf("%s: %v, want kind %s", client, err, record.Connect)
		}
	}
}

func TestWireCountsUnderTLS(t *testing.T) {
	addr, trust := serveTLS(t, tls.NoClientCert)
	var wire driver.Wire
	c := open(t, &driver.REST{Addr: addr, ConstantID: 1, Note: 32, TLS: trust, Wire: &wire})
	before := wire.Out.Load()
	if err := call(t, c); err != nil || wire.Out.Load() <= before {
		t.Errorf("%v; %d bytes written, %d before the call", err, wire.Out.Load(), before)
	}
}
