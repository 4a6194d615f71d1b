package report

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"toll/lab/result"
)

// full is a document of a full run's shape: 4 cases, 2 phases, 3 concurrencies, 10 rows each, 24 blocks, 1,500 calls a row.
func full(t *testing.T) *result.Document {
	d := fixture(t)
	one := d.Rows[0]
	d.Rows = nil
	r := rand.New(rand.NewPCG(1, 2))
	us := func(v float64) *float64 { return result.Ptr(result.Round3(v * math.Exp(r.NormFloat64()/5))) }
	for _, c := range []string{"call/0B", "call/32B", "call/4KiB", "call/64KiB"} {
		for _, phase := range []string{"tcp", "unix"} {
			for _, n := range []int{1, 8, 64} {
				for i := range 10 {
					row := one
					row.Case, row.Phase, row.Concurrency, row.Role = c, phase, n, ""
					row.Contender.Name = fmt.Sprintf("contender-%d", i)
					switch i {
					case 0:
						row.Role = result.Baseline
					case 1:
						row.Role, row.Contender.Name = result.Control, "contender-0"
					}
					row.Throughput = us(1e4)
					row.Rounds = slices.Clone(one.Rounds[:1])
					row.Rounds[0].Blocks = nil
					for slot := range 24 {
						row.Rounds[0].Blocks = append(row.Rounds[0].Blocks, result.Block{Slot: slot % 10, OK: 256, P50: us(100), Min: us(50)})
					}
					h := &result.Histogram{Count: 1500, Max: 1 << 30}
					calls := make(map[int64]int64)
					for range 1500 {
						calls[int64(100e3*math.Exp(r.NormFloat64()/2))/256*256+255]++
					}
					for _, at := range slices.Sorted(maps.Keys(calls)) {
						h.Buckets = append(h.Buckets, [2]int64{at, calls[at]})
					}
					row.Histogram = h
					d.Rows = append(d.Rows, row)
				}
			}
		}
	}
	d.Compare()
	return d
}

func TestAFullRunsPageStaysSmall(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := HTML(&b, full(t)); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 400_000 {
		t.Errorf("the page of 240 rows has %d bytes, more than 400,000", b.Len())
	}
	if !bytes.Contains(b.Bytes(), []byte("with its histograms in fewer buckets")) {
		t.Error("the page does not say that its histograms have fewer buckets")
	}
}
