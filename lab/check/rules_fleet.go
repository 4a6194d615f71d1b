package check

import "toll/lab/result"

// Rule 11 for what several machines measured: all of it is here, and the parts add up to the row.
func (c *checker) fleet(r *result.Row) {
	f := r.Fleet
	if f == nil {
		return
	}
	var ok, dropped int64
	complete, got := 0, 0
	for _, w := range f.Workers {
		ok, dropped, got = ok+w.OK, dropped+w.Dropped, got+w.SlicesGot
		if w.Complete {
			complete++
		}
		if w.ClockBound < 0 || f.ClockBound < w.ClockBound {
			c.add(11, r, "worker %s has a clock bound of %.3f µs, the fleet one of %.3f", w.Worker, w.ClockBound, f.ClockBound)
		}
	}
	if ok != r.OK || dropped != r.Dropped {
		c.add(11, r, "the workers have %d successes and dropped %d, the row %d and %d", ok, dropped, r.OK, r.Dropped)
	}
	if got != f.SlicesGot || complete != f.WorkersComplete || f.SlicesGot > f.SlicesExpected {
		c.add(11, r, "%d slices and %d workers complete by the workers' own rows, %d and %d in the fleet's", got, complete, f.SlicesGot, f.WorkersComplete)
	}
	if f.StartSpread != nil && *f.StartSpread < 10*f.ClockBound {
		c.add(11, r, "a start spread of %.3f µs across clocks that may be %.3f µs apart", *f.StartSpread, f.ClockBound)
	}
	switch {
	case f.Verdict != result.FleetComplete:
		c.add(11, r, "%s: %s", f.Verdict, f.Detail)
	case f.SlicesGot != f.SlicesExpected || f.WorkersComplete != f.WorkersExpected || len(f.Workers) != f.WorkersExpected:
		c.add(11, r, "it says complete, with %d of %d slices and %d of %d workers", f.SlicesGot, f.SlicesExpected, f.WorkersComplete, f.WorkersExpected)
	}
}
