package receipt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// serve starts a server of a gateway on loopback and returns its address.
func serve(t testing.TB, gw *Gateway, tiles string) string {
	t.Helper()
	s := NewServer(gw, tiles)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.ServeHTTP(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// ask makes one request.
func ask(t testing.TB, method, url, kind, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

const jsonType = "application/json"

func TestHTTP(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		at := serve(t, open(t, cfg), "")
		v := &Verifier{Pins: pinned(cfg.Key)}
		resp, receipt := ask(t, "POST", at+"/v1/receipts", jsonType, arrivalJSON(testArrival(1)))
		if resp.StatusCode != 201 {
			t.Fatalf("%d %s", resp.StatusCode, receipt)
		}
		wantVerdict(t, v, []byte(receipt), Valid)
		resp, again := ask(t, "POST", at+"/v1/receipts", jsonType+"; charset=utf-8", arrivalJSON(testArrival(1)))
		if resp.StatusCode != 201 || again != receipt {
			t.Errorf("once more: %d %s", resp.StatusCode, again)
		}
		resp, body := ask(t, "POST", at+"/v1/receipts", jsonType, arrivalJSON(testArrival(2)), "Prefer", "respond-async")
		where := resp.Header.Get("Location")
		if resp.StatusCode != 202 || resp.Header.Get("Retry-After") == "" || where != "/v1/receipts/request-00000002?tenant=acme" {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
		for resp.StatusCode == 202 {
			resp, body = ask(t, "GET", at+where, "", "")
		}
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		wantVerdict(t, v, []byte(body), Valid)
		resp, _ = ask(t, "GET", at+"/v1/receipts/request-00000002?tenant=another", "", "")
		if resp.StatusCode != 404 {
			t.Errorf("another tenant's: %d", resp.StatusCode)
		}
		resp, keys := ask(t, "GET", at+"/v1/keys", "", "")
		if pins, err := ParsePins([]byte(keys)); err != nil || pins.Keys[0].KID != cfg.Key.KID || resp.Header.Get("Content-Type") != "application/jwk-set+json" {
			t.Errorf("%v: %s", err, keys)
		}
		if resp, body := ask(t, "GET", at+"/healthz", "", ""); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		if _, body := ask(t, "GET", at+"/metrics", "", ""); !strings.Contains(body, "\nreceipt_frozen_total 2\n") {
			t.Error(body)
		}
		resp, body = ask(t, "GET", at+"/checkpoint", "", "")
		if flat := cfg.Mode == Sync && cfg.Dir == ""; flat != (resp.StatusCode == 404) || !flat && !strings.HasPrefix(body, testName+"\n2\n") {
			t.Errorf("checkpoint: %d %s", resp.StatusCode, body)
		}
	})
}

// Every line of the table is answered with its status, code, byte and member, and leaves nothing behind.
func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	gw := open(t, Config{Mode: Batched})
	at := serve(t, gw, "")
	for _, c := range badArrivals() {
		resp, body := ask(t, "POST", at+"/v1/receipts", jsonType, c.in)
		var e struct {
			Error struct {
				Code, Pointer, Text string
				Offset              *int
			}
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, body)
		}
		r := &Refusal{Code: e.Error.Code, Pointer: e.Error.Pointer, Offset: -1, Text: e.Error.Text}
		if e.Error.Offset != nil {
			r.Offset = *e.Error.Offset
		}
		if resp.StatusCode != c.status || r.Error() != c.want {
			t.Errorf("%s: %d %s\nwant %d %s", c.name, resp.StatusCode, body, c.status, c.want)
		}
	}
	good := arrivalJSON(testArrival(1))
	for _, c := range []struct {
		method, path, kind, body string
		status                   int
		want                     string
	}{
		{"POST", "/v1/receipts", "text/plain", good, 415, `{"error":{"code":"unsupported_media","text":"Content-Type is \"text/plain\"; want application/json"}}`},
		{"POST", "/v1/receipts", "", good, 415, `{"error":{"code":"unsupported_media","text":"Content-Type is \"\"; want application/json"}}`},
		{"GET", "/v1/receipts", "", "", 404, `{"error":{"code":"not_found","text":"/v1/receipts has no GET here; want POST"}}`},
		{"POST", "/v1/receipts:batch", jsonType, good, 415, `{"error":{"code":"unsupported_media","text":"Content-Type is \"application/json\"; want application/x-ndjson"}}`},
		{"POST", "/v1/receipts:batch", "application/x-ndjson", strings.Repeat("{}\n", 1025), 413, `{"error":{"code":"too_large","text":"1025 lines; at most 1024"}}`},
		{"GET", "/v1/receipts/none?tenant=acme", "", "", 404, `{"error":{"code":"not_found","text":"no receipt of this tenant for request id \"none\""}}`},
		{"GET", "/v1/receipts/none", "", "", 404, `{"error":{"code":"not_found","text":"no receipt of this tenant for request id \"none\""}}`},
		{"GET", "/tile/0/../../x", "", "", 404, `{"error":{"code":"not_found","text":"no such tile"}}`},
		{"GET", "/other", "", "", 404, `{"error":{"code":"not_found","text":"no such path"}}`},
	} {
		if resp, body := ask(t, c.method, at+c.path, c.kind, c.body); resp.StatusCode != c.status || body != c.want {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.method, c.path, resp.StatusCode, body, c.status, c.want)
		}
	}
	if c := gw.Counts(); c.Frozen != 0 {
		t.Errorf("%d envelopes were frozen", c.Frozen)
	}
	if resp, _ := ask(t, "POST", at+"/v1/receipts", jsonType, good); resp.StatusCode != 201 {
		t.Error(resp.StatusCode)
	}
	other := testArrival(1)
	other.RequestHash = testArrival(2).RequestHash
	if resp, body := ask(t, "POST", at+"/v1/receipts", jsonType, arrivalJSON(other)); resp.StatusCode != 409 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// One bad line of a bulk request gets its error; the others are signed, and the order is kept.
func TestBulk(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		at := serve(t, open(t, cfg), "")
		lines := []string{arrivalJSON(testArrival(1)), `{"a":1,"a":2}`, arrivalJSON(testArrival(2)), ``, arrivalJSON(testArrival(1))}
		conflict := testArrival(1)
		conflict.RequestHash = testArrival(2).RequestHash
		lines = append(lines, arrivalJSON(conflict))
		resp, body := ask(t, "POST", at+"/v1/receipts:batch", "application/x-ndjson", strings.Join(lines, "\n")+"\n")
		got := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		if resp.StatusCode != 200 || len(got) != len(lines) {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		v := &Verifier{Pins: pinned(cfg.Key)}
		for i, want := range map[int]string{0: "", 1: "duplicate-name", 2: "", 3: "empty", 4: "", 5: `"code":"conflict"`} {
			if want != "" {
				if !strings.Contains(got[i], want) {
					t.Errorf("line %d: %s, want %s", i, got[i], want)
				}
				continue
			}
			if verdict := wantVerdict(t, v, []byte(got[i]), Valid); !strings.Contains(lines[i], verdict.Envelope.RequestID) {
				t.Errorf("line %d is of %s", i, verdict.Envelope.RequestID)
			}
		}
		if got[0] != got[4] {
			t.Error("the same request twice in one call got two receipts")
		}
	})
}

func TestFrames(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		path := filepath.Join(shortDir(t), "g.sock")
		l, err := ListenUnix(path)
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(open(t, cfg), "")
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.ServeFrames(l); err != nil {
				t.Error(err)
			}
		})
		c, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		v := &Verifier{Pins: pinned(cfg.Key)}
		receipts := make([]Receipt, 40)
		var calls sync.WaitGroup
		for i := range receipts {
			calls.Go(func() {
				a := testArrival(i)
				if err := c.Accept(t.Context(), &a); err != nil {
					t.Error(err)
				}
				r, err := c.Sign(t.Context(), &a)
				if err != nil {
					t.Error(err)
				}
				receipts[i] = r
			})
		}
		calls.Wait()
		for _, r := range receipts {
			wantVerdict(t, v, r, Valid)
		}
		bad := testArrival(1)
		bad.RequestHash = "x"
		if _, err := c.Sign(t.Context(), &bad); err == nil || err.Error() != "invalid: /request_hash: want 64 lower-case hex digits" {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// Published tiles are those that x/mod's reader takes: every entry's hash can be fetched and proved against the checkpoint.
func TestTilesProveTheCheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := Config{Name: testName, Key: testKey(t, "key"), Mode: Batched, Dir: filepath.Join(dir, "log")}
	gw := open(t, cfg)
	const entries = 700
	all := make([]Arrival, entries)
	for i := range all {
		all[i] = testArrival(i)
	}
	for _, o := range gw.SignBatch(t.Context(), all) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	note, err := gw.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "tiles")
	for range 2 { // publishing again changes nothing
		if err := PublishTiles(cfg.Dir, out, note); err != nil {
			t.Fatal(err)
		}
	}
	at := serve(t, gw, out)
	_, served := ask(t, "GET", at+"/checkpoint", "", "")
	if served != string(note) {
		t.Errorf("checkpoint %q", served)
	}
	view, err := ReadLog(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tree := tlog.Tree{N: entries, Hash: view.Root}
	reader := tlog.TileHashReader(tree, tileClient{t, at})
	for _, i := range []int64{0, 255, 256, 511, 512, 699} {
		h, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, i)})
		if err != nil {
			t.Fatal(err)
		}
		if leaf, _ := view.Log().Leaf(uint64(i)); h[0] != leaf {
			t.Errorf("leaf %d: %v, want %v", i, h[0], leaf)
		}
	}
	_, bundle := ask(t, "GET", at+"/tile/entries/000", "", "")
	if n := int(bundle[0])<<8 | int(bundle[1]); !bytes.HasPrefix([]byte(bundle[2:]), []byte(`{"alg":"Ed25519"`)) || bundle[2+n-1] != '}' {
		t.Errorf("entries: %.80q", bundle)
	}
}

// A tileClient fetches tiles as C2SP names them.
type tileClient struct {
	t  testing.TB
	at string
}

func (c tileClient) Height() int { return 8 }

func (c tileClient) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, tile := range tiles {
		resp, body := ask(c.t, "GET", c.at+"/"+tilePath(fmt.Sprint(tile.L), uint64(tile.N), tile.W), "", "")
		if resp.StatusCode != 200 {
			return nil, fmt.Errorf("tile %v: %d %s", tile, resp.StatusCode, body)
		}
		out = append(out, []byte(body))
	}
	return out, nil
}

func (c tileClient) SaveTiles([]tlog.Tile, [][]byte) {}

func TestTilePaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level string
		n     uint64
		width int
		want  string
	}{
		{"0", 0, 256, "tile/0/000"}, {"1", 67, 3, "tile/1/067.p/3"}, {"entries", 1234067, 256, "tile/entries/x001/x234/067"},
		{"0", 1000, 255, "tile/0/x001/000.p/255"},
	} {
		if got := tilePath(c.level, c.n, c.width); got != c.want || !isTilePath("/"+got) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	for _, bad := range []string{"/tile/", "/tile/0/..", "/tile/0/000/../x", "/tile/x/000", "/tile/0/0000", "/tile/0/000.p/", "/tile/0/001/000", "/tile/0/000.p/1/..", "/checkpoint"} {
		if isTilePath(bad) {
			t.Errorf("%s is taken for a tile", bad)
		}
	}
}

func FuzzFrames(f *testing.F) {
	gw := open(f, Config{})
	s := NewServer(gw, "")
	f.Add(appendRequest(nil, 1, opSign, []byte(arrivalJSON(testArrival(1)))))
	f.Add(appendRequest(nil, 1, 9, nil))
	f.Fuzz(func(t *testing.T, frame []byte) {
		l := framing{maxFrame}
		if len(frame) < 4 {
			return
		}
		if n, err := l.Length(frame); err != nil || n > len(frame) {
			return
		} else if reply, err := s.handle(nil, frame[:n]); err != nil {
			t.Fatal(err)
		} else if m, err := l.Length(reply); err != nil || m != len(reply) {
			t.Fatalf("a reply that is no frame: %q", reply)
		} else if _, err := l.ID(reply); err != nil {
			t.Fatal(err)
		}
	})
}
