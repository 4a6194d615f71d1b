//go:build unix

package receipt

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// cpuTime is the process' user and system time.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRatios runs the signature alone, single receipts and batches in turn, and reports CPU time per receipt and how
// many times less a batch takes. The minimum over the turns is what the neighbours on the machine disturb least.
func BenchmarkRatios(b *testing.B) {
	single, batch := open(b, Config{}), open(b, Config{Mode: Batched})
	key := testKey(b, "key")
	n := 0
	arrivals := func(k int) []Arrival {
		out := make([]Arrival, k)
		for i := range out {
			out[i] = testArrival(n)
			n++
		}
		return out
	}
	env, err := appendEnvelope(nil, &arrivals(1)[0], testName, key.KID, []byte("2026-12-01T00:00:00.000Z"), 1, 1)
	if err != nil {
		b.Fatal(err)
	}
	const turn = 1024
	turns := map[string]func([]Arrival){
		"sign": func(all []Arrival) {
			for range all {
				key.sign(env)
			}
		},
		"single": func(all []Arrival) {
			for i := range all {
				if _, err := single.Sign(b.Context(), all[i]); err != nil {
					b.Fatal(err)
				}
			}
		},
	}
	for _, size := range []int{16, 64, 256} {
		turns[fmt.Sprint("batch", size)] = func(all []Arrival) {
			for c := range slices.Chunk(all, size) {
				for _, o := range batch.SignBatch(b.Context(), c) {
					if o.Err != nil {
						b.Fatal(o.Err)
					}
				}
			}
		}
	}
	least := make(map[string]time.Duration)
	for b.Loop() {
		for name, f := range turns {
			all := arrivals(turn)
			begin := cpuTime(b)
			f(all)
			if took := cpuTime(b) - begin; least[name] == 0 || took < least[name] {
				least[name] = took
			}
		}
	}
	for name, d := range least {
		b.ReportMetric(float64(d.Nanoseconds())/turn, name+"-cpu-ns")
		b.ReportMetric(float64(least["single"])/float64(d), "single/"+name)
	}
}
