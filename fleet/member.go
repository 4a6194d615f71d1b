package fleet

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// A member is a worker as the coordinator sees it.
type member struct {
	id      string
	segment plan.Segment
	hello   Hello

	phase       string
	heard       time.Duration // on the coordinator's clock
	told        time.Duration // when it was last told to go on
	silent      bool          // it was not heard of for a while
	since       time.Duration // of the run, silent since
	lost        bool          // for good
	why         string        // it was lost, or stopped
	short       bool          // it stopped by itself
	clock       clock
	calibration *Calibration
	totals      *Totals
	complete    bool // everything it measured is here and adds up
	stepped     time.Duration
	lag         time.Duration // the worst of its beats

	sums       [][32]byte     // of the slices that are here, by number; zero: not here
	have       int            // so many, from the first on, are here
	got        int            // in all
	duplicates int            // slices that came again
	waiting    map[int][]byte // here and not merged
	asked      time.Duration  // when it was last asked for slices

	// Of the slices that are merged:
	merged  int
	latency record.Hist // of the window only
	all     tally
	window  tally
	limited int           // slices whose calls were sent late: it, not the target, was the limit
	cpu     time.Duration // of the window
	late    record.Hist   // open model, of the window
}

// A tally is what must add up.
type tally struct {
	ok, sum, dropped int64
	failed           map[string]int64
}

func (t *tally) add(s *record.Shard) {
	t.ok += s.Latency.Count()
	t.sum += s.Latency.Sum()
	t.dropped += s.Dropped
	for kind, n := range s.Failures {
		if t.failed == nil {
			t.failed = make(map[string]int64)
		}
		t.failed[kind] += n
	}
}

// differs says where a worker's totals are not the sum of its slices; empty when they are.
func (t *tally) differs(o *Totals) string {
	switch {
	case t.ok != o.OK:
		return fmt.Sprintf("its slices hold %d successes, its total says %d", t.ok, o.OK)
	case t.sum != o.SumNS:
		return fmt.Sprintf("its slices' latencies add up to %d ns, its total says %d", t.sum, o.SumNS)
	case t.dropped != o.Dropped:
		return fmt.Sprintf("its slices dropped %d arrivals, its total says %d", t.dropped, o.Dropped)
	case !maps.Equal(t.failed, o.Failed) && len(t.failed)+len(o.Failed) > 0:
		return fmt.Sprintf("its slices hold the failures %v, its total says %v", t.failed, o.Failed)
	}
	return ""
}

var noSum [32]byte

// A receipt says what became of a slice.
type receipt int

const (
	taken receipt = iota
	again
	contradicts
)

// take keeps a slice that arrived.
func (m *member) take(n int, body []byte) receipt {
	sum := sha256.Sum256(body)
	for len(m.sums) <= n {
		m.sums = append(m.sums, noSum)
	}
	switch m.sums[n] {
	case noSum:
	case sum:
		m.duplicates++
		return again
	default:
		return contradicts
	}
	m.sums[n] = sum
	m.got++
	if m.waiting == nil {
		m.waiting = make(map[int][]byte)
	}
	m.waiting[n] = body
	for m.have < len(m.sums) && m.sums[m.have] != noSum {
		m.have++
	}
	return taken
}

// missing returns the numbers, at most so many, of the slices before n that are not here.
func (m *member) missing(n, most int) []int {
	var out []int
	for i := m.have; i < n && len(out) < most; i++ {
		if i >= len(m.sums) || m.sums[i] == noSum {
			out = append(out, i)
		}
	}
	return out
}

// chained returns the digest over the first n slices, which must be here.
func (m *member) chained(n int) string {
	var c chain
	for _, sum := range m.sums[:n] {
		c.addSum(sum)
	}
	return c.text()
}

// unmerged decodes what is not merged before n and adds it to a tally.
func (m *member) unmerged(n int, t tally) (tally, error) {
	t.failed = maps.Clone(t.failed)
	for i := m.merged; i < n; i++ {
		s, err := DecodeSlice(m.waiting[i])
		if err != nil {
			return t, fmt.Errorf("slice %d: %w", i, err)
		}
		t.add(s.Shard)
	}
	return t, nil
}

// timely reports whether a generator kept up: late is the p99 of its lateness.
func timely(late time.Duration) bool { return late <= latestSend }

// latestSend is how late calls may be sent at p99 before the slice is the generator's.
const latestSend = 5 * time.Millisecond
