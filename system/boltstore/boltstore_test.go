package boltstore_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/system/boltstore"
)

func open(t *testing.T, path string) *boltstore.File {
	t.Helper()
	f, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func holds(t *testing.T, s *boltstore.Store, snapshot string, deltas ...string) {
	t.Helper()
	gotSnapshot, gotDeltas, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, d := range gotDeltas {
		texts = append(texts, string(d))
	}
	if string(gotSnapshot) != snapshot || !cmp.Equal(texts, deltas) {
		t.Errorf("got %q and %q, want %q and %q", gotSnapshot, texts, snapshot, deltas)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsAppendedComesBackInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "groups")
	f := open(t, path)
	a, b := f.Group([]byte("a")), f.Group([]byte("b"))
	holds(t, a, "")
	check(t, a.Snapshot([]byte("first")))
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprint(i))
		check(t, a.Append([]byte(want[i])))
	}
	check(t, b.Append([]byte("x"), []byte("y")))
	check(t, f.Close())
	f = open(t, path)
	defer f.Close()
	a, b = f.Group([]byte("a")), f.Group([]byte("b"))
	holds(t, a, "first", want...)
	holds(t, b, "", "x", "y")
	check(t, a.Snapshot([]byte("second")))
	holds(t, a, "second")
	check(t, a.Append([]byte("after")))
	holds(t, a, "second", "after")
	check(t, a.Forget())
	check(t, a.Forget())
	holds(t, a, "")
	holds(t, b, "", "x", "y")
}

func TestAFileIsForOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "groups")
	f := open(t, path)
	defer f.Close()
	if _, err := boltstore.Open(path); err == nil {
		t.Error("opened twice")
	}
	if err := f.Group(nil).Append([]byte("x")); err == nil {
		t.Error("a group without an identifier was stored")
	}
}
