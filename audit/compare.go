package audit

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Runs made one after the other of the very same program were seen to differ by half; a repeat or two shows how much these do.
const (
	farSingle = 2   // a ratio that single runs show
	farRounds = 1.5 // one that rounds show whose ranges lie apart
	nearby    = 1.1 // a difference of a few per cent
)

// conclusions holds what a table's authors conclude against their own rows.
func conclusions(s *subject) (out []Claim) {
	for _, c := range s.claimed {
		a, b := s.find(c.Of), s.find(c.To)
		if a == nil || b == nil {
			continue
		}
		name, _ := canonical(c.Figure, 0)
		x, okA := a.num(name)
		y, okB := b.num(name)
		if !okA || !okB || y <= 0 || x <= 0 {
			continue
		}
		ratio := x / y
		computed := times(ratio)
		if !rounded(ratio, c.Ratio) {
			out = append(out, claim("conclusion", c.Text, Fails, times(c.Ratio), computed, "%s ÷ %s by the table's own rows", figure(name, x), figure(name, y)))
			continue
		}
		v, why := compared(a, b, name, ratio)
		if v != Holds {
			computed = "not shown"
		}
		out = append(out, claim("conclusion", c.Text, v, times(c.Ratio), computed, "%s", why))
	}
	return out
}

// rounded reports whether a ratio may have been printed as stated: with one decimal, or to half a per cent.
func rounded(ratio, stated float64) bool {
	return math.Abs(ratio-stated) <= .0501 || math.Abs(ratio/stated-1) <= .005
}

func figure(name string, v float64) string {
	if strings.HasSuffix(name, "_us") {
		return took(v)
	}
	if strings.HasSuffix(name, "_per_s") {
		return perSecond(v)
	}
	return number(v)
}

// compared judges whether two rows' difference is shown.
func compared(a, b *row, name string, ratio float64) (Verdict, string) {
	inA, _, okA := a.inFlight()
	inB, _, okB := b.inFlight()
	if okA && okB && a.callers() == b.callers() && max(inA, inB) > 1.5*min(inA, inB) {
		return Fails, fmt.Sprintf("%s had %s calls in flight, %s %s, though both state %s users: they were not called alike", a.Label, number(inA), b.Label, number(inB), number(a.callers()))
	}
	far := max(ratio, 1/ratio)
	loA, hiA, n := span(a, name)
	loB, hiB, m := span(b, name)
	switch {
	case n > 1 && m > 1 && loA <= hiB && loB <= hiA:
		return Fails, fmt.Sprintf("their runs overlap: %s to %s and %s to %s", figure(name, loA), figure(name, hiA), figure(name, loB), figure(name, hiB))
	case n > 1 && m > 1 && far >= farRounds:
		return Holds, fmt.Sprintf("their runs lie apart: %s to %s and %s to %s", figure(name, loA), figure(name, hiA), figure(name, loB), figure(name, hiB))
	case n > 1 && m > 1:
		return Unknown, fmt.Sprintf("%d and %d runs, one contender after the other: they lie apart, but drift between turns can do that; nothing was interleaved, and there is no interval", n, m)
	case far >= farSingle:
		return Holds, "one run each and no interval, but they lie further apart than turns of one program do"
	case far <= nearby:
		return Unknown, fmt.Sprintf("%s %% from one run each: nothing says how much two runs of the same differ", number(100*(far-1)))
	}
	return Unknown, "one run each, one after the other, and no interval"
}

// spread says how far repeats of one row lie apart, or how wide the interval is that is printed around it.
func spread(s *subject) (out []Claim) {
	const close = .1
	for _, r := range s.rows {
		if r.load.Model != "" || s.judged || r.load.Order != "sequential" {
			continue
		}
		for _, name := range []string{"mean_us", "rate_per_s"} {
			v := r.value(name)
			if v <= 0 {
				continue
			}
			stated := figure(name, v)
			lo, hi, n := span(r, name)
			from, there := r.num("lo_us")
			to := r.Figures["hi_us"]
			switch {
			case n > 1:
				out = append(out, claim("spread", r.Label, maybe(hi <= lo*(1+close)), stated, fmt.Sprintf("%s to %s", figure(name, lo), figure(name, hi)),
					"%d repeats of it differ by %s; a smaller difference from something else is none that they show", n, percent(hi/lo-1)))
			case there && name == "mean_us":
				half := (to - from) / 2 / v
				out = append(out, claim("spread", r.Label, maybe(half <= close), stated, "± "+percent(half), "the printed interval goes from %s to %s", number(from)+" µs", number(to)+" µs"))
			default:
				out = append(out, claim("spread", r.Label, Unknown, stated, "", "one run: nothing says how much two of the same differ"))
			}
			break
		}
	}
	return out
}

// maybe is Holds where ok, and no failure otherwise.
func maybe(ok bool) Verdict {
	if ok {
		return Holds
	}
	return Unknown
}

// span is the range of a figure over a row's rounds.
func span(r *row, name string) (lo, hi float64, n int) {
	for _, run := range r.Runs {
		v, ok := run[name]
		if !ok {
			continue
		}
		if n == 0 || v < lo {
			lo = v
		}
		hi = max(hi, v)
		n++
	}
	return lo, hi, n
}

// order holds the rank of neighbours against their rounds or samples.
func order(s *subject) (out []Claim) {
	if s.judged {
		return nil
	}
	var together [][]*row
	for _, g := range s.groups() {
		out = append(out, samplesOf(g)...)
		together = append(together, alike(g)...)
	}
	for _, g := range together {
		out = append(out, neighbours(g)...)
	}
	return out
}

// neighbours judges each row's place before the next.
func neighbours(g []*row) (out []Claim) {
	name, ranked := rankedRows(g)
	for i := 1; i < len(ranked); i++ {
		a, b := ranked[i-1], ranked[i]
		x, y := a.value(name), b.value(name)
		if a.Of == b.Of || a.load.Order == "shuffled" {
			continue
		}
		title := a.Label + " before " + b.Label
		stated := fmt.Sprintf("%s before %s", figure(name, x), figure(name, y))
		if flips := tradePlaces(a, b, name); flips != "" {
			out = append(out, claim("order", title, Fails, stated, "they trade places", "%s", flips))
			continue
		}
		v, why := compared(a, b, name, x/y)
		if v == Fails && (len(a.Runs) < 2 || len(b.Runs) < 2) {
			v = Unknown // that they were not called alike is another claim's
		}
		computed := times(max(x/y, y/x))
		if v != Holds {
			computed += ", not shown"
		}
		out = append(out, claim("order", title, v, stated, computed, "%s", why))
	}
	return out
}

// value is a figure, or the median of its runs where the row states none.
func (r *row) value(name string) float64 {
	if v, ok := r.num(name); ok {
		return v
	}
	var all []float64
	for _, run := range r.Runs {
		if v, ok := run[name]; ok {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// rankedRows are rows of several contenders in the order of their rates, or of their times where there are no rates.
func rankedRows(g []*row) (name string, out []*row) {
	for _, name := range []string{"rate_per_s", "mean_us", "p50_us"} {
		out = slices.DeleteFunc(slices.Clone(g), func(r *row) bool { return r.value(name) == 0 })
		if len(out) < 2 {
			continue
		}
		slices.SortStableFunc(out, func(a, b *row) int {
			if name == "rate_per_s" {
				return cmpDown(a.value(name), b.value(name))
			}
			return cmpDown(b.value(name), a.value(name))
		})
		return name, out
	}
	return "", nil
}

// tradePlaces says in which rounds two rows stood the other way round.
func tradePlaces(a, b *row, name string) string {
	if len(a.Runs) != len(b.Runs) || len(a.Runs) < 2 {
		return ""
	}
	first, second := 0, 0
	for i := range a.Runs {
		x, okA := a.Runs[i][name]
		y, okB := b.Runs[i][name]
		if !okA || !okB {
			return ""
		}
		if (x > y) == (name == "rate_per_s") {
			first++
		} else {
			second++
		}
	}
	if first == 0 || second == 0 {
		return ""
	}
	return fmt.Sprintf("of %d runs %s leads in %d and %s in %d", first+second, a.Label, first, b.Label, second)
}

// samplesOf judges ratios to a baseline that were given sample by sample.
func samplesOf(g []*row) (out []Claim) {
	for _, r := range g {
		if len(r.ratios) < 2 {
			continue
		}
		lo, hi := slices.Min(r.ratios), slices.Max(r.ratios)
		stated := "a ratio of " + span2(lo, hi)
		switch {
		case lo == 1 && hi == 1:
			out = append(out, claim("order", r.Label, Unknown, stated, "", "printed with two decimals, %d times: no difference shown, nor that there is none", len(r.ratios)))
		case lo <= 1 && hi >= 1:
			out = append(out, claim("order", r.Label, Fails, stated, "it trades places with its baseline", "%d samples lie on both sides of 1", len(r.ratios)))
		default:
			out = append(out, claim("order", r.Label, Unknown, stated, "", "%d samples on one side of 1 in a %s order; an interval of 95 %% needs six", len(r.ratios), r.load.Order))
		}
	}
	return out
}

func span2(lo, hi float64) string {
	if lo == hi {
		return fmt.Sprintf("%.2f", lo)
	}
	return fmt.Sprintf("%.2f to %.2f", lo, hi)
}

// ranks holds a ranking against a repeat of the same code and method.
func ranks(s *subject) (out []Claim) {
	const moved = 3
	for _, again := range s.repeats {
		name, here := rankedRows(s.rows)
		_, there := rankedRows(again.rows)
		if len(here) < 2 {
			continue
		}
		place := func(rows []*row, of string) int {
			return slices.IndexFunc(rows, func(r *row) bool { return r.Of == of }) + 1
		}
		kept := 0
		for i, r := range here {
			now, then := i+1, place(there, r.Of)
			if then == 0 {
				continue
			}
			if now == then {
				kept++
			}
			if d := now - then; d >= moved || -d >= moved {
				out = append(out, claim("rank", r.Label, Fails, fmt.Sprintf("rank %d", now), fmt.Sprintf("rank %d in %s", then, again.name),
					"%s here, %s there, with the same code and method: the rank is a property of the host as well", figure(name, r.value(name)), figure(name, there[then-1].value(name))))
			}
		}
		out = append(out, claim("rank", "places kept", verdict(kept*2 >= len(here)), fmt.Sprintf("%d places", len(here)), fmt.Sprintf("%d are the same in %s", kept, again.name), "a ranking that another day or host does not repeat is not one of the contenders"))
	}
	return out
}
