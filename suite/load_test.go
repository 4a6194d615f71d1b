package suite_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"toll/certs"
	"toll/driver"
	"toll/lab"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/suite"
)

// A site is an HTTPS server with a private authority, and what it saw of its clients.
type site struct {
	url                     string
	dir                     string // ca.pem, and client.crt with its key
	requests, full, resumed atomic.Int64
	named                   atomic.Int64 // requests whose client showed a certificate
}

func serveTLS(t *testing.T, clients tls.ClientAuthType) *site {
	t.Helper()
	a, err := certs.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{dir: t.TempDir()}
	pair, err := a.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := a.Client("tester")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := mine.WriteFiles(s.dir, "client"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "ca.pem"), a.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			if len(r.TLS.PeerCertificates) > 0 {
				s.named.Add(1)
			}
			io.WriteString(w, `{"ok":true,"proto":"`+r.Proto+`"}`)
		}),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{server}, ClientAuth: clients, ClientCAs: a.Pool(),
			VerifyConnection: func(c tls.ConnectionState) error {
				if c.DidResume {
					s.resumed.Add(1)
				} else {
					s.full.Add(1)
				}
				return nil
			},
		},
		ErrorLog: nil,
	}
	srv.SetKeepAlivesEnabled(true)
	done := make(chan struct{})
	go func() { srv.ServeTLS(l, "", ""); close(done) }()
	t.Cleanup(func() { srv.Close(); <-done })
	s.url = "https://" + l.Addr().String() + "/"
	return s
}

// settings are a few calls of a few VUs.
func settings(calls int) plan.Settings {
	return plan.Settings{
		Model: plan.Closed, Order: plan.Shuffled, Concurrency: []int{2}, Rounds: 1, Blocks: 1, Calls: calls, CallsOnly: true,
		Duration: plan.Duration(time.Minute), Warmup: 1, Timeout: plan.Duration(5 * time.Second),
	}
}

func runLoad(t *testing.T, cfg suite.LoadConfig, s plan.Settings) (*result.Document, error) {
	t.Helper()
	cfg.NoNull = true
	p, open, _, err := suite.Load(t.Context(), cfg, s)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	return lab.Run(t.Context(), p, open, lab.Options{Settings: p.Settings, Claimed: p.Settings, Seed: 1, Hop: open.Hop})
}

// Both sides verified, or an error and never a number.
func TestMutualTLSIsVerifiedOnBothSides(t *testing.T) {
	t.Parallel()
	s, other := serveTLS(t, tls.RequireAndVerifyClientCert), serveTLS(t, tls.NoClientCert)
	ca, cert, key := filepath.Join(s.dir, "ca.pem"), filepath.Join(s.dir, "client.crt"), filepath.Join(s.dir, "client.key")
	target := []suite.LoadTarget{{Name: "site", URL: s.url}}
	for _, client := range []string{driver.ClientRaw, driver.ClientHTTP, driver.ClientH2} {
		before := s.named.Load()
		d, err := runLoad(t, suite.LoadConfig{Targets: target, Client: client, CA: ca, Cert: cert, Key: key}, settings(200))
		if err != nil {
			t.Errorf("%s: %v", client, err)
			continue
		}
		r := d.Rows[0]
		if r.OK != 200 || r.Verified != 200 || r.TLS == nil || !r.TLS.ServerVerified || !r.TLS.ClientVerified || r.TLS.Resumption != "off" {
			t.Errorf("%s: %d ok, %d verified, failures %v, TLS %+v", client, r.OK, r.Verified, r.Failed, r.TLS)
		}
		if s.named.Load()-before < 200 {
			t.Errorf("%s: the server knew its client in %d requests", client, s.named.Load()-before)
		}
		for name, cfg := range map[string]suite.LoadConfig{
			"another authority":     {CA: filepath.Join(other.dir, "ca.pem"), Cert: cert, Key: key},
			"the system's":          {Cert: cert, Key: key},
			"no client certificate": {CA: ca},
			"another's certificate": {CA: ca, Cert: filepath.Join(other.dir, "client.crt"), Key: filepath.Join(other.dir, "client.key")},
		} {
			cfg.Targets, cfg.Client = target, client
			if d, err := runLoad(t, cfg, settings(10)); !errors.Is(err, suite.ErrTarget) || d != nil {
				t.Errorf("%s, %s: %v", client, name, err)
			}
		}
	}
}

func TestHTTP2IsSpoken(t *testing.T) {
	t.Parallel()
	s := serveTLS(t, tls.NoClientCert)
	cfg := suite.LoadConfig{Targets: []suite.LoadTarget{{Name: "site", URL: s.url}}, Client: driver.ClientH2, CA: filepath.Join(s.dir, "ca.pem")}
	if err := cfg.AssertJSON("proto=HTTP/2.0"); err != nil {
		t.Fatal(err)
	}
	if d, err := runLoad(t, cfg, settings(50)); err != nil || d.Rows[0].OK != 50 {
		t.Errorf("%v", err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"proto":%q}`, r.Proto)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	cfg.Targets[0].URL, cfg.Client, cfg.CA = "http://"+l.Addr().String()+"/", driver.ClientH2C, ""
	if d, err := runLoad(t, cfg, settings(50)); err != nil || d.Rows[0].OK != 50 {
		t.Errorf("%v", err)
	}
}

// A connection for each call shakes hands anew each time, unless resumption was asked for.
func TestResumptionIsWhatTheRowSays(t *testing.T) {
	t.Parallel()
	for _, resume := range []bool{false, true} {
		s := serveTLS(t, tls.NoClientCert)
		cfg := suite.LoadConfig{
			Targets: []suite.LoadTarget{{Name: "site", URL: s.url}}, Client: driver.ClientRaw, CA: filepath.Join(s.dir, "ca.pem"), Fresh: true, Resume: resume,
		}
		d, err := runLoad(t, cfg, settings(30))
		if err != nil {
			t.Fatal(err)
		}
		r := d.Rows[0]
		if r.OK != 30 || r.Parts["tls"].Count != 30 || r.Parts["connect"].Count != 30 || r.Parts["first_byte"].Count != 30 {
			t.Errorf("%d ok, parts %v", r.OK, r.Parts)
		}
		if (s.resumed.Load() > 0) != resume || (r.TLS.Resumption == "on") != resume {
			t.Errorf("resume %v: %d full handshakes, %d resumed; the row says %s", resume, s.full.Load(), s.resumed.Load(), r.TLS.Resumption)
		}
	}
}

// A proxy that the environment names is not used, and a redirect is not followed.
func TestProxiesAndRedirectsAreOff(t *testing.T) {
	for _, name := range []string{"http_proxy", "HTTP_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var elsewhere atomic.Int64
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			elsewhere.Add(1)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	for _, client := range []string{"", driver.ClientRaw, driver.ClientHTTP} {
		cfg := suite.LoadConfig{Targets: []suite.LoadTarget{{Name: "site", URL: "http://" + l.Addr().String() + "/"}}, Client: client}
		if _, err := runLoad(t, cfg, settings(5)); !errors.Is(err, suite.ErrTarget) {
			t.Errorf("%q: a redirect is no success: %v", client, err)
		}
		cfg.Expect.Status = []int{302}
		if d, err := runLoad(t, cfg, settings(5)); err != nil || d.Rows[0].OK != 5 {
			t.Errorf("%q: %v", client, err)
		}
	}
	if elsewhere.Load() != 0 {
		t.Errorf("%d redirects were followed", elsewhere.Load())
	}
}

func TestLoadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func(text string) ([]string, suite.LoadConfig, plan.Settings, error) {
		file := filepath.Join(dir, "l.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var cfg suite.LoadConfig
		s := settings(1)
		s.CallsOnly = false
		th, err := suite.LoadFile(file, &cfg, &s)
		if err != nil {
			err = errors.New(err.Error()[len(dir)+1:])
		}
		return th, cfg, s, err
	}
	th, cfg, s, err := read(`schema: toll.plan/v1
benchmark: load
targets:
  - {name: a, url: "http://127.0.0.1:1/x"}
  - {name: b, command: "./b {port}", path: /x}
steps:
  - {name: open, path: /open, body: '{}', keep: {sid: result.session}}
  - {name: call, path: '/s/${sid}', assert: ['ok=true'], think: 5ms}
stages: [{duration: 1s, target: 20}]
thresholds: {http_req_failed: ['rate<0.05']}
`)
	if err != nil || len(th) != 1 || len(cfg.Targets) != 2 || len(cfg.Steps) != 2 || cfg.Steps[0].Method != "POST" || s.Concurrency[0] != 20 || s.Blocks != 6 {
		t.Errorf("%v, %+v, %+v, %v", th, cfg, s, err)
	}
	const top = "schema: toll.plan/v1\nbenchmark: load\n"
	for text, want := range map[string]string{
		"schema: x\n":                          `l.yaml:1:9: schema is "x"; expected toll.plan/v1`,
		"schema: toll.plan/v1\nbenchmark: y\n": `l.yaml:2:12: benchmark is "y"; expected load`,
		top:                                    "l.yaml:1:1: targets is missing; expected at least one with a url or a command",
		top + "targets: [{name: a}]\n":         `l.yaml:3:11: target "a": expected a url or a command`,
		top + "targets: [{name: a, url: x}]\nsteps: [{name: s, path: '/${q}'}]\n":     "l.yaml:4:8: step s uses ${q}, which no earlier step keeps",
		top + "targets: [{name: a, url: x}]\nsteps: [{name: s, asserts: [a]}]\n":      `l.yaml:4:19: unknown field "asserts"`,
		top + "targets: [{name: a, url: x}]\nsteps: [{name: s, assert: ['a..b']}]\n":  `l.yaml:4:9: step s: assert: "a..b": an empty name at ".b"`,
		top + "targets: [{name: a, url: x}]\nrate: 5\nduration: 1s\nmodel: closed\n":  "l.yaml:4:7: rate is given, but the model is closed; expected model: open",
		top + "targets: [{name: a, url: x}]\nthresholds: ['p99']\n":                   `l.yaml:4:14: threshold "p99": expected METRIC OP NUMBER, such as "p99<50ms", "rest-raw ratio <= 0.75" or "http_req_failed rate<0.05"`,
		top + "targets: [{name: a, url: x}]\nsteps: [{name: s, keep: {v: 'a[b]'}}]\n": `l.yaml:4:9: step s: keep v: "a[b]": "[b]" is not an element's number in brackets`,
	} {
		if _, _, _, err := read(text); err == nil || err.Error() != want {
			t.Errorf("%q:\n got  %v\n want %s", text, err, want)
		}
	}
}

// A target that fails now and then is measured, also when it is the first call before the run that fails; one that always does
// is not.
func TestAFlakyTargetIsMeasuredAndABrokenOneIsNot(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := calls.Add(1); n%10 < 3 || r.URL.Path == "/broken" {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		io.WriteString(w, `{"ok":true}`)
	}))
	defer srv.Close()
	d, err := runLoad(t, suite.LoadConfig{Targets: []suite.LoadTarget{{Name: "site", URL: srv.URL + "/"}}}, settings(1000))
	if err != nil {
		t.Fatal(err)
	}
	if r := d.Rows[0]; r.OK < 690 || r.OK > 710 || r.Failed["status"] != 1000-r.OK || r.Failing == nil {
		t.Errorf("%d ok, failed %v", r.OK, r.Failed)
	}
	calls.Store(0)
	_, err = runLoad(t, suite.LoadConfig{Targets: []suite.LoadTarget{{Name: "site", URL: srv.URL + "/broken"}}}, settings(10))
	if !errors.Is(err, suite.ErrTarget) || calls.Load() != 20 {
		t.Errorf("after %d calls: %v", calls.Load(), err)
	}
}

// Two targets whose bodies differ can be compared; that their content is not looked at is said.
func TestTargetsWithBodiesOfTheirOwnAreCompared(t *testing.T) {
	t.Parallel()
	var urls []string
	for _, body := range []string{"one", "another"} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		defer srv.Close()
		urls = append(urls, srv.URL+"/")
	}
	s := settings(20)
	s.Blocks = 6
	d, err := runLoad(t, suite.LoadConfig{Targets: []suite.LoadTarget{{Name: "a", URL: urls[0]}, {Name: "b", URL: urls[1]}}}, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Rows {
		if r.OK != r.Ops || r.Verified != 0 {
			t.Errorf("%s: %d of %d ok, %d verified", r.Contender.Name, r.OK, r.Ops, r.Verified)
		}
	}
}
