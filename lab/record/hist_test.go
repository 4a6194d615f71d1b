package record_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"toll/lab/record"
)

func TestEveryValueIsKeptWithinAFifthOfAPercent(t *testing.T) {
	t.Parallel()
	check := func(v int64) {
		var h record.Hist
		h.Record(v - 1)
		h.Record(v)
		h.Record(math.MaxInt64)
		got := h.Quantile(.5)
		if off := math.Abs(float64(got-v)) / float64(v); off > .002 {
			t.Errorf("%d is kept as %d, %.3f %% off", v, got, 100*off)
		}
	}
	for shift := range 62 {
		for _, d := range []int64{-1, 0, 1} {
			if v := int64(1)<<shift + d; v > 0 {
				check(v)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		check(1 + r.Int64N(1<<(1+r.Int64N(61))))
	}
}

func TestTheWholeRangeHasABucket(t *testing.T) {
	t.Parallel()
	var h record.Hist
	for _, v := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		h.Record(v)
	}
	if h.Count() != 5 || h.Min() != 0 || h.Max() != math.MaxInt64 {
		t.Errorf("count %d, min %d, max %d", h.Count(), h.Min(), h.Max())
	}
}

func TestQuantilesAreThoseOfTheSortedSamples(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(5000)
		var h record.Hist
		var all []int64
		for range n {
			v := int64(math.Exp(r.NormFloat64()*2 + 10))
			h.Record(v)
			all = append(all, v)
		}
		slices.Sort(all)
		last := int64(0)
		for _, q := range []float64{0, .001, .25, .5, .9, .95, .99, .999, 1} {
			want := all[min(max(int(math.Ceil(q*float64(n)-1e-6)), 1), n)-1]
			got := h.Quantile(q)
			if off := math.Abs(float64(got-want)) / float64(want); off > .002 {
				t.Errorf("seed %d, n %d: q%v is %d, the samples say %d", seed, n, q, got, want)
			}
			if got < last {
				t.Errorf("seed %d: q%v is %d, below the quantile before it, %d", seed, q, got, last)
			}
			last = got
		}
		if h.Quantile(1) != all[n-1] || h.Min() != all[0] {
			t.Errorf("seed %d: min and max are not exact", seed)
		}
	}
}

func TestTenSamplesGiveTailQuantilesByNearestRank(t *testing.T) {
	t.Parallel()
	var h record.Hist
	for v := range int64(10) {
		h.Record(1000 * (v + 1))
	}
	for _, q := range []float64{.95, .99, .999, 1} {
		if got := h.Quantile(q); got != 10_000 {
			t.Errorf("q%v of ten samples is %d; the largest is 10000", q, got)
		}
	}
}

func TestOneSampleIsEveryQuantile(t *testing.T) {
	t.Parallel()
	var h record.Hist
	h.Record(123_457)
	for _, q := range []float64{0, .5, .999, 1} {
		if got := h.Quantile(q); got != 123_457 {
			t.Errorf("q%v is %d", q, got)
		}
	}
}

func TestMergingIsAddition(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var whole, merged record.Hist
	parts := make([]record.Hist, 4)
	for i := range 10_000 {
		v := r.Int64N(1 << 40)
		whole.Record(v)
		parts[i%3].Record(v)
	}
	for i := range parts {
		merged.Merge(&parts[i])
	}
	if !merged.Equal(&whole) {
		t.Error("four merged shards, one of them empty, differ from the histogram of all")
	}
}

func TestBucketsGoOutAndComeBack(t *testing.T) {
	t.Parallel()
	var h record.Hist
	r := rand.New(rand.NewPCG(4, 4))
	for range 1000 {
		h.Record(r.Int64N(1 << 50))
	}
	var pairs [][2]int64
	for hi, n := range h.Buckets() {
		pairs = append(pairs, [2]int64{hi, n})
	}
	back, err := record.FromBuckets(pairs, h.Count(), h.Sum(), h.Min(), h.Max())
	if err != nil || !back.Equal(&h) {
		t.Errorf("a histogram differs after a trip through its buckets: %v", err)
	}
	if _, err := record.FromBuckets(pairs[1:], h.Count(), h.Sum(), h.Min(), h.Max()); err == nil {
		t.Error("buckets that do not add up were accepted")
	}
	if _, err := record.FromBuckets([][2]int64{{5, -1}}, -1, 0, 0, 0); err == nil {
		t.Error("a negative bucket was accepted")
	}
}

// HdrHistogram with three digits is the oracle.
func TestAgreesWithHdrHistogram(t *testing.T) {
	t.Parallel()
	var h record.Hist
	o := hdrhistogram.New(1, 1<<40, 3)
	r := rand.New(rand.NewPCG(5, 5))
	for range 50_000 {
		v := min(int64(math.Exp(r.ExpFloat64()+9)), 1<<39)
		h.Record(v)
		if err := o.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []float64{1, 10, 50, 90, 99, 99.9, 99.99} {
		a, b := float64(h.Quantile(q/100)), float64(o.ValueAtQuantile(q))
		if math.Abs(a-b)/b > .004 {
			t.Errorf("q%v: ours %v, HdrHistogram %v", q, a, b)
		}
	}
}

func TestCountAboveCountsOnlyWhatIsAbove(t *testing.T) {
	t.Parallel()
	var h record.Hist
	for _, v := range []int64{10, 20, 30, 100, 1000, 5000} {
		h.Record(v)
	}
	for v, want := range map[int64]int64{-5: 6, 9: 6, 10: 5, 30: 3, 400: 2, 5000: 0, math.MaxInt64: 0} {
		if got := h.CountAbove(v); got != want {
			t.Errorf("above %d: %d, want %d", v, got, want)
		}
	}
}

func TestAResetHistogramIsAnEmptyOne(t *testing.T) {
	t.Parallel()
	var h, fresh record.Hist
	for v := range int64(100_000) {
		h.Record(v * v)
	}
	h.Reset()
	if !h.Equal(&fresh) {
		t.Error("a histogram that was reset is not empty")
	}
	h.Record(7)
	fresh.Record(7)
	if !h.Equal(&fresh) || h.Min() != 7 || h.Max() != 7 {
		t.Error("a histogram that was reset keeps something of its past")
	}
}
