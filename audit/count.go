package audit

import (
	"fmt"
	"math"
	"strconv"
)

// count holds rate × duration against the number of calls, of a row and of each of its rounds.
func count(s *subject) (out []Claim) {
	const close = .01
	for _, r := range s.rows {
		if c, ok := r.counted("", r.Figures, close); ok {
			out = append(out, c)
		}
		for i, run := range r.Runs {
			if c, ok := r.counted(fmt.Sprintf(", round %d", i+1), run, close); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func (r *row) counted(which string, f map[string]float64, close float64) (Claim, bool) {
	rate, there := f["rate_per_s"]
	n, stated := f["count"]
	took := f["elapsed_s"]
	if took == 0 {
		took = r.seconds()
	}
	if !there || !stated || took <= 0 || n <= 0 {
		return Claim{}, false
	}
	ok, told := f["ok"] // some rates are of successes only
	fits := math.Abs(rate*took/n-1) <= close || told && math.Abs(rate*took-ok) <= close*ok
	return claim("count", r.Label+which, verdict(fits), number(n)+" calls", number(rate*took)+" calls",
		"%s over %s s is %s", perSecond(rate), number(took), number(rate*took)), true
}

// lengths looks at failures that are only replies of another length than the first one.
func lengths(s *subject) (out []Claim) {
	for _, r := range s.rows {
		failed, stated := r.num("failed")
		if r.load.Success != "length" || !stated || failed == 0 {
			continue
		}
		by, known := r.Failed["length"]
		if !known && len(r.Failed) == 0 {
			by, known = int64(failed), true
		}
		what := number(failed) + " calls failed"
		n := r.samples()
		switch {
		case !known || by == 0:
			continue
		case r.Failed["status"] >= by:
			out = append(out, claim("length", r.Label, Holds, what, "", "as many replies have a status that is no success as have another length"))
		default:
			if from, same, ok := countsUp(int64(n), by); ok {
				out = append(out, claim("length", r.Label, Fails, what, "none need have",
					"a reply of another length than the first was called failed. If replies hold a counter that begins at %d, then of %s numbers %d have as many digits as the first, and %d have not",
					from, number(n), same, int64(n)-same))
				continue
			}
			out = append(out, claim("length", r.Label, Unknown, what, "", "a reply of another length than the first was called failed; %d of them differ in nothing else that was looked at", by))
		}
	}
	return out
}

// countsUp looks for a counter behind failures by length: numbers from its first to its n-th, of which all but failed have as
// many digits as the first. The counter of a server that was just started is looked for, after ten calls by hand at most: from
// anywhere a counter could explain any number of failures.
func countsUp(n, failed int64) (from, same int64, ok bool) {
	if n <= 0 || failed <= 0 || failed >= n || n > 1e9 {
		return 0, 0, false
	}
	digits := func(v int64) int { return len(strconv.FormatInt(v, 10)) }
	for from = 0; from <= 10; from++ {
		limit := int64(math.Pow10(digits(from)))
		if same = min(limit-from, n); n-same == failed {
			return from, same, true
		}
	}
	return 0, 0, false
}

// unchecked is for zero failures that nobody looked for.
func unchecked(s *subject) (out []Claim) {
	for _, r := range s.rows {
		failed, stated := r.num("failed")
		share, also := r.num("error_percent")
		if r.load.Success != "status" && r.load.Success != "length" || !stated && !also && len(r.Failed) > 0 || failed+share > 0 {
			continue
		}
		if _, calls := r.num("count"); !stated && !also && !calls {
			continue
		}
		out = append(out, claim("unchecked", r.Label, Unknown, "no call failed", "", "a reply counts as a success by its %s; an error in a body is one too", r.load.Success))
	}
	return out
}
