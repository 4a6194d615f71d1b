package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"toll/contender/place"
	"toll/driver"
	"toll/lab/load"
	"toll/lab/result"
	"toll/lab/stats"
)

// held tries pairs of servers as comparisons with one caller run them: everything held to one processor, where the system
// can do that.
func (d *doctor) held() (err error) {
	usable, err := place.Usable()
	if err != nil {
		d.fact("processors", err.Error())
		return d.pairs()
	}
	one, apart := place.Held(usable, 1), place.Held(usable, 2)
	together, err := d.roundTrip(one)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("a round trip takes %v with both ends on one processor", round(together))
	if len(usable) > 1 {
		split, err := d.roundTrip(apart)
		if err != nil {
			return err
		}
		awake, err := d.awake(apart)
		if err != nil {
			return err
		}
		text += fmt.Sprintf(" and %v on two%s; comparisons with one caller hold both to one", round(split), awake)
	}
	d.fact("processors", text)
	let, err := place.Hold(one.Client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, let()) }()
	d.at = one
	return d.pairs()
}

// roundTrip is the median of a call in one placement.
func (d *doctor) roundTrip(at place.Placement) (_ time.Duration, err error) {
	let, err := place.Hold(at.Client)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, let()) }()
	d.at = at
	a, b, err := d.pair(nil, nil, 10, seriesCalls)
	return time.Duration(stats.Median(append(a, b...))), err
}

// awake says what a round trip takes when processors with nothing to do are kept from sleep, where the system can do that.
func (d *doctor) awake(at place.Placement) (_ string, err error) {
	p, err := place.Poll()
	if err != nil {
		return ", where they sleep between calls (" + err.Error() + ")", nil
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	took, err := d.roundTrip(at)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(", %v when they are kept awake (a plan's idle: poll)", round(took)), nil
}

func (d *doctor) pairs() error { return errors.Join(d.delay(), d.same()) }

// delay compares a null target that is busy for a known time with one that is busy for twice as long. Both are waited for long
// enough that client and server go to sleep: what that costs is in both, as it would be for any real server, and what is left
// is the delay. Against a server that does nothing, some microseconds of going to sleep are added.
func (d *doctor) delay() error {
	first, err := d.recovered(nil, []string{"--delay", knownDelay.String()})
	if err != nil {
		return err
	}
	got, err := d.recovered([]string{"--delay", knownDelay.String()}, []string{"--delay", (2 * knownDelay).String()})
	if err != nil {
		return err
	}
	off := math.Abs(float64(got-knownDelay)) / float64(knownDelay)
	d.judge("known delay", off <= delayTolerance,
		"of a server that is busy for %v longer than another, %v is recovered (%.1f %% off); against one that does nothing, %v, with what falling asleep costs",
		knownDelay, round(got), 100*off, round(first))
	return nil
}

// recovered is by how much longer the second's calls take.
func (d *doctor) recovered(first, second []string) (time.Duration, error) {
	var diffs []float64
	for range delayRounds {
		a, b, err := d.pair(first, second, delayBlocks, seriesCalls)
		if err != nil {
			return 0, err
		}
		for i := range a {
			diffs = append(diffs, b[i]-a[i])
		}
	}
	return time.Duration(stats.HodgesLehmann(diffs)), nil
}

// pair measures two null targets in shuffled blocks and returns their block medians, ns.
func (d *doctor) pair(first, second []string, blocks, calls int) (a, b []float64, err error) {
	var lanes []load.Lane
	for _, args := range [][]string{first, second} {
		p, err := d.null(args...)
		if err != nil {
			return nil, nil, err
		}
		defer p.Stop(context.WithoutCancel(d.ctx))
		t := client(p.Ready().Addr)
		t.Client = driver.ClientRaw
		c, err := t.Open(d.ctx)
		if err != nil {
			return nil, nil, err
		}
		defer load.Close(c)
		if _, err := load.Count(d.ctx, c, seriesWarmup, time.Second); err != nil {
			return nil, nil, err
		}
		lanes = append(lanes, load.Lane{Callers: []load.Caller{c}})
	}
	got, err := load.Interleave(d.ctx, lanes, load.Blocks{Blocks: blocks, Calls: calls, Timeout: time.Second, Rand: d.rnd})
	if err != nil {
		return nil, nil, err
	}
	for i := range got[0].Stretches {
		if i < len(got[1].Stretches) {
			a, b = append(a, got[0].Stretches[i].Median), append(b, got[1].Stretches[i].Median)
		}
	}
	return a, b, errors.Join(got[0].Dead, got[1].Dead)
}

// same compares a thing with itself again and again, each time as a comparison does, and keeps how far the interval reaches in
// nine of ten.
func (d *doctor) same() error {
	var widths []float64
	alarms := 0
	for range series {
		var a, b []float64
		for range seriesRounds {
			x, y, err := d.pair(nil, nil, seriesBlocks/seriesRounds, seriesCalls)
			if err != nil {
				return err
			}
			a, b = append(a, x...), append(b, y...)
		}
		q := stats.PairedRatio(a, b, result.Level)
		if !q.Interval {
			return fmt.Errorf("an A/A comparison of %d blocks has no interval", len(a))
		}
		if q.Lo > 1 || q.Hi < 1 {
			alarms++
		}
		widths = append(widths, max(q.Hi-1, 1-q.Lo))
	}
	slices.Sort(widths)
	d.smallest = widths[len(widths)*9/10]
	d.judge("A/A", alarms <= mostAlarms, "of %d comparisons of a server with another of its kind, %d claim a difference (one is expected); the interval reaches ± %.1f %% typically, ± %.1f %% in nine of ten",
		series, alarms, 100*stats.Median(widths), 100*d.smallest)
	return nil
}
