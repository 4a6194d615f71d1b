package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How a run can end.
const (
	Complete = "complete" // every slice of every worker is here, and all sums match
	Degraded = "degraded" // a worker was lost; see OnLoss
	Stopped  = "stopped"  // on demand
	Refused  = "refused"  // what arrived does not add up
)

// conclude ends the run when there is nothing more to wait for.
func (c *Coordinator) conclude(now time.Duration) []Action {
	if c.over || !c.started {
		return nil
	}
	for _, m := range c.order {
		if !m.complete && !m.lost {
			// After a refusal nothing more is waited for than that the others have stopped.
			if c.refused == nil || rank(m.phase) < rank(Done) && !m.silent {
				return nil
			}
		}
	}
	c.advance(now)
	c.over = true
	return []Action{c.send(Message{Bye: c.Verdict().String()})}
}

// A Verdict is how a run ended.
type Verdict struct {
	Word   string // Complete | Degraded | Stopped | Refused
	Detail string
}

// String returns word and detail.
func (v Verdict) String() string {
	if v.Detail == "" {
		return v.Word
	}
	return v.Word + ": " + v.Detail
}

// Verdict is what can be said of the run so far.
func (c *Coordinator) Verdict() Verdict {
	if c.refused != nil {
		return Verdict{Refused, c.refused.Error()}
	}
	var lost []string
	for _, m := range slices.SortedStableFunc(slices.Values(c.order), func(a, b *member) int { return cmp.Compare(a.since, b.since) }) {
		if m.lost {
			lost = append(lost, fmt.Sprintf("worker %s lost at %s", m.id, seconds(m.since)))
		} else if m.short {
			lost = append(lost, fmt.Sprintf("worker %s stopped at %s (%s)", m.id, seconds(m.since), m.why))
		}
	}
	switch {
	case len(lost) > 0:
		return Verdict{Degraded, strings.Join(lost, ", ")}
	case c.stopping != "":
		return Verdict{Stopped, c.stopping}
	case c.mark < len(c.leg.Times):
		return Verdict{Refused, fmt.Sprintf("%d of %d slices are merged", c.mark, len(c.leg.Times))}
	}
	return Verdict{Complete, ""}
}

// seconds writes a time as people do who look at a run.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func signed(d time.Duration) string { return fmt.Sprintf("%+.3f s", d.Seconds()) }
