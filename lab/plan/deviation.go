package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Deviation is one thing that ran differently from the method a result claims.
type Deviation struct {
	What    string `json:"what"`    // the setting's name
	Claimed string `json:"claimed"` // as the claimed method has it
	Ran     string `json:"ran"`     // as it ran
}

// Method returns the settings of the method that p's result claims: another's where the plan says so, else its own.
func (p Plan) Method() Settings { return p.Settings.With(p.Claims) }

// Deviations compares the settings that ran with those claimed, and adds what is a deviation from toll's own method
// whoever claims it: a fixed order.
func Deviations(claimed, ran Settings) []Deviation {
	out := []Deviation{}
	add := func(what string, c, r any) {
		if cs, rs := fmt.Sprint(c), fmt.Sprint(r); cs != rs {
			out = append(out, Deviation{what, cs, rs})
		}
	}
	add("model", claimed.Model, ran.Model)
	if ran.Order == Fixed {
		out = append(out, Deviation{"order", Shuffled, Fixed})
	} else {
		add("order", claimed.Order, ran.Order)
	}
	add("concurrency", claimed.Concurrency, ran.Concurrency)
	add("rounds", claimed.Rounds, ran.Rounds)
	add("blocks", claimed.Blocks, ran.Blocks)
	add("calls", claimed.Calls, ran.Calls)
	add("calls_each", claimed.CallsEach, ran.CallsEach)
	add("duration", time.Duration(claimed.Duration), time.Duration(ran.Duration))
	add("warmup", claimed.Warmup, ran.Warmup)
	add("warmup_time", time.Duration(claimed.WarmupTime), time.Duration(ran.WarmupTime))
	add("rate", claimed.Rate, ran.Rate)
	add("shares", claimed.Shares, ran.Shares)
	add("stages", claimed.Stages, ran.Stages)
	add("arrivals", cmp.Or(claimed.Arrivals, Even), cmp.Or(ran.Arrivals, Even))
	add("knee", cmp.Or(claimed.Knee, "none"), cmp.Or(ran.Knee, "none"))
	add("in_flight", claimed.InFlight, ran.InFlight)
	add("think", time.Duration(claimed.Think), time.Duration(ran.Think))
	add("limits", claimed.Limits, ran.Limits)
	add("backends", quotas(claimed.Backends), quotas(ran.Backends))
	add("semantics", cmp.Or(claimed.Semantics, Strict), cmp.Or(ran.Semantics, Strict))
	add("hop", cmp.Or(claimed.Hop, "loopback"), cmp.Or(ran.Hop, "loopback"))
	add("processors", cmp.Or(claimed.Processors, Any), cmp.Or(ran.Processors, Any))
	add("idle", cmp.Or(claimed.Idle, Any), cmp.Or(ran.Idle, Any))
	add("timeout", time.Duration(claimed.Timeout), time.Duration(ran.Timeout))
	return out
}

// quotas says what limits backends, by name.
func quotas(all map[string]Quota) string {
	if len(all) == 0 {
		return "no limits"
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+" "+all[name].String())
	}
	return strings.Join(out, ", ")
}

// Interrupted is the deviation of a run that ended before its last round.
func Interrupted(done, total int) Deviation {
	return Deviation{"completed", fmt.Sprintf("%d rounds", total), fmt.Sprintf("interrupted after %d", done)}
}
