package audit

import (
	"fmt"
	"math"
	"strings"
)

// network holds a time against the round trips that it can't do without.
func network(s *subject) (out []Claim) {
	const most = .5
	for _, r := range s.rows {
		v, name, ok := r.median()
		if !ok || v <= 0 {
			continue
		}
		if r.load.RTT[0] > 0 {
			trips := 1.0
			on := "a request"
			if r.load.Fresh {
				trips, on = 2, "a connection and a request"
			}
			way, share := trips*r.load.RTT[0]*1000, 0.0
			share = way / v
			why := fmt.Sprintf("%s take %s round trips of %s to %s ms", on, number(trips), number(r.load.RTT[0]), number(r.load.RTT[1]))
			if trips == 1 {
				why = fmt.Sprintf("%s takes a round trip of %s to %s ms", on, number(r.load.RTT[0]), number(r.load.RTT[1]))
			}
			if share >= most && r.load.Cores > 0 {
				if best := s.best(r.Of); best > 0 {
					why += fmt.Sprintf("; at %s, the highest rate here, %s can give each at most %s", perSecond(best), cores(r.load.Cores), took(r.load.Cores/best*1e6))
				}
			}
			out = append(out, claim("network", r.Label, verdict(share < most), fmt.Sprintf("a call takes %s (%s)", took(v), plain(name)),
				fmt.Sprintf("%s of it are the way", took(min(way, v))), "%s", why))
		}
		if part := r.Parts["connect"]; r.load.Fresh && part["mean_us"] > 0 {
			share := part["mean_us"] / v
			out = append(out, claim("connect", r.Label, verdict(share < .2), fmt.Sprintf("a call takes %s (%s)", took(v), plain(name)), fmt.Sprintf("%s of it connect", percent(min(share, 1))),
				"each call makes a connection of its own, which took %s on average", took(part["mean_us"])))
		}
	}
	return out
}

// best is the highest rate of a contender's rows.
func (s *subject) best(of string) float64 {
	most := 0.0
	for _, r := range s.rows {
		if r.Of == of {
			most = max(most, r.Figures["rate_per_s"])
		}
	}
	return most
}

// plain is a figure's name without its unit.
func plain(name string) string { return strings.TrimSuffix(name, "_us") }

// waiting holds a mean against the most that a call can have been at work: CPU time, the way, and what it waits on purpose.
func waiting(s *subject) (out []Claim) {
	const most = .25
	for _, r := range s.rows {
		mean, stated := r.num("mean_us")
		rate, also := r.num("rate_per_s")
		if !stated || !also || r.load.Model != "closed" || r.callers() <= 1 || mean <= 0 || rate <= 0 || r.made {
			continue
		}
		calls := rate * r.timed()
		work, of := r.load.Cores/calls*1e6, fmt.Sprintf("%s at %s can give each at most %%s", cores(r.load.Cores), perSecond(calls))
		if user, ok := r.num("cpu_user_ms"); ok && r.samples() > 0 {
			work = (user + r.Figures["cpu_system_ms"]) / r.samples() * 1000
			of = "a call used %s of CPU time"
		}
		if work <= 0 {
			continue
		}
		known := work
		why := fmt.Sprintf(of, took(work))
		if rtt := r.load.RTT[1] * 1000; rtt > 0 {
			if r.load.Fresh {
				rtt *= 2
			}
			known += rtt
			why += fmt.Sprintf(", the way takes at most %s", took(rtt))
		}
		if made, _ := r.requests(); made > 0 && len(r.load.LatencyOf) == 0 {
			if d := (r.deliberate() - r.paused()) / made; d > 0 {
				known += d
				why += fmt.Sprintf(", deliberate delays %s", took(d))
			}
		}
		rest := max(mean-known, 0)
		v := verdict(rest/mean < most)
		if v == Fails && r.load.Backend {
			v = Unknown
			why += fmt.Sprintf(": at least %s of %s is waiting, for its turn or for what stands behind the server; nothing parts the two", took(rest), took(mean))
		} else if v == Fails {
			why += fmt.Sprintf(": at least %s of %s is waiting, for its turn or for something behind the server", took(rest), took(mean))
			if n := r.callers() * r.profile(); math.Abs(rate*mean/1e6/n-1) <= agree {
				why += fmt.Sprintf("; %s users ÷ %s is %s, so the time says nothing that the rate does not", number(n), perSecond(rate), took(n/rate*1e6))
			}
		}
		out = append(out, claim("waiting", r.Label, v, "a call takes "+took(mean), percent(rest/mean)+" of it is waiting", "%s", why))
	}
	return out
}

// timed is the share of the counted requests that the row's times are of.
func (r *row) timed() float64 {
	_, counted := r.requests()
	n := 0.0
	for _, part := range r.load.LatencyOf {
		n += r.load.Parts[part]
	}
	if n == 0 || counted == 0 {
		return 1
	}
	return n / counted
}

func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return number(n) + " cores"
}

// paused is the pause alone, µs.
func (r *row) paused() float64 {
	if r.load.Pause == nil {
		return 0
	}
	return *r.load.Pause * 1000
}

// plateau finds levels of concurrency at which more callers only wait longer.
func plateau(s *subject) (out []Claim) {
	for _, r := range s.rows {
		rate, stated := r.num("rate_per_s")
		v, name, ok := r.middle()
		if !stated || !ok || r.load.Model != "closed" || r.callers() <= 1 || rate <= 0 {
			continue
		}
		below := s.levelBelow(r)
		if below == nil {
			continue
		}
		n, had := r.callers(), below.callers()
		queue := n / rate * 1e6
		if rate/below.Figures["rate_per_s"] > 1.2 || math.Abs(v/queue-1) > .2 {
			continue
		}
		out = append(out, claim("plateau", r.Label, Fails, fmt.Sprintf("a call takes %s (%s)", took(v), plain(name)), fmt.Sprintf("%s = users ÷ rate", took(queue)),
			"from %s to %s users the rate went from %s to %s: beyond the knee a time says how many wait, not what a call takes", number(had), number(n), perSecond(below.Figures["rate_per_s"]), perSecond(rate)))
	}
	return out
}

// levelBelow is the same contender's row with the next fewer callers.
func (s *subject) levelBelow(r *row) *row {
	var out *row
	for _, o := range s.rows {
		_, stated := o.num("rate_per_s")
		if o.Of == r.Of && o.group == r.group && stated && o.callers() < r.callers() && o.callers() > 0 && (out == nil || o.callers() > out.callers()) {
			out = o
		}
	}
	return out
}

// A slow is the share of a row's mean that parts make up which wait on purpose.
type slow struct {
	part        string
	mean, times float64
	made, all   float64 // requests of an iteration, and their mean
}

// slow returns the row's part that waits on purpose.
func (r *row) slow() (slow, bool) {
	all, stated := r.num("mean_us")
	made, _ := r.requests()
	if !stated || made <= 1 || len(r.load.LatencyOf) > 0 {
		return slow{}, false
	}
	for part, ms := range r.load.Delays { // one at most, in what is published
		mean, n, ok := r.part(part)
		if !ok {
			mean, n = ms*1000, r.load.Parts[part]
		}
		if n > 0 && n < made {
			return slow{part, mean, n, made, all}, true
		}
	}
	return slow{}, false
}

// delay holds a mean against the share of it that one deliberate delay makes up.
func delay(s *subject) (out []Claim) {
	for _, r := range s.rows {
		d, ok := r.slow()
		if !ok {
			continue
		}
		share := d.times * d.mean / (d.made * d.all)
		without := (d.made*d.all - d.times*d.mean) / (d.made - d.times)
		out = append(out, claim("delay", r.Label, verdict(share < .5), "a request takes "+took(d.all), fmt.Sprintf("%s without %s", took(max(without, 0)), d.part),
			"%s waits on purpose: %s request of %s, but %s of the mean", d.part, number(d.times), number(d.made), percent(min(share, 1))))
	}
	return out
}

// overshoot holds the lead of one row over the next against what its deliberate delay contributed.
func overshoot(s *subject) (out []Claim) {
	for _, g := range s.groups() {
		for i := 1; i < len(g); i++ {
			a, b := g[i-1], g[i]
			da, okA := a.slow()
			db, okB := b.slow()
			if !okA || !okB || da.made != db.made || math.Abs(da.all/db.all-1) > .1 || da.all == db.all {
				continue
			}
			lead := db.all - da.all
			share := da.times * (db.mean - da.mean) / da.made / lead
			if share < .5 {
				continue
			}
			out = append(out, claim("overshoot", a.Label+" and "+b.Label, Fails, fmt.Sprintf("they differ by %s a request", took(math.Abs(lead))), percent(min(share, 1))+" of it is the delay",
				"the deliberate delay of %s took %s and %s; how late a timer fires is no cost of a call", da.part, took(da.mean), took(db.mean)))
		}
	}
	return out
}

// cpuLimit holds a CPU share against the limit that is stated.
func cpuLimit(s *subject) (out []Claim) {
	for _, r := range s.rows {
		used, stated := r.num("cpu_percent")
		if !stated || r.load.Cores <= 0 {
			continue
		}
		over := used / (100 * r.load.Cores)
		out = append(out, claim("cpu limit", r.Label, verdict(over <= 1+agree), "at most "+cores(r.load.Cores), number(used/100)+" cores on average", "%s %% of one core is %s of the limit", number(used), percent(over)))
	}
	return out
}
