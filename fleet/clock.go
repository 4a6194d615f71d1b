package fleet

import "time"

// clockWindow is how many exchanges of times are looked back at.
const clockWindow = 16

// An exchange is what one probe of a clock gave.
type exchange struct{ offset, rtt time.Duration }

// A clock knows how far another machine's monotonic clock is ahead of ours: by the quickest of the last exchanges. The answer to
// a probe lay half its round trip back, give or take that half.
type clock struct {
	last  [clockWindow]exchange
	taken int
}

// add notes an exchange, ours at t1 and t4, theirs at t2 and t3. One that contradicts itself is passed over.
func (c *clock) add(t1, t2, t3, t4 time.Duration) {
	rtt := (t4 - t1) - (t3 - t2)
	if t4 < t1 || t3 < t2 || rtt < 0 {
		return
	}
	c.last[c.taken%clockWindow] = exchange{((t2 - t1) + (t3 - t4)) / 2, rtt}
	c.taken++
}

// settled reports whether there were enough exchanges.
func (c *clock) settled() bool { return c.taken >= clockWindow }

// offset returns how far their clock is ahead of ours, and by how much that may be wrong.
func (c *clock) offset() (ahead, bound time.Duration) {
	best := exchange{rtt: -1}
	for _, e := range c.last[:min(c.taken, clockWindow)] {
		if best.rtt < 0 || e.rtt < best.rtt {
			best = e
		}
	}
	return best.offset, max(best.rtt, 0) / 2
}

// leastOfBound is how many times the clocks' bound a figure across two machines must be to be one.
const leastOfBound = 10

// OneWay returns a time that was taken across two machines' clocks, if it is large enough for their bound; else false.
func OneWay(d, bound time.Duration) (time.Duration, bool) {
	return d, bound > 0 && max(d, -d) >= leastOfBound*bound
}
