package lab

import (
	"fmt"
	"time"

	"toll/lab/check"
	"toll/lab/result"
)

// carried watches what the process that carries the hop's packets spends on a round; what it returns ends the watch.
func (r *run) carried() (end func()) {
	if r.o.Carried == nil {
		return func() {}
	}
	before, ok := r.o.Carried()
	begin := time.Now()
	return func() {
		after, still := r.o.Carried()
		took := time.Since(begin)
		if !ok || !still || took <= 0 {
			return
		}
		cores := result.Round3((after - before).Seconds() / took.Seconds())
		if r.carrier == nil || cores > *r.carrier {
			r.carrier = &cores
		}
	}
}

// carrierText warns of a hop that may be what was measured. Each direction has a thread of its own, so one core may be one
// direction at its end.
func carrierText(cores float64) string {
	if cores <= check.ClientBound {
		return ""
	}
	return fmt.Sprintf("the process that carries packets used %.2f cores in the busiest round, and each direction has one at most: what was measured may be the hop", cores)
}
