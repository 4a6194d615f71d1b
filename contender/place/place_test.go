package place_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/contender/place"
)

func TestOneCallerSharesAProcessorAndMoreDivideThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		usable  place.Set
		callers int
		want    place.Placement
	}{
		{place.Set{0, 1}, 1, place.Placement{Client: place.Set{1}, Contenders: place.Set{1}}},
		{place.Set{0, 1}, 2, place.Placement{Client: place.Set{0}, Contenders: place.Set{1}}},
		{place.Set{4}, 64, place.Placement{Client: place.Set{4}, Contenders: place.Set{4}}},
		{place.Set{0, 2, 4, 6, 7}, 64, place.Placement{Client: place.Set{0, 2}, Contenders: place.Set{4, 6, 7}}},
		{nil, 1, place.Placement{}},
	} {
		if d := cmp.Diff(c.want, place.Held(c.usable, c.callers)); d != "" {
			t.Errorf("%v, %d callers: %s", c.usable, c.callers, d)
		}
	}
}

func TestBothSidesTogether(t *testing.T) {
	t.Parallel()
	for callers, want := range map[int]place.Set{1: {3}, 8: {1, 2, 3}} {
		if got := place.Held(place.Set{1, 2, 3}, callers).Both(); !slices.Equal(got, want) {
			t.Errorf("%d callers: %v; want %v", callers, got, want)
		}
	}
}
