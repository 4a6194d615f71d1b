package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"toll/fleet"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// An Opened is a plan that was read, and the opener of its target.
type Opened struct {
	Plan    plan.Plan
	Opener  lab.Opener
	Remarks []string // on what was found when the target was called
	RTT     *float64 // of connecting to it, ms
	Close   func() error
}

// A Lab is the generator of the lab: what one machine would put on a target, as far as the segment goes.
type Lab struct {
	Open func(ctx context.Context, text []byte) (*Opened, error) // reads a plan's text
	Raw  bool                                                    // keep every latency

	opened *Opened
	set    lab.Set
	leg    fleet.Leg
	load   load.Load
	vus    int
	crowd  load.Crowd
	pacer  *load.Pacer
}

// How long the parts of a calibration take.
const (
	calibrateNull  = 2 * time.Second
	calibrateFloor = 300 * time.Millisecond
	calibrateTimer = 500 * time.Millisecond
)

// jitterRate is how many timers a second are looked at.
const jitterRate = 200

// Prepare reads the plan, probes the target and starts the null target and the floor.
func (g *Lab) Prepare(ctx context.Context, a *fleet.Assignment) (err error) {
	if g.opened, err = g.Open(ctx, a.Text); err != nil {
		return err
	}
	s := g.opened.Plan.Settings
	g.leg = fleet.NewLeg(s)
	if len(g.leg.Times) != a.Slices {
		return fmt.Errorf("the plan has %d slices here and %d at the coordinator", len(g.leg.Times), a.Slices)
	}
	g.load = g.leg.Of(a.Segment)
	g.load.Think, g.load.Timeout, g.load.Raw = time.Duration(s.Think), time.Duration(s.Timeout), a.Raw
	g.vus = max(a.Segment.Share(s.Concurrency[0]), 1)
	if g.load.Open {
		g.load.InFlight = max(a.Segment.Share(s.MostInFlight()), 1)
		if s.Arrivals == plan.Poisson {
			g.load.Rand = rand.New(rand.NewPCG(uint64(a.Seed), 4+uint64(a.Segment.Number)))
		}
	} else {
		g.vus = max(a.Segment.Share(int(plan.Peak(g.leg.Stages)+.5)), 1)
	}
	phase := ""
	if len(g.opened.Plan.Phases) > 0 {
		phase = g.opened.Plan.Phases[0]
	}
	g.set, err = g.opened.Opener.Open(ctx, lab.Setting{Case: g.opened.Plan.Cases[0], Phase: phase, Concurrency: g.vus, Round: 1, Seed: a.Seed})
	for _, f := range g.set.Failures {
		err = errors.Join(err, fmt.Errorf("%s: %s", f.Contender, f.Reason))
	}
	if err == nil && g.target() == nil {
		err = errors.New("the plan has no target that can be called")
	}
	if err == nil {
		g.pacer, err = load.NewPacer()
	}
	return err
}

func (g *Lab) entry(role string) *lab.Entry {
	for i := range g.set.Entries {
		if g.set.Entries[i].Role == role {
			return &g.set.Entries[i]
		}
	}
	return nil
}

func (g *Lab) target() *lab.Entry { return g.entry("") }

// short puts a short load on an entry.
func (g *Lab) short(ctx context.Context, e *lab.Entry, vus int, l load.Load) (load.Outcome, error) {
	c, err := load.Gather(ctx, e.Target, vus)
	if err != nil {
		return load.Outcome{}, err
	}
	defer c.Close()
	l.Timeout, l.Wait = g.load.Timeout, g.pacer.Wait
	return c.Run(ctx, l)
}

// Calibrate puts the segment's own VUs on the null target, one on the floor, and looks at how late a timer is.
func (g *Lab) Calibrate(ctx context.Context) (fleet.Calibration, error) {
	t := g.target()
	k := fleet.Calibration{Client: t.Client, Unverified: t.Unverified, RTT: g.opened.RTT, Remarks: g.opened.Remarks}
	if t.TLS != nil {
		k.TLS = "server"
		if t.TLS.ClientVerified {
			k.TLS = "mutual"
		}
	}
	defer g.stop(ctx)
	if floor := g.entry(result.Floor); floor != nil {
		out, err := g.short(ctx, floor, 1, load.Load{Stages: plan.Hold(1, calibrateFloor)})
		if err != nil {
			return k, fmt.Errorf("the floor: %w", err)
		}
		k.Floor = time.Duration(out.Shard().Latency.Quantile(.5))
	}
	null := g.entry(result.Null)
	if null == nil {
		k.NoNull = "the plan leaves the null target out"
		return k, nil
	}
	late, err := g.short(ctx, null, 1, load.Load{Open: true, Stages: plan.Hold(jitterRate, calibrateTimer)})
	if err != nil {
		return k, fmt.Errorf("the null target: %w", err)
	}
	k.Late = time.Duration(late.Shard().Late.Quantile(.99))
	before := record.ReadCPU()
	out, err := g.short(ctx, null, g.vus, load.Load{Stages: plan.Hold(float64(g.vus), calibrateNull)})
	if err != nil {
		return k, fmt.Errorf("the null target: %w", err)
	}
	s := out.Shard()
	k.CPU, k.Elapsed, k.Threads = record.ReadCPU()-before, out.Elapsed, out.Threads
	k.Rate = float64(s.Latency.Count()) / out.Elapsed.Seconds()
	k.P50, k.P99 = time.Duration(s.Latency.Quantile(.5)), time.Duration(s.Latency.Quantile(.99))
	k.Null = s.AppendBinary(nil)
	return k, nil
}

// stop ends what was started to calibrate: it must not take from the load what it needs.
func (g *Lab) stop(ctx context.Context) error {
	var errs []error
	for i := range g.set.Entries {
		e := &g.set.Entries[i]
		if e.Process != nil && e.Role != "" {
			errs = append(errs, e.Process.Stop(context.WithoutCancel(ctx)))
			e.Process = nil
		}
	}
	return errors.Join(errs...)
}

// Arm connects the segment's VUs.
func (g *Lab) Arm(ctx context.Context) (err error) {
	g.crowd, err = load.Gather(ctx, g.target().Target, g.vus)
	if err != nil {
		return fmt.Errorf("connecting to the target: %w", err)
	}
	return nil
}

// Run puts the load on the target.
func (g *Lab) Run(ctx context.Context, deliver func(load.Slice)) (load.Outcome, error) {
	l := g.load
	l.Wait, l.Deliver = g.pacer.Wait, deliver
	return g.crowd.Run(ctx, l)
}

// Close ends everything that is left.
func (g *Lab) Close() error {
	err := g.stop(context.Background())
	if g.crowd != nil {
		err = errors.Join(err, g.crowd.Close())
	}
	if g.pacer != nil {
		g.pacer.Close()
	}
	if g.opened != nil && g.opened.Close != nil {
		err = errors.Join(err, g.opened.Close())
	}
	return err
}
