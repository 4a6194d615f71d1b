package audit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// beyond is how many values must lie beyond a quantile.
const beyond = 10

// quantileOf reads the share in a name such as p99 or p999_us, 0 where it is none.
func quantileOf(name string) float64 {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(name, "_us"), "p")
	if !ok || len(digits) < 2 || strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0
	}
	v, err := strconv.ParseFloat("0."+digits, 64)
	if err != nil {
		return 0
	}
	return v
}

// A quantile is one that a row states.
type quantile struct {
	name  string
	share float64
	us    float64
}

func (r *row) quantiles() (out []quantile) {
	for name, v := range r.Figures {
		if q := quantileOf(name); q > 0 && strings.HasSuffix(name, "_us") {
			out = append(out, quantile{strings.TrimSuffix(name, "_us"), q, v})
		}
	}
	slices.SortFunc(out, func(a, b quantile) int { return cmpDown(b.share, a.share) })
	return out
}

// shape holds a distribution's figures in their order.
func shape(s *subject) (out []Claim) {
	for _, r := range s.rows {
		last, before := 0.0, "nothing"
		least, there := r.num("min_us")
		if there {
			last, before = least, "min"
		}
		all := r.quantiles()
		if most, there := r.num("max_us"); there {
			all = append(all, quantile{"max", 1, most})
		}
		if len(all) < 2 {
			continue
		}
		c := claim("shape", r.Label, Holds, "min ≤ quantiles ≤ max", "", "each is at least the one before it")
		for _, q := range all {
			if q.us < last*(1-1e-9) {
				c = claim("shape", r.Label, Fails, fmt.Sprintf("%s is %s", q.name, took(q.us)), fmt.Sprintf("%s is %s", before, took(last)), "a quantile can't lie below a smaller one")
				break
			}
			last, before = q.us, q.name
		}
		if mean, there := r.num("mean_us"); there && c.Verdict == Holds && (mean < least*(1-1e-9) || all[len(all)-1].name == "max" && mean > last*(1+1e-9)) {
			c = claim("shape", r.Label, Fails, "the mean is "+took(mean), "", "it lies outside the least and the largest value")
		}
		out = append(out, c)
	}
	return out
}

// samples holds a quantile against the number of values that lie beyond it.
func samples(s *subject) (out []Claim) {
	for _, r := range s.rows {
		n := r.samples()
		for _, q := range r.quantiles() {
			if q.share < .9 {
				continue
			}
			past := n * (1 - q.share)
			stated := fmt.Sprintf("%s is %s", q.name, took(q.us))
			name := r.Label + " " + q.name
			switch {
			case n == 0 && r.seconds()*r.Figures["rate_per_s"]*(1-q.share) >= beyond:
				out = append(out, claim("samples", name, Holds, stated, "", "%s for %s s are enough calls for it", perSecond(r.Figures["rate_per_s"]), number(r.seconds())))
			case n == 0:
				out = append(out, claim("samples", name, Unknown, stated, "", "how many calls stand behind it is not stated; it needs %s", number(beyond/(1-q.share))))
			default:
				out = append(out, claim("samples", name, verdict(past >= beyond-1e-6), stated, values(math.Round(past*10)/10),
					"of %s calls; with fewer than %d beyond it a quantile is the luck of a few", number(n), beyond))
			}
		}
	}
	return out
}

func values(n float64) string {
	if n == 1 {
		return "1 value lies beyond it"
	}
	return number(n) + " values lie beyond it"
}

// edge finds a quantile that lies where a deliberate delay begins.
func edge(s *subject) (out []Claim) {
	for _, r := range s.rows {
		d, ok := r.slow()
		if !ok {
			continue
		}
		share := d.times / d.made
		for _, q := range r.quantiles() {
			if math.Abs(1-share-q.share) > .005 {
				continue
			}
			out = append(out, claim("edge", r.Label+" "+q.name, Fails, fmt.Sprintf("%s is %s", q.name, took(q.us)), "between two populations",
				"%s of the requests wait on purpose in %s (%s each), so %s falls on the edge between those that do and those that don't", percent(share), d.part, took(d.mean), q.name))
		}
	}
	return out
}

// mixture finds quantiles that are means of quantiles, of parts or of rounds.
func mixture(s *subject) (out []Claim) {
	for _, r := range s.rows {
		for _, q := range r.quantiles() {
			if q.share == .5 && len(r.load.LatencyOf) == 0 {
				continue
			}
			if c, ok := r.meanOfParts(q); ok {
				out = append(out, c)
			} else if c, ok := r.meanOfRounds(q); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func (r *row) meanOfParts(q quantile) (Claim, bool) {
	var sum, weight, least, most float64
	var texts []string
	for _, part := range r.load.LatencyOf {
		v, there := r.Parts[part][q.name+"_us"]
		n := r.load.Parts[part]
		if !there || n <= 0 {
			return Claim{}, false
		}
		sum, weight = sum+n*v, weight+n
		if least == 0 || v < least {
			least = v
		}
		most = max(most, v)
		texts = append(texts, took(v))
	}
	if weight < 2 || most/least < 1.02 || !printedAs(sum/weight, q.us) {
		return Claim{}, false
	}
	return claim("mean of quantiles", r.Label+" "+q.name, Fails, fmt.Sprintf("%s is %s", q.name, took(q.us)), "it is a mean",
		"the mean of the parts' %s, %s, is %s; the %s of all lies somewhere between %s and %s", q.name, strings.Join(texts, ", "), took(sum/weight), q.name, took(least), took(most)), true
}

func (r *row) meanOfRounds(q quantile) (Claim, bool) {
	var sum, least, most float64
	for _, run := range r.Runs {
		v, there := run[q.name+"_us"]
		if !there {
			return Claim{}, false
		}
		sum += v
		if least == 0 || v < least {
			least = v
		}
		most = max(most, v)
	}
	n := float64(len(r.Runs))
	if n < 2 || most/least < 1.01 || !printedAs(sum/n, q.us) {
		return Claim{}, false
	}
	return claim("mean of quantiles", r.Label+" "+q.name, Fails, fmt.Sprintf("%s is %s", q.name, took(q.us)), "it is a mean",
		"the mean of the %s of %s rounds, %s to %s, is %s; a quantile of all calls is another figure", q.name, number(n), took(least), took(most), took(sum/n)), true
}

// printedAs reports whether one figure may be the other as printed.
func printedAs(exact, printed float64) bool { return math.Abs(exact/printed-1) < .001 }

// resolution finds times that are finer than the clock that printed them.
func resolution(s *subject) (out []Claim) {
	for _, r := range s.rows {
		v, there := r.num("p50_us")
		if !there || r.coarse == 0 || v >= 10*r.coarse {
			continue
		}
		out = append(out, claim("resolution", r.Label, Unknown, "p50 is "+took(v), fmt.Sprintf("%s to %s", took(max(v-r.coarse/2, 0)), took(v+r.coarse/2)), "times are printed in steps of %s", took(r.coarse)))
	}
	return out
}

// stall finds closed rows whose quantiles a single stop would have moved, had calls come at their times: a closed loop sends nothing
// while it waits.
func stall(s *subject) (out []Claim) {
	for _, r := range s.rows {
		most, there := r.num("max_us")
		rate, stated := r.num("rate_per_s")
		p99, also := r.num("p99_us")
		n := r.samples()
		if !there || !stated || !also || r.load.Model != "closed" || n <= 0 || s.judged {
			continue
		}
		hit := rate * most / 1e6 / n
		if hit < .01 || most < 10*p99 {
			continue
		}
		out = append(out, claim("stall", r.Label, Unknown, "p99 is "+took(p99), fmt.Sprintf("up to %s", took(max(most-.01*n/rate*1e6, 0))),
			"the longest call took %s. Had everything stood still so long, %s of the calls that were due at %s would have waited, but callers who wait send none", took(most), percent(min(hit, 1)), perSecond(rate)))
	}
	return out
}
