package system_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/system"
)

// connect dials an address as Start gives it.
func connect(t *testing.T, addr, scheme string) net.Conn {
	t.Helper()
	network, where := "tcp", strings.TrimPrefix(addr, scheme+"://")
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, where = "unix", path
	} else if where == addr {
		t.Fatalf("address %q, want scheme %s", addr, scheme)
	}
	nc, err := net.Dial(network, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

func TestEverySystemAnswersWhenItHasStarted(t *testing.T) {
	const request = "POST /v1/note HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{\"id\":314}"
	want := map[string]struct{ scheme, reply string }{
		"ops":     {"http", `{"id":314,"note":"","status":"done","owner":"toll"}`},
		"echo":    {"tcp", `{"id":314}`},
		"null":    {"http", "canned"},
		"spawn":   {"http", `{"error":"no route \"/v1/note\"","id":0,"status":"error"}`},
		"agents":  {"http", "404 page not found\n"},
		"gateway": {"http", `{"error":"nothing at this path"}`},
		"api":     {"http", "nothing at this path; want /api\n"},

		"catalogue": {"http", "404 page not found\n"},
	}
	topology := oneAgent(t)
	if len(want) != len(system.Names()) {
		t.Errorf("systems %v, want %d", system.Names(), len(want))
	}
	for _, name := range system.Names() {
		for _, unix := range []string{"", filepath.Join(t.TempDir(), "s")} {
			r, err := system.Start(t.Context(), name, system.Config{
				Unix: unix, Reply: []byte("canned"), Agents: system.Agents{Topology: topology},
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			nc := connect(t, r.Addr, want[name].scheme)
			io.WriteString(nc, request)
			nc.(interface{ CloseWrite() error }).CloseWrite()
			got, err := io.ReadAll(nc)
			if err != nil || !strings.HasSuffix(string(got), want[name].reply) {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, want[name].reply)
			}
			if err := r.Shutdown(t.Context()); err != nil {
				t.Errorf("%s: shutdown: %v", name, err)
			}
			if err := r.Wait(); err != nil {
				t.Errorf("%s: wait: %v", name, err)
			}
			if _, err := os.Lstat(unix); unix != "" && !os.IsNotExist(err) {
				t.Errorf("%s leaves its socket: %v", name, err)
			}
		}
	}
}

func TestStartRefuses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		name string
		cfg  system.Config
		want string
	}{
		{t.Context(), "rest", system.Config{}, `system "rest": want one of ` + strings.Join(system.Names(), ", ")},
		{t.Context(), "ops", system.Config{Envelope: "soap"}, `envelope "soap": want one of ` + strings.Join(system.Envelopes(), ", ")},
		{t.Context(), "echo", system.Config{Envelope: "rest"}, `echo has no envelope "rest"`},
		{t.Context(), "ops", system.Config{Addr: "x"}, "ops: listen: address x: missing port in address"},
		{t.Context(), "ops", system.Config{Isolation: "warm"}, `ops has no isolation "warm"`},
		{t.Context(), "spawn", system.Config{Isolation: "vm"}, `isolation "vm": want one of goroutine, inline, warm, cold`},
		{t.Context(), "agents", system.Config{Addr: "0.0.0.0:0"}, "address 0.0.0.0:0: whoever reaches it can look into the agents and end them; want one on loopback"},
		{t.Context(), "agents", system.Config{}, "topology: open : no such file or directory"},
		{ended, "ops", system.Config{}, "context canceled"},
	} {
		_, err := system.Start(tt.ctx, tt.name, tt.cfg)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s %+v: got %v, want %s", tt.name, tt.cfg, err, tt.want)
		}
	}
}

// oneAgent is a topology file.
func oneAgent(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(file, []byte("schema: toll.topology/v1\nroot: {supervisor: r, children: [{agent: a, class: echo}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCloseStopsAtOnce(t *testing.T) {
	for _, name := range system.Names() {
		r, err := system.Start(t.Context(), name, system.Config{
			Envelope: map[string]string{"ops": "rest"}[name], Agents: system.Agents{Topology: oneAgent(t)},
		})
		if err != nil {
			t.Fatal(err)
		}
		nc := connect(t, r.Addr, strings.Split(r.Addr, ":")[0])
		for range 2 {
			if err := r.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n, err := nc.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: %d bytes after closing", name, n)
		}
	}
}

func TestStatsTellTheContract(t *testing.T) {
	before := system.Stats()
	kept := make([][]byte, 1000)
	for i := range kept {
		kept[i] = make([]byte, 1000)
	}
	after := system.Stats()
	if after.Allocs-before.Allocs < 1000 || after.AllocBytes-before.AllocBytes < 1e6 || after.Heap == 0 || after.GOMAXPROCS < 1 {
		t.Errorf("before %+v, after a thousand allocations %+v", before, after)
	}
	b, err := json.Marshal(system.Usage{Allocs: 1, AllocBytes: 2, Heap: 3, Stack: 6, GC: 4, GOMAXPROCS: 5})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"allocs":1,"alloc_bytes":2,"heap":3,"stack":6,"gc":4,"gomaxprocs":5}`, string(b)); diff != "" {
		t.Error(diff)
	}
	_ = kept
}

func TestLargestNoteFits(t *testing.T) {
	r, err := system.Start(t.Context(), "ops", system.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	body := `{"id":1,"note":"` + strings.Repeat("n", 64<<10) + `"}`
	resp, err := http.Post(r.Addr+"/v1/note", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || len(got) < 64<<10 {
		t.Errorf("status %d, %d bytes, %v", resp.StatusCode, len(got), err)
	}
}

// A server that wants the hybrid key exchange has no other.
func TestPostQuantumIsAllOrNothing(t *testing.T) {
	a, err := x509Pair(t)
	if err != nil {
		t.Fatal(err)
	}
	r, err := system.Start(t.Context(), "ops", system.Config{Envelope: "zap-rpc", TLS: a, PostQuantum: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	addr, ok := strings.CutPrefix(r.Addr, "tls://")
	if !ok {
		t.Fatalf("address %s", r.Addr)
	}
	for curve, want := range map[tls.CurveID]bool{tls.X25519MLKEM768: true, tls.X25519: false} {
		nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{curve}})
		if (err == nil) != want {
			t.Errorf("%v: %v", curve, err)
		}
		if err == nil {
			nc.Close()
		}
	}
}

// x509Pair makes a server's configuration with a certificate that signs itself.
func x509Pair(t *testing.T) (*tls.Config, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, err
}
