package receipt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// filled returns a closed log of n receipts, in one segment.
func filled(t *testing.T, n int) (cfg Config, segment string, receipts []Receipt) {
	t.Helper()
	cfg = Config{Name: testName, Key: testKey(t, "key"), Mode: Batched, Dir: filepath.Join(t.TempDir(), "log"), Durability: Fsync}
	gw := open(t, cfg)
	for i := range n {
		r, err := gw.Sign(t.Context(), testArrival(i))
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, r)
	}
	if err := gw.Close(); err != nil {
		t.Fatal(err)
	}
	return cfg, filepath.Join(cfg.Dir, segmentName(0)), receipts
}

// A torn end is cut off and reported; everything before it is there.
func TestATornTailIsCutOff(t *testing.T) {
	t.Parallel()
	cfg, segment, receipts := filled(t, 3)
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range [][]byte{{'x'}, make([]byte, 100), text[segmentHead : segmentHead+50]} {
		if err := os.WriteFile(segment, append(bytes.Clone(text), tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		var events []Event
		cfg.Events = func(e Event) { events = append(events, e) }
		gw := open(t, cfg)
		for i, want := range receipts {
			if got, err := gw.Sign(t.Context(), testArrival(i)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("receipt %d: %s, %v", i, got, err)
			}
		}
		if err := gw.Close(); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%d bytes at %s:%d were not whole and are cut off", len(tail), segmentName(0), len(text))
		if len(events) != 1 || events[0] != (Event{"torn-tail", want}) {
			t.Errorf("events %v, want %s", events, want)
		}
	}
}

// Damage anywhere else stops the start, with the offset, and changes nothing.
func TestADamagedSegmentIsNotOpened(t *testing.T) {
	t.Parallel()
	cfg, segment, _ := filled(t, 4)
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	last := 0 // of the last record but one
	for at := segmentHead; at < len(text); {
		r, err := readRecord(text[at:])
		if err != nil {
			t.Fatal(err)
		}
		if at+r.size < len(text) {
			last = at
		}
		at += r.size
	}
	for range 60 {
		i := rnd.IntN(last)
		bad := bytes.Clone(text)
		bad[i] ^= byte(1 + rnd.IntN(255))
		if err := os.WriteFile(segment, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(cfg)
		var d *Damage
		if !errors.As(err, &d) || d.File != segmentName(0) || d.Offset > int64(i) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := ReadLog(cfg.Dir); !errors.As(err, &d) {
			t.Fatalf("byte %d changed: fsck says %v", i, err)
		}
		if now, err := os.ReadFile(segment); err != nil || !bytes.Equal(now, bad) {
			t.Fatalf("the damaged segment was changed; %v", err)
		}
	}
	want := "log damaged: " + segmentName(0) + " at byte 16: the record's checksum does not match; restore the file from a copy, nothing was changed"
	bad := bytes.Clone(text)
	bad[40] ^= 1
	if err := os.WriteFile(segment, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg); err == nil || err.Error() != "receipt gateway: "+want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// A segment may hold nothing but signatures, and be full of them: what follows still finds its place.
func TestASegmentFullOfSignaturesIsGoneOnWith(t *testing.T) {
	t.Parallel()
	cfg := Config{Name: testName, Key: testKey(t, "key"), Mode: Sync, Dir: filepath.Join(t.TempDir(), "log"), Durability: Fsync, Segment: 100}
	var held []Receipt
	for range 3 {
		gw := open(t, cfg)
		var all []Arrival
		for i := range 20 {
			all = append(all, testArrival(len(held)+i))
		}
		for _, o := range gw.SignBatch(t.Context(), all) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			held = append(held, o.Receipt)
		}
		if err := gw.Close(); err != nil { // writes the signatures, into a segment of their own
			t.Fatal(err)
		}
	}
	gw := open(t, cfg)
	for i, want := range held {
		if got, err := gw.Sign(t.Context(), testArrival(i)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("receipt %d: %s, %v", i, got, err)
		}
	}
	view, err := ReadLog(cfg.Dir)
	if err != nil || view.Entries != uint64(len(held)) {
		t.Errorf("%+v, %v", view, err)
	}
}

func TestTwoWritersAreRefused(t *testing.T) {
	t.Parallel()
	cfg, _, _ := filled(t, 1)
	open(t, cfg)
	if _, err := Open(cfg); !errors.Is(err, errLocked) {
		t.Errorf("got %v", err)
	}
	if _, err := Rotate(cfg, testKey(t, "next")); !errors.Is(err, errLocked) {
		t.Errorf("rotation: %v", err)
	}
}

func TestAnotherLogIsNotOpened(t *testing.T) {
	t.Parallel()
	cfg, _, _ := filled(t, 1)
	other := cfg
	other.Key = testKey(t, "other")
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "the log's key is "+cfg.Key.KID) {
		t.Errorf("another key: %v", err)
	}
	other = cfg
	other.Name = "another"
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), `that of gateway "gateway.example", not of "another"`) {
		t.Errorf("another name: %v", err)
	}
}

// A full disk refuses with 507, and what was acknowledged before stays; with room again, it goes on.
func TestAFullDiskRefuses(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Sync, Batched, Inproc} {
		disk := newSimDisk(rand.New(rand.NewPCG(1, 1)))
		disk.full = 5000
		cfg := Config{Name: testName, Key: testKey(t, "key"), Mode: mode, Dir: "/log", Durability: Fsync, files: disk}
		gw := open(t, cfg)
		var held []Receipt
		var r *Refusal
		for {
			got, err := gw.Sign(t.Context(), testArrival(len(held)))
			if errors.As(err, &r) {
				break
			}
			held = append(held, got)
		}
		if r.Status() != 507 || len(held) == 0 {
			t.Fatalf("%s: after %d receipts: %v", mode, len(held), r)
		}
		disk.mu.Lock()
		disk.full = -1
		disk.mu.Unlock()
		for i := range len(held) + 5 {
			got, err := gw.Sign(t.Context(), testArrival(i))
			if err != nil || i < len(held) && !bytes.Equal(got, held[i]) {
				t.Fatalf("%s: with room again, receipt %d: %s, %v", mode, i, got, err)
			}
		}
		if err := gw.Close(); err != nil {
			t.Fatal(err)
		}
		v, err := readLog(disk, "/log")
		if err != nil || v.Entries != uint64(len(held)+5) || v.Repeated != 0 {
			t.Errorf("%s: the log holds %+v, %v", mode, v, err)
		}
	}
}

// The clock may step back within the bound, and arrivals keep the last time; beyond it they are refused with 503.
func TestAClockStepBackIsBounded(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
		cfg.Now = func() time.Time { return now }
		gw := open(t, cfg)
		at := func(n int) string {
			r, err := gw.Sign(t.Context(), testArrival(n))
			var refusal *Refusal
			if errors.As(err, &refusal) {
				return fmt.Sprint(refusal.Status(), " ", refusal.Text)
			}
			return between(r, `"arrived_at":"`, `"`)
		}
		for i, c := range []struct {
			step time.Duration
			want string
		}{
			{0, "2026-12-01T12:00:00.000Z"},
			{1500 * time.Millisecond, "2026-12-01T12:00:01.500Z"},
			{-time.Second, "2026-12-01T12:00:01.500Z"},
			{-2 * time.Second, "503 the clock is 3s behind the last arrival; set it right"},
			{3001 * time.Millisecond, "2026-12-01T12:00:01.501Z"},
		} {
			now = now.Add(c.step)
			if got := at(i); got != c.want {
				t.Errorf("step %d: %s, want %s", i, got, c.want)
			}
		}
	})
}

func TestARotationIsSignedByBothKeysAndOldReceiptsStay(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Sync, Batched} {
		cfg, _, held := filled(t, 5)
		cfg.Mode = mode
		gw := open(t, cfg)
		more, err := gw.Sign(t.Context(), testArrival(5))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, more)
		if err := gw.Close(); err != nil {
			t.Fatal(err)
		}
		next := testKey(t, "next")
		handover, err := Rotate(cfg, next)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "the log's key is "+next.KID) {
			t.Errorf("the old key still opens the log: %v", err)
		}
		pins := pinned(cfg.Key)
		if err := pins.Rotate(cfg.Key.KID, next.Public, 6); err != nil {
			t.Fatal(err)
		}
		cfg.Key = next
		gw = open(t, cfg)
		for i, want := range held {
			if got, err := gw.Sign(t.Context(), testArrival(i)); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("receipt %d after the rotation: %v\n%s\n%s", i, err, got, want)
			}
		}
		after, err := gw.Sign(t.Context(), testArrival(6))
		if err != nil {
			t.Fatal(err)
		}
		if err := gw.Close(); err != nil {
			t.Fatal(err)
		}
		view, err := ReadLog(cfg.Dir)
		if err != nil || view.Rotated != 1 || view.KID != next.KID {
			t.Fatalf("%+v, %v", view, err)
		}
		v := &Verifier{Pins: pins, Log: view.Log()}
		for _, r := range append(held, handover, after) {
			wantVerdict(t, v, r, Valid)
		}
		wantVerdict(t, v, swap(t, handover, `"sig_new":"`+between(handover, `"sig_new":"`, `"`), `"sig_new":"`+strings.Repeat("A", 86)), BadSignature)
		late := pinned(cfg.Key)
		late.Keys[0].From = 8
		wantVerdict(t, &Verifier{Pins: late}, after, NotYetKey)
	}
}

func FuzzReadRecord(f *testing.F) {
	g := &group{form: formBatch, envelopes: [][]byte{[]byte("one"), []byte("two")}}
	g.build()
	g.sigs = [][]byte{make([]byte, 64)}
	f.Add(appendSigs(appendGroup(nil, g), g))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00G"))
	f.Fuzz(func(t *testing.T, b []byte) {
		torn(b)
		next := uint64(0)
		v := &LogView{roots: make(map[uint64]Hash), seen: make(map[key]uint64), sigsOf: make(map[uint64]bool)}
		scanSegment(segmentName(0), append(segmentHeader(0), b...), &next, true, v)
		r, err := readRecord(b)
		if err != nil || r.kind != kindGroup {
			return
		}
		if g, err := readGroup(r.payload); err == nil && !bytes.Equal(appendGroup(nil, g), b[:r.size]) {
			t.Errorf("%x reads as another group", b)
		}
	})
}

func TestBadRecords(t *testing.T) {
	t.Parallel()
	g := &group{form: formBatch, envelopes: [][]byte{[]byte("one")}}
	g.build()
	good := appendGroup(nil, g)
	payload := func(change func([]byte) []byte) []byte {
		return appendRecord(nil, kindGroup, func(b []byte) []byte { return append(b, change(bytes.Clone(good[recordHead:]))...) })
	}
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "the record is cut short"},
		{"a head cut short", good[:8], "the record is cut short"},
		{"a payload cut short", good[:len(good)-1], "the record is cut short"},
		{"another kind", append([]byte{3, 0, 0, 0, 0, 0, 0, 0, 'X'}, 1, 2, 3), "the record's head is damaged"},
		{"too long", []byte("\xff\xff\xff\xff\x00\x00\x00\x00G"), "the record's head is damaged"},
		{"a changed byte", append(bytes.Clone(good[:len(good)-1]), 'x'), "the record's checksum does not match"},
		{"an empty group", payload(func(b []byte) []byte { return b[:5] }), "the group is cut short"},
		{"no entries", payload(func(b []byte) []byte { b[8] = 0; return b }), "the group's head is damaged"},
		{"a form that is none", payload(func(b []byte) []byte { b[10] = 9; return b }), "the group's head is damaged"},
		{"peaks missing", payload(func(b []byte) []byte { b[0] = 3; return b }), "the group's head is damaged"},
		{"an entry cut short", payload(func(b []byte) []byte { return b[:len(b)-1] }), "an entry is cut short"},
		{"something behind", payload(func(b []byte) []byte { return append(b, 'x') }), "something stands behind the last entry"},
		{"another root", payload(func(b []byte) []byte { b[11] ^= 1; return b }), "the entries 0 to 0 do not give the root that was written"},
	} {
		r, err := readRecord(c.in)
		if err == nil {
			_, err = readGroup(r.payload)
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
