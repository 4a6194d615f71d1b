package receipt

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// shortDir is a folder whose path leaves room for a socket's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func startSidecar(t testing.TB, cfg SidecarConfig, socket string) *SidecarSigner {
	t.Helper()
	s, err := NewSidecar(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { s.Close(); wg.Wait() })
	return s
}

// Receipts signed by a sidecar, over its socket, are the same bytes after both sides were restarted.
func TestASidecarSignsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	key := testKey(t, "key")
	side := SidecarConfig{Name: testName, Key: key, Dir: filepath.Join(dir, "g")}
	socket := filepath.Join(dir, "s", "sidecar.sock")
	s := startSidecar(t, side, socket)
	client := DialSidecar(socket)
	t.Cleanup(func() { client.Close() })
	cfg := Config{Name: testName, Key: PublicKey(key.Public), Mode: Sidecar, Notary: client, Dir: filepath.Join(dir, "l"), Durability: Fsync}
	gw := open(t, cfg)
	v := &Verifier{Pins: pinned(key)}
	var held []Receipt
	for i := range 20 {
		r, err := gw.Sign(t.Context(), testArrival(i))
		if err != nil {
			t.Fatal(err)
		}
		wantVerdict(t, v, r, Valid)
		held = append(held, r)
	}
	// The sidecar goes away: arrivals are accepted all the same, and signed when it is back.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ticket, err := gw.Accept(t.Context(), testArrival(20))
	if err != nil {
		t.Fatal(err)
	}
	if ticket.Ready() {
		t.Error("signed without the sidecar")
	}
	startSidecar(t, side, socket)
	r, err := ticket.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held = append(held, r)
	if err := gw.Close(); err != nil {
		t.Fatal(err)
	}
	gw = open(t, cfg)
	for i, want := range held {
		if got, err := gw.Sign(t.Context(), testArrival(i)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("receipt %d: %s, %v", i, got, err)
		}
	}
}

func TestASidecarSignsNoSecondRoot(t *testing.T) {
	t.Parallel()
	key := testKey(t, "key")
	disk := newSimDisk(rand.New(rand.NewPCG(1, 1)))
	cfg := SidecarConfig{Name: testName, Key: key, Dir: "/guard", files: disk}
	s, err := NewSidecar(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var empty frontier
	frozen := func(before *frontier, from, n int, name string) (*Frozen, frontier) {
		g := &group{form: formBatch, before: *before}
		for i := range n {
			a := testArrival(from + i)
			a.Namespace = name
			e, err := appendEnvelope(nil, &a, testName, key.KID, []byte("2026-12-01T00:00:00.000Z"), int64(before.size)+int64(i), 1)
			if err != nil {
				t.Fatal(err)
			}
			g.envelopes = append(g.envelopes, e)
		}
		after := g.build()
		return &Frozen{before.size, g.root, before.append(nil), g.envelopes}, after
	}
	first, after := frozen(&empty, 0, 3, "a")
	second, _ := frozen(&after, 3, 2, "a")
	fork, afterFork := frozen(&empty, 0, 3, "b")
	forkTwo, _ := frozen(&afterFork, 3, 2, "b")
	gap, _ := frozen(&after, 3, 4, "a")
	ask := func(f *Frozen, want string) []byte {
		t.Helper()
		sig, err := s.Notarize(t.Context(), f)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Fatalf("got %v, want %q", err, want)
		}
		return sig
	}
	ask(second, "the entries start at 3, what was signed ends at 0")
	sig := ask(first, "")
	ask(fork, "conflict: size 3 was signed with the root")
	ask(forkTwo, "conflict: at size 3 the root")
	sigTwo := ask(second, "")
	ask(gap, "the entries start at 3, what was signed ends at 5")
	if !bytes.Equal(ask(first, ""), sig) {
		t.Error("asked again, it signed something else")
	}
	wrongRoot := *first
	wrongRoot.Root[0] ^= 1
	ask(&wrongRoot, "do not give the root")
	noPeaks := *second
	noPeaks.Peaks = nil
	ask(&noPeaks, "the peaks of 3 leaves are not all there")
	other := *first
	other.Envelopes = [][]byte{bytes.Replace(first.Envelopes[0], []byte(testName), []byte("another"), 1)}
	leaf, _ := leafHash(nil, other.Envelopes[0])
	var f frontier
	f.add(leaf)
	other.Root = f.root()
	ask(&other, "seq 0: not an arrival of gateway")
	// It remembers after its own restart, and after a power cut.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.files = disk.cut()
	if s, err = NewSidecar(cfg); err != nil {
		t.Fatal(err)
	}
	ask(fork, "conflict: size 3 was signed with the root")
	if !bytes.Equal(ask(second, ""), sigTwo) {
		t.Error("after a restart, it signed something else")
	}
}

// Without its sync, a sidecar forgets at a power cut what it signed.
func TestTheSidecarsSyncIsNeeded(t *testing.T) {
	t.Parallel()
	for _, skip := range []string{"", syncData, syncName, syncFolder} {
		forgot := false
		for seed := range uint64(20) {
			disk := newSimDisk(rand.New(rand.NewPCG(seed, 1)))
			disk.skip = skip
			g, err := openGuard(disk, "/guard")
			if err != nil {
				t.Fatal(err)
			}
			for size := range uint64(5) {
				if err := g.add(size+1, Hash{byte(size)}); err != nil {
					t.Fatal(err)
				}
			}
			after, err := openGuard(disk.cut(), "/guard")
			if err != nil {
				if skip == "" {
					t.Fatal(err)
				}
				forgot = true
				continue
			}
			forgot = forgot || after.size != 5 || after.root != (Hash{4})
		}
		if forgot != (skip != "") {
			t.Errorf("without sync %q: forgot is %v", skip, forgot)
		}
	}
}

func TestASidecarRefusesWhatIsNoGroup(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	socket := filepath.Join(dir, "s.sock")
	startSidecar(t, SidecarConfig{Name: testName, Key: testKey(t, "key")}, socket)
	c, err := Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, x := range []struct {
		exchange
		want string
	}{
		{exchange{op: opSign, body: []byte("{}")}, "a sidecar only notarizes"},
		{exchange{op: opNotarize, body: []byte("x")}, "malformed: the group is cut short"},
	} {
		if err := c.conn.Call(t.Context(), &x.exchange); err != nil || x.status != 400 || string(x.reply) != x.want {
			t.Errorf("%d %s, %v; want %s", x.status, x.reply, err, x.want)
		}
	}
}

func TestSocketsAreForThisUserOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of unix")
	}
	dir := shortDir(t)
	path := filepath.Join(dir, "a", "x.sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.HasSuffix(err.Error(), ": in use") {
		t.Errorf("a live socket was taken over: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "y"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(filepath.Join(dir, "a", "y")); err == nil || !strings.HasSuffix(err.Error(), "another kind of file") {
		t.Errorf("a file was taken over: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(filepath.Join(dir, "a", "z")); err == nil || !strings.Contains(err.Error(), "others can write to its folder") {
		t.Errorf("an open folder was used: %v", err)
	}
}

// A notary that signs with another key, or fails, never makes a receipt.
func TestANotaryIsNotBelieved(t *testing.T) {
	t.Parallel()
	key := testKey(t, "key")
	wrong := testKey(t, "wrong")
	events := make(chan Event, 100)
	gw := open(t, Config{Key: PublicKey(key.Public), Mode: Sidecar, Notary: local{&wrong, testName}, Events: func(e Event) {
		select {
		case events <- e:
		default:
		}
	}, Timeout: 1})
	ticket, err := gw.Accept(t.Context(), testArrival(1))
	if err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != "notary" || !strings.Contains(e.Detail, "not that of the checkpoint") && !strings.Contains(e.Detail, "deadline") {
		t.Errorf("event %v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ticket.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
