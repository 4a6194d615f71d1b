package mls

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

// TestACrewDoesEachItemOnce, whatever the number of processors, and stops at the first failure.
func TestACrewDoesEachItemOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, s := range onSeams(t, X25519AES128) {
		for _, n := range []int{0, 1, 3, 4, 5, 100, 1000} {
			done := make([]atomic.Int32, n)
			check(t, s.begin(n, func(i int) error {
				done[i].Add(1)
				return nil
			}).finish())
			for i := range done {
				if k := done[i].Load(); k != 1 {
					t.Fatalf("item %d of %d was done %d times", i, n, k)
				}
			}
			bad := errors.New("bad")
			if err := s.begin(n, func(i int) error {
				if i == n/2 {
					return bad
				}
				return nil
			}).finish(); n > 0 && !errors.Is(err, bad) {
				t.Errorf("of %d items one fails: %v", n, err)
			}
			c := s.begin(n, func(int) error { return nil })
			c.stop()
			c.stop()
		}
	}
}
