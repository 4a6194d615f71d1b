package plan_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"toll/lab/plan"
)

func randomStages(r *rand.Rand, most float64) []plan.Stage {
	var out []plan.Stage
	for range 1 + r.IntN(5) {
		out = append(out, plan.Stage{Duration: plan.Duration(r.Int64N(int64(4 * time.Second))), Target: float64(r.IntN(int(most)))})
	}
	return append(out, plan.Stage{Duration: plan.Duration(time.Second), Target: most})
}

func TestSegmentsHaveTheWholesVUsAtEveryMoment(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		stages := randomStages(r, 60)
		of := 1 + r.IntN(12)
		total := plan.Total(stages)
		for range 200 {
			at := time.Duration(r.Int64N(int64(total)))
			want, _ := plan.VUs(stages, at)
			// A crossing is rounded to the nanosecond, in a segment as in the whole.
			before, _ := plan.VUs(stages, max(at-2, 0))
			after, _ := plan.VUs(stages, at+2)
			got := 0
			for i := range of {
				n, _ := plan.VUs(plan.Segment{Number: i, Of: of}.VUs(stages), at)
				got += max(n, 0)
			}
			if got != want && got != before && got != after {
				t.Fatalf("%d segments of %v have %d VUs at %v, the whole %d", of, stages, got, at, want)
			}
		}
	}
}

func TestASegmentsVUsAreActiveWhenTheWholesAre(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		stages := randomStages(r, 40)
		of := 1 + r.IntN(7)
		for vu := range 40 {
			want := plan.Active(stages, vu)
			got := plan.Active(plan.Segment{Number: vu % of, Of: of}.VUs(stages), vu/of)
			if len(got) != len(want) {
				t.Fatalf("VU %d of %v: %v as %d of %d, %v in the whole", vu, stages, got, vu/of, of, want)
			}
			for i := range got {
				if d := got[i].From - want[i].From; d < -2 || d > 2 {
					t.Fatalf("VU %d of %v: %v, want %v", vu, stages, got, want)
				}
			}
		}
	}
}

func TestSegmentsHaveTheWholesArrivals(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	arrivals := func(stages []plan.Stage, ahead float64) (all []time.Duration) {
		a := plan.NewArrivals(stages, nil).Ahead(ahead)
		for at, ok := a.Next(); ok; at, ok = a.Next() {
			all = append(all, at)
		}
		return all
	}
	for range 100 {
		stages := randomStages(r, 500)
		of := 1 + r.IntN(12)
		want := arrivals(stages, 0)
		var got []time.Duration
		for i := range of {
			got = append(got, arrivals(plan.Segment{Number: i, Of: of}.Rates(stages))...)
		}
		slices.Sort(got)
		if len(got) != len(want) {
			t.Fatalf("%d segments of %v have %d arrivals, the whole %d", of, stages, len(got), len(want))
		}
		for i := range got {
			if d := got[i] - want[i]; d < -time.Microsecond || d > time.Microsecond {
				t.Fatalf("arrival %d of %v is due at %v in its segment, at %v in the whole", i, stages, got[i], want[i])
			}
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	for total := range 40 {
		for of := 1; of < 12; of++ {
			sum := 0
			for i := range of {
				sum += plan.Segment{Number: i, Of: of}.Share(total)
			}
			if sum != total {
				t.Errorf("%d over %d: %d", total, of, sum)
			}
		}
	}
}
