package result

import (
	"fmt"
	"math"

	"toll/lab/plan"
	"toll/lab/stats"
)

// What a knee's ratio divides: the time per call at the knee, so that below 1 is better as it is in every other ratio.
const KneeTime = "time_per_call_at_the_knee"

// How a stretch of a knee came out.
const (
	Holds   = "holds"
	Misses  = "misses"
	Clients = "client" // it missed while the generator was late: it says nothing of the contender
)

// How a search ended, beside what stats.Search says: the client could not send what the next stretch asked for; the run ended
// or the contender did.
const (
	ClientBoundEnd = "client-bound"
	StoppedEnd     = stats.Stopped
)

// A Knee is the highest rate at which a quantile of the response time holds a bound while nothing fails and nothing is
// dropped. Each block of the row is one search for it, by stretches on both sides; the row's other figures are those of the
// last stretch that held of each search.
type Knee struct {
	Bound    string       `json:"bound"`    // such as p99<5ms
	Rate     *float64     `json:"per_s"`    // the Hodges–Lehmann estimate over the searches that found both sides; null when fewer than half did
	Lo       *float64     `json:"lo"`       // 95 %, Wilcoxon; null with fewer than six such searches
	Hi       *float64     `json:"hi"`       //
	AtLeast  *float64     `json:"at_least"` // where most searches ended before a rate missed: the highest rate that held
	Searches []KneeSearch `json:"searches"`
}

// A KneeSearch is one search for the knee.
type KneeSearch struct {
	Round     int           `json:"round"`
	FromAbove bool          `json:"from_above"` // it began above where the knee was expected
	End       string        `json:"end"`        // settled | unsettled | client-bound | above | below | stopped
	Held      *float64      `json:"held_per_s"` // the highest rate that held at the end, tried twice when settled
	Missed    *float64      `json:"missed_per_s"`
	Stretches []KneeStretch `json:"stretches"`
}

// A KneeStretch is one rate, held for a time. Its first part, which lets queues come to what they are at that rate, is in no
// figure but failed and dropped.
type KneeStretch struct {
	Rate     float64  `json:"rate_per_s"`
	Outcome  string   `json:"outcome"` // holds | misses | client
	OK       int64    `json:"ok"`
	Failed   int64    `json:"failed"`
	Dropped  int64    `json:"dropped"`
	P50      *float64 `json:"p50_us"`
	Bounded  *float64 `json:"bounded_us"`      // the quantile that the bound is on, from the intended start
	Service  *float64 `json:"service_us"`      // the same from the send
	Held     int      `json:"spells_held"`     // parts of its time in which the bound held
	Over     int      `json:"spells_over"`     // parts in which it did not; the others say nothing, because the client was late
	Late     *float64 `json:"lateness_p99_us"` // of the sends
	ClientOf float64  `json:"client_share"`    // of the generator's cores
	ElapsedS float64  `json:"elapsed_s"`       // timed
}

// Spells is into how many parts a stretch's time is divided. Telling spells are most of them.
const (
	Spells  = 5
	telling = 3
)

// Telling reports whether enough of its spells say something.
func (x *KneeStretch) Telling() bool { return x.Held+x.Over >= telling }

// Holds reports whether the bound held: in most of the spells that say something, with nothing failed.
func (x *KneeStretch) Holds() bool {
	return x.Failed == 0 && x.Bounded != nil && x.Telling() && x.Held > x.Over
}

// Value returns the search's knee: between its two sides on a logarithmic scale. False without both.
func (s KneeSearch) Value() (float64, bool) {
	if s.Held == nil || s.Missed == nil || s.End != stats.Settled && s.End != stats.Unsettled {
		return 0, false
	}
	return Round3(math.Sqrt(*s.Held * *s.Missed)), true
}

// values returns the logarithms of the knees that were found.
func (k *Knee) values() []float64 {
	var out []float64
	for _, s := range k.Searches {
		if v, ok := s.Value(); ok {
			out = append(out, math.Log(v))
		}
	}
	return out
}

// derived returns the knee with its estimate computed from the searches.
func (k *Knee) derived() *Knee {
	out := &Knee{Bound: k.Bound, Searches: k.Searches}
	found := k.values()
	if len(found) > 0 && 2*len(found) >= len(k.Searches) {
		out.Rate = Ptr(Round3(math.Exp(stats.HodgesLehmann(found))))
		if lo, hi, ok := stats.SignedRankInterval(found, Level); ok {
			out.Lo, out.Hi = Ptr(Round3(math.Exp(lo))), Ptr(Round3(math.Exp(hi)))
		}
		return out
	}
	for _, s := range k.Searches {
		if s.Held != nil && (out.AtLeast == nil || *s.Held > *out.AtLeast) {
			out.AtLeast = s.Held
		}
	}
	return out
}

// Sides counts the stretches well below and well above the knee, a twentieth at least, and those of them that came out against
// it: what missed below, what held above.
type Sides struct{ Below, MissedBelow, Above, HeldAbove, Disturbed int }

// wellOff is by which factor a stretch's rate differs from the knee to be well below or above.
const wellOff = 1.05

// Sides returns them; without an estimate only the disturbed ones are counted.
func (k *Knee) Sides() Sides {
	var out Sides
	for _, s := range k.Searches {
		for _, x := range s.Stretches {
			switch {
			case x.Outcome == Clients:
				out.Disturbed++
			case k.Rate == nil:
			case x.Rate < *k.Rate/wellOff:
				out.Below++
				if x.Outcome == Misses {
					out.MissedBelow++
				}
			case x.Rate > *k.Rate*wellOff:
				out.Above++
				if x.Outcome == Holds {
					out.HeldAbove++
				}
			}
		}
	}
	return out
}

// Approach returns the middle knee of the searches that came from below and of those that came from above: they differ where
// a contender that was overloaded takes time to recover. False without both.
func (k *Knee) Approach() (below, above float64, ok bool) {
	var from [2][]float64
	for _, s := range k.Searches {
		if v, found := s.Value(); found {
			i := 0
			if s.FromAbove {
				i = 1
			}
			from[i] = append(from[i], math.Log(v))
		}
	}
	if len(from[0]) < 2 || len(from[1]) < 2 {
		return 0, 0, false
	}
	return math.Exp(stats.HodgesLehmann(from[0])), math.Exp(stats.HodgesLehmann(from[1])), true
}

// Text returns what the searches found, in words.
func (k *Knee) Text() string {
	switch {
	case k.Rate != nil && k.Lo != nil:
		return fmt.Sprintf("%.0f/s (%.0f–%.0f)", *k.Rate, *k.Lo, *k.Hi)
	case k.Rate != nil:
		return fmt.Sprintf("%.0f/s, no interval", *k.Rate)
	case k.AtLeast != nil:
		return fmt.Sprintf("at least %.0f/s", *k.AtLeast)
	}
	return "none found"
}

// Level is what is compared of a row's block: its median, or the time per call at its knee.
func (r *Row) Level(b Block) *float64 {
	switch {
	case r.Knee == nil:
		return b.P50
	case b.Knee == nil || *b.Knee <= 0:
		return nil
	}
	return Ptr(1e6 / *b.Knee)
}

// least is a row's block's minimum; a knee has none of its own.
func (r *Row) least(b Block) *float64 {
	if r.Knee != nil {
		return r.Level(b)
	}
	return b.Min
}

// Inconsistent returns the first thing in the knee's searches that its bound or its own outcomes contradict; empty when they
// agree.
func (k *Knee) Inconsistent() string {
	if _, err := plan.ParseBound(k.Bound); err != nil {
		return err.Error()
	}
	for i, s := range k.Searches {
		for _, x := range s.Stretches {
			if holds := x.Holds(); holds != (x.Outcome == Holds) {
				return fmt.Sprintf("search %d: at %.0f/s the figures say that the bound holds: %v, the outcome is %q", i+1, x.Rate, holds, x.Outcome)
			}
		}
		if s.End != stats.Settled {
			continue
		}
		for _, side := range []struct {
			rate    *float64
			outcome string
		}{{s.Held, Holds}, {s.Missed, Misses}} {
			if n := s.count(side.rate, side.outcome); n < 2 {
				return fmt.Sprintf("search %d is settled, but of its stretches at the rate that %s only %d did", i+1, side.outcome, n)
			}
		}
	}
	again := k.derived()
	for _, v := range [][2]*float64{{k.Rate, again.Rate}, {k.Lo, again.Lo}, {k.Hi, again.Hi}, {k.AtLeast, again.AtLeast}} {
		if (v[0] == nil) != (v[1] == nil) || v[0] != nil && math.Abs(*v[0]-*v[1]) > 1e-5**v[1] {
			return fmt.Sprintf("its searches give %s, the document says %s", again.Text(), k.Text())
		}
	}
	return ""
}

func (s KneeSearch) count(rate *float64, outcome string) int {
	n := 0
	for _, x := range s.Stretches {
		if rate != nil && x.Rate == *rate && x.Outcome == outcome {
			n++
		}
	}
	return n
}
