package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toll/system/gateway"
)

// An authority signs certificates that the gateway's own would never be: expired ones, ones for another use.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, true)
	return a
}

func (a authority) sign(c *x509.Certificate, self bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if self {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// client makes a client's certificate.
func (a authority) client(change func(*x509.Certificate)) tls.Certificate {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "agent", Organization: []string{"Example"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(c)
	}
	cert, key := a.sign(c, false)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// server writes a server's certificate and the authority's to dir.
func (a authority) server(dir string) {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, false)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"server.crt": pemOf("CERTIFICATE", cert.Raw), "server.key": pemOf("PRIVATE KEY", der), "ca.crt": pemOf("CERTIFICATE", a.cert.Raw)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// secured is a gateway's configuration with mutual TLS, its files in dir.
func secured(t *testing.T, c gateway.Config, a authority, clients, allow string) (gateway.Config, string) {
	t.Helper()
	dir := t.TempDir()
	a.server(dir)
	c.TLS = &gateway.TLS{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), Clients: clients}
	if clients != "" {
		c.TLS.CA = filepath.Join(dir, "ca.crt")
	}
	if allow != "" {
		c.TLS.Allow = filepath.Join(dir, "allow")
		if err := os.WriteFile(c.TLS.Allow, []byte(allow), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, dir
}

// over returns a client that trusts a and shows certs.
func over(t *testing.T, a authority, h2 bool, most uint16, certs ...tls.Certificate) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: certs, MaxVersion: most}, ForceAttemptHTTP2: h2}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func post(c *http.Client, addr string, header ...string) (status int, proto, body string, err error) {
	req, _ := http.NewRequestWithContext(context.Background(), "POST", "https://"+addr+"/v1/echo", strings.NewReader("{}"))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Proto, string(b), err
}

func TestMutualTLS(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		ours, foreign := newAuthority(t, "ours"), newAuthority(t, "foreign")
		c, _ = secured(t, c, ours, gateway.ClientRequired, "# who may\nCN=agent,O=Example\nURI:spiffe://example/agent\n")
		_, addr := serve(t, c)
		named := func(cn string) func(*x509.Certificate) {
			return func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: cn, Organization: []string{"Example"}} }
		}
		spiffe, _ := url.Parse("spiffe://example/agent")
		for name, x := range map[string]struct {
			certs  []tls.Certificate
			most   uint16
			status int
			body   string
			refuse string
		}{
			"listed":              {certs: []tls.Certificate{ours.client(nil)}, status: 200},
			"listed by SAN":       {certs: []tls.Certificate{ours.client(func(c *x509.Certificate) { named("other")(c); c.URIs = []*url.URL{spiffe} })}, status: 200},
			"unlisted":            {certs: []tls.Certificate{ours.client(named("other"))}, status: 403, body: `{"error":"the client CN=other,O=Example is not on the list"}`},
			"a part of a subject": {certs: []tls.Certificate{ours.client(named("agen"))}, status: 403, body: `{"error":"the client CN=agen,O=Example is not on the list"}`},
			"none":                {refuse: "certificate required"},
			"foreign authority":   {certs: []tls.Certificate{foreign.client(nil)}, refuse: "unknown certificate authority"},
			"expired": {certs: []tls.Certificate{ours.client(func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
			})}, refuse: "expired certificate"},
			"for servers": {certs: []tls.Certificate{ours.client(func(c *x509.Certificate) {
				c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			})}, refuse: "bad certificate"},
			"TLS 1.2": {certs: []tls.Certificate{ours.client(nil)}, most: tls.VersionTLS12, refuse: "protocol version not supported"},
		} {
			for _, h2 := range []bool{false, true} {
				// A client with certificates of a foreign authority would show none of them if it were asked only for ours.
				client := over(t, ours, h2, x.most, x.certs...)
				for i := range client.Transport.(*http.Transport).TLSClientConfig.Certificates {
					cert := x.certs[i]
					client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
				}
				status, proto, body, err := post(client, addr)
				switch {
				case x.refuse != "":
					if err == nil || !h2 && !strings.Contains(err.Error(), x.refuse) {
						t.Errorf("%s: got %d, %v; want a handshake that fails with %q", name, status, err, x.refuse)
					}
				case err != nil || status != x.status || x.body != "" && body != x.body:
					t.Errorf("%s: %d %s, %v", name, status, body, err)
				case h2 != (proto == "HTTP/2.0"):
					t.Errorf("%s: over %s", name, proto)
				}
			}
		}
		// The client verifies the gateway as well.
		if _, _, _, err := post(over(t, foreign, false, 0, ours.client(nil)), addr); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("a client that trusts another authority got %v", err)
		}
	})
}

func TestAnOptionalCertificate(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		ours := newAuthority(t, "ours")
		c, _ = secured(t, c, ours, gateway.ClientOptional, "CN=agent,O=Example\n")
		_, addr := serve(t, c)
		if status, _, body, err := post(over(t, ours, false, 0), addr); err != nil || status != 401 || body != `{"error":"a client certificate is needed"}` {
			t.Errorf("without one: %d %s, %v", status, body, err)
		}
		if status, _, _, err := post(over(t, ours, false, 0, ours.client(nil)), addr); err != nil || status != 200 {
			t.Errorf("with one: %d, %v", status, err)
		}
	})
}

func TestAProxyPassesTheClientOn(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		ours, foreign := newAuthority(t, "ours"), newAuthority(t, "foreign")
		c, _ = secured(t, c, ours, gateway.ClientOptional, "CN=agent,O=Example\n")
		header := func(c tls.Certificate) string { return ":" + base64.StdEncoding.EncodeToString(c.Certificate[0]) + ":" }
		listed := header(ours.client(nil))
		_, open := serve(t, c)
		if status, _, _, err := post(over(t, ours, false, 0), open, "Client-Cert", listed); err != nil || status != 401 {
			t.Errorf("a header that anybody may send was believed: %d, %v", status, err)
		}
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		_, addr := serve(t, c)
		other := header(ours.client(func(c *x509.Certificate) { c.Subject.CommonName = "other" }))
		client := over(t, ours, false, 0)
		for value, want := range map[string]string{
			listed:                      "200 ",
			other:                       `403 {"error":"the client CN=other,O=Example is not on the list"}`,
			header(foreign.client(nil)): `403 {"error":"Client-Cert: x509: certificate signed by unknown authority`,
			"abc":                       `403 {"error":"Client-Cert: no byte sequence; expected base64 between colons"}`,
			":abc:":                     `403 {"error":"Client-Cert: its base64: illegal base64 data at input byte 0"}`,
			":AAAA:":                    `403 {"error":"Client-Cert: x509: malformed certificate"}`,
		} {
			for range 2 {
				status, _, body, err := post(client, addr, "Client-Cert", value)
				if got := http.StatusText(status); err != nil || got == "" || !strings.HasPrefix(itoa(status)+" "+body, want) {
					t.Errorf("%.20s: %d %s, %v", value, status, body, err)
				}
			}
		}
	})
}

func itoa(n int) string { return big.NewInt(int64(n)).String() }

// Certificates and the list change under load: no request fails, and the new list holds on connections that are open.
func TestReloadUnderLoad(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		ours := newAuthority(t, "ours")
		c, dir := secured(t, c, ours, gateway.ClientRequired, "CN=agent,O=Example\nCN=leaving,O=Example\n")
		g, addr := serve(t, c)
		leaving := over(t, ours, false, 0, ours.client(func(c *x509.Certificate) { c.Subject.CommonName = "leaving" }))
		if status, _, _, err := post(leaving, addr); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for i := range 4 {
			client := over(t, ours, i%2 == 0, 0, ours.client(nil))
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if status, _, _, err := post(client, addr); err != nil || status != 200 {
						t.Errorf("%d, %v", status, err)
						return
					}
					if i > 1 {
						client.CloseIdleConnections() // new handshakes, too
					}
				}
			})
		}
		for range 10 {
			ours.server(dir)
			if err := g.Reload(); err != nil {
				t.Error(err)
			}
		}
		os.WriteFile(filepath.Join(dir, "allow"), []byte("CN=agent,O=Example\n"), 0o600)
		if err := g.Reload(); err != nil {
			t.Error(err)
		}
		if status, _, _, err := post(leaving, addr); err != nil || status != 403 {
			t.Errorf("who left the list still may: %d, %v", status, err)
		}
		close(stop)
		wg.Wait()
		for file, want := range map[string]string{"allow": "lists nobody", "ca.crt": "no certificate in it", "server.crt": "server.crt"} {
			old, _ := os.ReadFile(filepath.Join(dir, file))
			os.WriteFile(filepath.Join(dir, file), []byte("# nothing\n"), 0o600)
			if err := g.Reload(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", file, err)
			}
			os.WriteFile(filepath.Join(dir, file), old, 0o600)
			if status, _, _, err := post(over(t, ours, false, 0, ours.client(nil)), addr); err != nil || status != 200 {
				t.Errorf("after a reload that failed: %d, %v", status, err)
			}
		}
	})
}

func TestAListNamesSubjectsAndAlternativeNames(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	a := standard()
	c, dir := secured(t, gateway.Config{Asker: a, Routes: routes(a)}, ours, gateway.ClientRequired, "x")
	for text, want := range map[string]string{
		"agent\n":          `line 1: "agent"; expected a subject such as CN=agent,O=Example, or DNS:, email:, IP: or URI: and a name`,
		"\n#x\nphone:12\n": `line 3: "phone:12"; expected a subject`,
		"":                 "it lists nobody, so that nobody could make a request",
	} {
		os.WriteFile(filepath.Join(dir, "allow"), []byte(text), 0o600)
		if _, err := gateway.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
