package audit

import (
	"fmt"
	"math"
	"slices"
)

// agree is how far two figures that must be equal may lie apart: tables round, and ramps are not straight.
const agree = .05

// agreeParts is how far apart they may lie where an iteration's time is put together from its parts, before that says something.
const agreeParts = .15

// inFlight computes by Little's law how many users a closed row's rate and times need on average, over whatever its iterations
// spend their time on. ok is false where rate or time is not stated.
func (r *row) inFlight() (users float64, how string, ok bool) {
	rate, stated := r.num("rate_per_s")
	mean, there := r.num("mean_us")
	if !stated || !there || rate <= 0 {
		return 0, "", false
	}
	made, counted := r.requests()
	pause := 0.0
	if r.load.Pause != nil {
		pause = *r.load.Pause * 1000
	}
	iterations := 0.0
	if counted > 0 {
		iterations = rate / counted
	}
	if session, n, there := r.part("session"); there && iterations > 0 {
		users = iterations * (pause + n*session) / 1e6
		return users, fmt.Sprintf("%s iterations/s × (%s pause + %s sessions of %s)", number(iterations), took(pause), number(n), took(session)), true
	}
	if pause > 0 && iterations > 0 && len(r.load.LatencyOf) == 0 {
		users = iterations * (pause + made*mean) / 1e6
		return users, fmt.Sprintf("%s iterations/s × (%s pause + %s requests of %s)", number(iterations), took(pause), number(made), took(mean)), true
	}
	if pause > 0 || len(r.load.LatencyOf) > 0 {
		return 0, "", false
	}
	return rate * mean / 1e6, fmt.Sprintf("%s × %s", perSecond(rate), took(mean)), true
}

// users holds the stated number of callers against Little's law.
func users(s *subject) (out []Claim) {
	for _, r := range s.rows {
		n := r.callers()
		mean, how, ok := r.inFlight()
		if n <= 0 || !ok {
			continue
		}
		stated := persons(n)
		if r.load.Model == "" {
			v := Unknown
			if mean > n*(1+agree) {
				v = Fails
			} else if mean >= n*(1-agree) {
				v = Holds
			}
			out = append(out, claim("users", r.Label, v, "at most "+persons(n), persons(mean)+" on average", "in flight = %s = %s; stages, which would explain fewer than the most, are not stated", how, number(mean)))
			continue
		}
		if r.load.Model != "closed" {
			if mean > n*(1+agree) {
				out = append(out, claim("users", r.Label, Fails, "at most "+number(n)+" in flight", number(mean)+" in flight", "in flight = %s = %s, more than there may be", how, number(mean)))
			}
			continue
		}
		if r.made {
			out = append(out, claim("users", r.Label, Unknown, stated, "", "the harness computes the mean from rate and users, so the three can't disagree"))
			continue
		}
		share := r.profile()
		computed := mean / share
		why := fmt.Sprintf("Little's law: in flight = rate × time: %s = %s", how, number(mean))
		if share < .995 {
			why += fmt.Sprintf("; over the ramps %s users are %s on average", number(n), number(n*share))
		}
		recorded := 0.0
		for _, x := range r.Runs {
			recorded = max(recorded, x["recorded_users"])
		}
		off := math.Abs(computed/n - 1)
		v := verdict(off <= agree)
		switch {
		case v == Fails && off <= agreeParts && r.paused() > 0:
			v = Unknown
			why += "; timers of sessions need not cover all that an iteration does"
		case v == Fails:
			why += r.missing(n, computed)
		}
		if recorded > 0 && v == Fails {
			why += fmt.Sprintf("; the raw files record %s", number(recorded))
		}
		out = append(out, claim("users", r.Label, v, stated, persons(computed), "%s", why))
	}
	return out
}

func persons(n float64) string {
	if n == 1 {
		return "1 user"
	}
	return number(n) + " users"
}

// missing says what a number of users that can't be right may come from.
func (r *row) missing(stated, computed float64) string {
	switch {
	case computed > stated:
		return "; more than there were, so mean or rate is not of all calls"
	case r.load.Pause == nil:
		return "; the others paused, did something else, or were not there"
	}
	if r.paused() == 0 {
		return "; the times leave something out, such as a stop that no call's time holds"
	}
	return "; no pause is left that could hide the others"
}

// offered holds what was sent against what was to be sent.
func offered(s *subject) (out []Claim) {
	for _, r := range s.rows {
		n, sent := r.num("count")
		if lost, ok := r.num("dropped"); ok && r.load.Model == "open" {
			out = append(out, claim("offered", r.Label, verdict(lost == 0), "calls came at a rate", fmt.Sprintf("%s of %s were never sent", number(lost), number(n+lost)),
				"no free user was left for them; what they would have waited is in no latency"))
			continue
		}
		rate, ok := r.num("offered_per_s")
		took := r.Figures["elapsed_s"]
		if !ok || !sent || took <= 0 || s.judged {
			continue
		}
		out = append(out, claim("offered", r.Label, verdict(n/took >= rate*(1-agree)), perSecond(rate)+" offered", perSecond(n/took)+" sent", "%s calls over %s s", number(n), number(took)))
	}
	return out
}

// sameLoad holds the rows of one comparison against each other: who states the same users must have had as many at work.
func sameLoad(s *subject) (out []Claim) {
	for _, g := range s.groups() {
		var first *row
		var least float64
		for _, r := range g {
			mean, _, ok := r.inFlight()
			if !ok || r.load.Model != "closed" {
				continue
			}
			if computed := mean / r.profile(); first == nil || computed < least {
				first, least = r, computed
			}
		}
		if first == nil {
			continue
		}
		for _, r := range g {
			mean, how, ok := r.inFlight()
			if r == first || !ok || r.load.Model != "closed" || r.callers() != first.callers() || r.Of == first.Of {
				continue
			}
			computed := mean / r.profile()
			v := verdict(computed <= 1.5*least)
			why := fmt.Sprintf("in flight: %s = %s; of %s %s. ", how, number(mean), first.Label, number(least*first.profile()))
			if v == Fails {
				why += "They were not called alike, so neither rates nor times rank them"
			} else {
				why += "They were called alike"
			}
			out = append(out, claim("same load", r.Label, v, fmt.Sprintf("%s users as %s had", number(r.callers()), first.Label),
				fmt.Sprintf("%s and %s in flight", number(mean), number(least*first.profile())), "%s", why))
		}
	}
	return out
}

// deliberate is what one iteration waits on purpose, µs.
func (r *row) deliberate() float64 {
	all := 0.0
	if r.load.Pause != nil {
		all = *r.load.Pause
	}
	for part, ms := range r.load.Delays {
		all += ms * r.load.Parts[part]
	}
	return all * 1000
}

// ceiling holds a rate against what the harness' own pauses and delays leave room for.
func ceiling(s *subject) (out []Claim) {
	const close = .8
	for _, r := range s.rows {
		fixed := r.deliberate()
		made, counted := r.requests()
		rate, stated := r.num("rate_per_s")
		mean, _, ok := r.inFlight()
		if fixed <= 0 || counted <= 0 || !stated || !ok || r.load.Model != "closed" {
			continue
		}
		most := mean / (fixed / 1e6) * counted
		share := rate / most
		why := fmt.Sprintf("%s users at work, each iteration waits %s on purpose: a server that costs nothing gives %s/%s × %s requests = %s",
			number(mean), took(fixed), number(mean), took(fixed), number(counted), perSecond(most))
		if made != counted {
			why += fmt.Sprintf(" (of %s that it makes)", number(made))
		}
		if share >= close {
			why += "; what is left says little of the server"
		}
		out = append(out, claim("ceiling", r.Label, verdict(share < close), perSecond(rate)+" is the server's", percent(share)+" of the harness' ceiling", "%s", why))
	}
	return out
}

// units holds ratios of rates against ratios of completed iterations, where an iteration of one row makes more requests than one of
// another.
func units(s *subject) (out []Claim) {
	for _, g := range s.groups() {
		first := g[0]
		_, each := first.requests()
		rate, ok := first.num("rate_per_s")
		if each <= 0 || !ok {
			continue
		}
		for _, r := range g[1:] {
			_, counted := r.requests()
			other, ok := r.num("rate_per_s")
			if counted <= 0 || counted == each || !ok || other <= 0 {
				continue
			}
			stated, computed := rate/other, rate/each/(other/counted)
			out = append(out, claim("units", r.Label, verdict(math.Abs(computed/stated-1) <= agree), fmt.Sprintf("%s does %s the work", first.Label, times(stated)), times(computed),
				"an iteration of %s makes %s requests, one of %s %s: %s against %s iterations/s", first.Label, number(each), r.Label, number(counted), number(rate/each), number(other/counted)))
		}
	}
	return out
}

// uncounted holds the order of rates against that of all requests, where a rate leaves some out.
func uncounted(s *subject) (out []Claim) {
	for _, g := range s.groups() {
		byRate := slices.Clone(g)
		byRate = slices.DeleteFunc(byRate, func(r *row) bool {
			_, ok := r.num("rate_per_s")
			return !ok || r.load.Counted == 0 || r.load.Requests[r.Of] == 0
		})
		slices.SortStableFunc(byRate, func(a, b *row) int { return cmpDown(a.Figures["rate_per_s"], b.Figures["rate_per_s"]) })
		for i := 1; i < len(byRate); i++ {
			a, b := byRate[i-1], byRate[i]
			all := func(r *row) float64 {
				made, counted := r.requests()
				return r.Figures["rate_per_s"] * made / counted
			}
			if all(b) <= all(a)*(1+agree) {
				continue
			}
			madeA, counted := a.requests()
			madeB, _ := b.requests()
			out = append(out, claim("uncounted", a.Label+" before "+b.Label, Fails, fmt.Sprintf("%s answers more: %s against %s", a.Label, perSecond(a.Figures["rate_per_s"]), perSecond(b.Figures["rate_per_s"])),
				fmt.Sprintf("%s against %s of all requests", perSecond(all(a)), perSecond(all(b))),
				"the rate counts %s requests of an iteration, but %s answers %s and %s %s", number(counted), a.Label, number(madeA), b.Label, number(madeB)))
		}
	}
	return out
}

// operations says how much of a rate is the work that was asked for.
func operations(s *subject) (out []Claim) {
	for _, r := range s.rows {
		_, counted := r.requests()
		rate, ok := r.num("rate_per_s")
		if !ok || counted <= 0 || r.load.Operations <= 0 {
			continue
		}
		out = append(out, claim("operations", r.Label, verdict(r.load.Operations/counted >= .9), perSecond(rate)+" are calls", perSecond(rate*r.load.Operations/counted)+" are",
			"of %s counted requests in an iteration %s are the calls that it is about; the others begin, announce and end sessions", number(counted), number(r.load.Operations)))
	}
	return out
}

func cmpDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}
