package hub_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"toll/fleet"
	"toll/fleet/hub"
	"toll/lab/record"
)

// written is a journal of so many slices.
func written(t testing.TB, n int) []byte {
	t.Helper()
	j, err := hub.NewJournal(t.TempDir(), "run", "w")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s := new(record.Shard)
		s.Done(time.Duration(i+1), nil)
		body := fleet.Slice{Run: "run", Worker: "w", N: i, To: time.Second, Shard: s}.Encode()
		if err := j.Append(body); err != nil {
			t.Fatal(err)
		}
		if back, err := j.Read(i); err != nil || !bytes.Equal(back, body) {
			t.Errorf("slice %d comes back as %x, %v", i, back, err)
		}
	}
	if _, err := j.Read(n); err == nil {
		t.Error("a slice that was never written was read")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(j.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAJournalIsReadUpToItsTornEnd(t *testing.T) {
	t.Parallel()
	data := written(t, 3)
	one := len(data) / 3
	flip := func(at int) []byte {
		b := bytes.Clone(data)
		b[at] ^= 0xff
		return b
	}
	for _, c := range []struct {
		in   []byte
		n    int
		want string
	}{
		{data, 3, ""},
		{nil, 0, ""},
		{data[:one+5], 1, "behind slice 1: torn within a head"},
		{data[:2*one-1], 1, "behind slice 1: torn within a slice"},
		{flip(one + 9), 1, "behind slice 1: damaged"},
		{flip(one), 1, "behind slice 1: a slice of "},
	} {
		all, err := hub.ReadJournal(bytes.NewReader(c.in))
		if len(all) != c.n || c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%d bytes: %d slices, %v; want %d, %s", len(c.in), len(all), err, c.n, c.want)
		}
	}
}

func FuzzReadJournal(f *testing.F) {
	f.Add(written(f, 2))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := hub.ReadJournal(bytes.NewReader(b))
		if err == nil && len(b) > 0 && len(all) == 0 {
			t.Error("bytes that hold no slice were read without an error")
		}
	})
}

func TestNamesThatNATSWouldNotTakeAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a.b", "a b", "*", strings.Repeat("a", 65), "ü"} {
		if hub.CheckName(name) == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if err := errors.Join(hub.CheckName("w-1_B"), hub.CheckName(strings.Repeat("a", 64))); err != nil {
		t.Error(err)
	}
}
