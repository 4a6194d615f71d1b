package load_test

import (
	"sync"
	"testing"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// How late ten VUs' pauses of 20 ms end, by the runtime's timers and by those of a load.
func BenchmarkPause(b *testing.B) {
	const vus, pause = 10, 20 * time.Millisecond
	for name, pauses := range map[string]func() (load.Wait, func()){
		"timer": func() (load.Wait, func()) { return load.ByTimer, func() {} },
		"pause": load.NewPause,
	} {
		b.Run(name, func(b *testing.B) {
			hists := new([vus]record.Hist)
			before := record.ReadCPU()
			var wg sync.WaitGroup
			begin := time.Now()
			for vu := range vus {
				wait, done := pauses()
				wg.Go(func() {
					defer done()
					for range b.N {
						due := time.Since(begin) + pause + time.Duration(vu)*37*time.Microsecond
						wait(b.Context(), begin, due)
						hists[vu].Record(int64(time.Since(begin) - due))
					}
				})
			}
			wg.Wait()
			all := new(record.Hist)
			for i := range hists {
				all.Merge(&hists[i])
			}
			for _, q := range []struct {
				unit string
				q    float64
			}{{"late-p50-µs", .5}, {"late-p90-µs", .9}, {"late-p99-µs", .99}} {
				b.ReportMetric(float64(all.Quantile(q.q))/1e3, q.unit)
			}
			b.ReportMetric((record.ReadCPU()-before).Seconds()*1e6/float64(vus*b.N), "cpu-µs/pause")
		})
	}
}
