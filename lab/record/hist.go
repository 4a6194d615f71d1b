package record

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/bits"
)

const (
	subBits    = 8            // 256 buckets an octave: half a bucket is at most 1/512 of its value (0.195 %)
	subCount   = 1 << subBits // buckets an octave
	octaves    = 64 - subBits // of the whole range, the exact one counting as one
	numBuckets = octaves * subCount
)

// Hist is a log-linear histogram of non-negative int64 values (nanoseconds). Values below 512 are exact, larger ones are
// kept to 0.195 %; the whole int64 range has a bucket, so nothing is ever refused or clipped. Minimum, maximum, sum and
// count are exact. An octave's buckets (2 KiB) are set aside when its first value comes, so that a thousand VUs with a
// histogram each need some 20 MB and not 115. The zero value is empty and ready. It must not be copied, and it is not safe
// for concurrent use.
type Hist struct {
	count, sum, min, max int64
	octave               [octaves]*[subCount]int64
}

// Record adds one value. A negative value, which only a clock that ran backwards can give, counts as 0.
func (h *Hist) Record(v int64) {
	if v < 0 {
		v = 0
	}
	if h.count == 0 || v < h.min {
		h.min = v
	}
	if v > h.max {
		h.max = v
	}
	h.count++
	h.sum += v
	i := bucketOf(v)
	h.of(i >> subBits)[i&(subCount-1)]++
}

// of returns an octave's buckets.
func (h *Hist) of(o int) *[subCount]int64 {
	if h.octave[o] == nil {
		h.octave[o] = new([subCount]int64)
	}
	return h.octave[o]
}

// Reset empties h and keeps its memory.
func (h *Hist) Reset() {
	if h.count == 0 {
		return
	}
	h.count, h.sum, h.min, h.max = 0, 0, 0, 0
	for _, o := range h.octave {
		if o != nil {
			clear(o[:])
		}
	}
}

// bucketOf returns v's bucket: v itself below 512, else its octave and its top nine bits.
func bucketOf(v int64) int {
	shift := bits.Len64(uint64(v)|(subCount<<1-1)) - (subBits + 1)
	return shift<<subBits + int(v>>shift)
}

// bucketRange returns the smallest and the largest value that fall into bucket i.
func bucketRange(i int) (lo, hi int64) {
	if i < 2*subCount {
		return int64(i), int64(i)
	}
	shift := i>>subBits - 1
	lo = int64(i-shift<<subBits) << shift
	return lo, lo + 1<<shift - 1
}

// Merge adds the values of o to h.
func (h *Hist) Merge(o *Hist) {
	if o.count == 0 {
		return
	}
	if h.count == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	h.count += o.count
	h.sum += o.sum
	for at, theirs := range o.octave {
		if theirs == nil {
			continue
		}
		ours := h.of(at)
		for i, n := range theirs {
			ours[i] += n
		}
	}
}

// Equal reports whether both hold the same values, to their buckets' resolution.
func (h *Hist) Equal(o *Hist) bool {
	if h.count != o.count || h.sum != o.sum || h.min != o.min || h.max != o.max {
		return false
	}
	var none [subCount]int64
	for at := range h.octave {
		a, b := cmp.Or(h.octave[at], &none), cmp.Or(o.octave[at], &none)
		if *a != *b {
			return false
		}
	}
	return true
}

// Count returns how many values were recorded.
func (h *Hist) Count() int64 { return h.count }

// Sum returns the exact sum of the values.
func (h *Hist) Sum() int64 { return h.sum }

// Min returns the exact smallest value, 0 when empty.
func (h *Hist) Min() int64 { return h.min }

// Max returns the exact largest value, 0 when empty.
func (h *Hist) Max() int64 { return h.max }

// Mean returns the exact mean, 0 when empty.
func (h *Hist) Mean() float64 {
	if h.count == 0 {
		return 0
	}
	return float64(h.sum) / float64(h.count)
}

// Quantile returns the value at quantile q (0 to 1) by nearest rank, so that Quantile(1) is the maximum and with one value
// every quantile is that value. It is the middle of its bucket, held within the exact minimum and maximum; 0 when empty.
func (h *Hist) Quantile(q float64) int64 {
	if h.count == 0 {
		return 0
	}
	// The millionth keeps 0.999 × 50,000 from becoming rank 49,951 because 0.999 is not exact.
	rank := int64(math.Ceil(q*float64(h.count) - 1e-6))
	return h.AtRank(rank)
}

// AtRank returns the value of the given rank, 1 being the smallest.
func (h *Hist) AtRank(rank int64) int64 {
	if rank <= 1 {
		return h.min
	}
	if rank >= h.count {
		return h.max
	}
	var seen int64
	for i, n := range h.all() {
		if seen += n; seen >= rank {
			lo, hi := bucketRange(i)
			return min(max(lo+(hi-lo)/2, h.min), h.max)
		}
	}
	return h.max
}

// all yields the buckets that hold something, smallest first: number and count.
func (h *Hist) all() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for at, o := range h.octave {
			if o == nil {
				continue
			}
			for i, n := range o {
				if n != 0 && !yield(at<<subBits+i, n) {
					return
				}
			}
		}
	}
}

// CountAbove returns how many values lie above v, to the resolution of v's bucket.
func (h *Hist) CountAbove(v int64) int64 {
	var n int64
	at := bucketOf(max(v, 0))
	for i, c := range h.all() {
		if i > at {
			n += c
		}
	}
	return n
}

// Buckets yields the buckets that hold something, smallest first: the largest value of each and its count.
func (h *Hist) Buckets() iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		for i, n := range h.all() {
			if _, hi := bucketRange(i); !yield(hi, n) {
				return
			}
		}
	}
}

// FromBuckets rebuilds a histogram from exported buckets (pairs of a bucket's largest value and its count) and the exact
// figures beside them. Counts that do not add up to count, or a negative one, are an error.
func FromBuckets(pairs [][2]int64, count, sum, minimum, maximum int64) (*Hist, error) {
	h := &Hist{count: count, sum: sum, min: minimum, max: maximum}
	var total int64
	for _, p := range pairs {
		if p[0] < 0 || p[1] < 0 {
			return nil, fmt.Errorf("histogram bucket %v: negative", p)
		}
		i := bucketOf(p[0])
		h.of(i >> subBits)[i&(subCount-1)] += p[1]
		total += p[1]
	}
	if total != count {
		return nil, fmt.Errorf("histogram: buckets hold %d values, count says %d", total, count)
	}
	return h, nil
}
