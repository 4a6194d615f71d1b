package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of a plan's load.
const (
	MaxRate     = 10_000_000 // arrivals a second
	maxStages   = 1000
	maxInFlight = 1_000_000
)

// withLoad returns s with what o gives of the load in place of its own. A duration replaces stages, and stages a duration.
func (s Settings) withLoad(o *Settings) Settings {
	if o.Duration != 0 && len(o.Stages) == 0 {
		s.Stages = nil
	}
	if len(o.Stages) > 0 {
		s.Stages, s.Duration = o.Stages, o.Duration
	}
	if o.Rate != 0 {
		s.Rate = o.Rate
	}
	if o.Shares != nil {
		s.Shares = o.Shares
	}
	if o.Arrivals != "" {
		s.Arrivals = o.Arrivals
	}
	if o.InFlight != 0 {
		s.InFlight = o.InFlight
	}
	if o.Think != 0 {
		s.Think = o.Think
	}
	s.CallsOnly = s.CallsOnly || o.CallsOnly
	if o.WarmupTime != 0 {
		s.WarmupTime = o.WarmupTime
	}
	if o.Knee != "" {
		s.Knee = o.Knee
	}
	return s
}

// Check returns what is wrong with settings that no file holds: the field's name and a sentence; empty when they are usable.
func (s Settings) Check() (field, msg string) { return s.check() }

// checkLoad returns the field and the sentence of the first thing that is wrong with the load.
func (s Settings) checkLoad() (field, msg string) {
	if len(s.Stages) > maxStages {
		return "stages", fmt.Sprintf("%d stages; expected at most %d", len(s.Stages), maxStages)
	}
	most, what := float64(maxConcurrency), "VUs"
	if s.Model == Open {
		most, what = MaxRate, "arrivals a second"
	}
	for i, st := range s.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		if st.Duration < 0 || time.Duration(st.Duration) > maxDuration {
			return at, fmt.Sprintf("stage %d lasts %v; expected 0 to %v", i+1, time.Duration(st.Duration), maxDuration)
		}
		if !(st.Target >= 0 && st.Target <= most) {
			return at, fmt.Sprintf("stage %d has the target %v; expected 0 to %.0f %s", i+1, st.Target, most, what)
		}
	}
	if len(s.Stages) > 0 {
		if s.Duration > 0 {
			return "duration", "both a duration and stages; the stages have durations of their own"
		}
		if d := Total(s.Stages); d <= 0 || d > maxDuration || Peak(s.Stages) <= 0 {
			return "stages", fmt.Sprintf("the stages take %v and reach %v; expected more than 0 of both, and at most %v", d, Peak(s.Stages), maxDuration)
		}
	}
	if s.Model == Open {
		return s.checkOpen()
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"rate", s.Rate != 0}, {"shares", s.Shares != nil}, {"arrivals", s.Arrivals != ""}, {"in_flight", s.InFlight != 0}, {"knee", s.Knee != ""}} {
		if f.set {
			return f.name, f.name + " is given, but the model is closed; expected model: open"
		}
	}
	return "", ""
}

// maxShare bounds how much of a capacity may be offered.
const maxShare = 100

// checkShares returns what is wrong with the shares: each phase has one.
func (p *Plan) checkShares() string {
	if p.Shares == nil {
		return ""
	}
	for phase, v := range p.Shares {
		switch {
		case !slices.Contains(p.Phases, phase):
			return fmt.Sprintf("shares: %q is none of the phases %s", phase, strings.Join(p.Phases, ", "))
		case !(v > 0 && v <= maxShare):
			return fmt.Sprintf("shares: %s is %v; expected more than 0 and at most %d times the capacity", phase, v, maxShare)
		}
	}
	for _, phase := range p.Phases {
		if _, ok := p.Shares[phase]; !ok {
			return fmt.Sprintf("shares: phase %s has none", phase)
		}
	}
	return ""
}

func (s Settings) checkOpen() (field, msg string) {
	switch {
	case s.Rate == 0 && len(s.Stages) == 0 && s.Shares == nil:
		return "model", "model is open; expected a rate and a duration, or stages"
	case s.Shares != nil && (s.Rate != 0 || len(s.Stages) > 0):
		return "shares", "shares of a capacity beside a rate or stages; expected one of them"
	case s.Rate != 0 && len(s.Stages) > 0:
		return "rate", "both a rate and stages; the stages' targets are rates"
	case !(s.Rate >= 0 && s.Rate <= MaxRate):
		return "rate", fmt.Sprintf("rate is %v; expected more than 0 and at most %d arrivals a second", s.Rate, MaxRate)
	case (s.Rate != 0 || s.Shares != nil) && s.Duration <= 0:
		return "duration", "the model is open; expected for how long the rate is held"
	case s.Arrivals != "" && s.Arrivals != Even && s.Arrivals != Poisson:
		return "arrivals", fmt.Sprintf("arrivals is %q; expected even or poisson", s.Arrivals)
	case s.InFlight < 0 || s.InFlight > maxInFlight:
		return "in_flight", fmt.Sprintf("in_flight is %d; expected 1 to %d", s.InFlight, maxInFlight)
	case s.Think != 0:
		return "think", "think is given, but the model is open: arrivals wait for nobody"
	case s.Knee != "" && len(s.Stages) > 0:
		return "knee", "both a knee and stages; a knee's stretches have one rate each, from rate on"
	case s.Knee != "":
		if _, err := ParseBound(s.Knee); err != nil {
			return "knee", err.Error()
		}
	}
	return "", ""
}
