package suite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"toll/contender"
	"toll/contender/owner"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// among measures outside contenders among themselves: the first is the baseline.
type among struct{ transport }

// Among prepares a comparison of anybody's contenders, all of one driver: plan and opener. name is the case, empty for the
// driver's own.
func Among(all []contender.Manifest, name string) (plan.Plan, *Opener, error) {
	p := plan.Plan{Schema: plan.Schema, Benchmark: "contender", Baseline: all[0].Name}
	p.Settings = plan.Settings{
		Model: plan.Closed, Order: plan.Shuffled, Concurrency: []int{1}, Rounds: 5, Blocks: 20, Calls: 100, Warmup: 300,
		Timeout: plan.Duration(5 * time.Second),
	}
	for i, m := range all {
		if m.Driver != all[0].Driver {
			return p, nil, fmt.Errorf("%s is called by driver %s and %s by %s; contenders of one comparison need one driver",
				all[0].Name, all[0].Driver, m.Name, m.Driver)
		}
		if slices.ContainsFunc(all[:i], func(o contender.Manifest) bool { return o.Name == m.Name }) {
			return p, nil, fmt.Errorf("two contenders are named %q", m.Name)
		}
		p.Contenders = append(p.Contenders, m.Name)
	}
	hop := result.Hop{Kind: "loopback"}
	d, called := guestDrivers("")[all[0].Driver]
	switch {
	case called:
		p.Cases, p.Phases = []string{cmp.Or(name, "call/32B")}, []string{"tcp"}
		w, err := transportWork(p.Cases[0])
		if err != nil {
			return p, nil, err
		}
		if d.line == nil && w.blob == 0 && w.tools == 0 {
			p.Contenders = append(p.Contenders, "floor", "null")
		}
	case all[0].Driver == "stdio":
		hop.Kind = "none"
		p.Cases = []string{cmp.Or(name, "digest/32B")}
		if _, err := digestBytes(p.Cases[0]); err != nil {
			return p, nil, err
		}
	default:
		return p, nil, fmt.Errorf("%s: driver %q is not one of %s", all[0].Name, all[0].Driver, strings.Join(drivers(), ", "))
	}
	dir, err := owner.Folder(contender.FolderPrefix)
	if err != nil {
		return p, nil, fmt.Errorf("a folder for fixtures: %w", err)
	}
	h := &house{plan: p, outside: all, dir: dir, ground: loopback()}
	return p, &Opener{Opener: among{transport{house: h, guests: driver.ClientHTTP}}, Hop: hop, house: h}, nil
}

// Versus prepares a comparison of two builds of one contender: before is the baseline. Both are called by our raw client, whose
// own cost hides less of a difference, and both are started anew for every three blocks, because one start of a program may be luckier than another.
func Versus(before, after contender.Manifest, name string, blocks int) (plan.Plan, *Opener, error) {
	p, open, err := Among([]contender.Manifest{before, after}, name)
	if err != nil {
		return p, nil, err
	}
	p.Rounds, p.Blocks, p.Calls, p.Warmup = (blocks+2)/3, blocks, 500, 200
	open.house.plan = p
	if a, ok := open.Opener.(among); ok {
		a.guests = driver.ClientRaw
		open.Opener = a
	}
	return p, open, nil
}

// Open starts each contender, the first once more as the control, and where they are called over a connection the floor
// and the null target.
func (a among) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	if a.outside[0].Driver == "stdio" {
		return a.openStdio(ctx, s)
	}
	w, err := transportWork(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	seats, gaps := a.visitors(s, w)
	if len(gaps) > 0 {
		return lab.Set{}, fmt.Errorf("%s: %s", gaps[0].Row, gaps[0].Reason)
	}
	seats = withControl(seats)
	for _, name := range a.plan.Contenders[len(a.outside):] {
		seat, err := a.seat(s, name, w)
		if err != nil {
			return lab.Set{}, err
		}
		seats = append(seats, seat)
	}
	return a.open(ctx, s, seats), nil
}

// withControl makes the first seat the baseline and enters it a second time.
func withControl(seats []seat) []seat {
	control := seats[0]
	seats[0].role, control.role = result.Baseline, result.Control
	return append(seats, control)
}

// openStdio starts engines that time themselves: they are asked over their standard input and output.
func (a among) openStdio(ctx context.Context, s lab.Setting) (lab.Set, error) {
	size, err := digestBytes(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	var seats []seat
	for _, m := range a.outside {
		seats = append(seats, seat{
			contender: a.outsider(m, ""),
			spec:      m.Spec,
			engine: func(p *contender.Process) load.Target {
				return driver.Digest(p, s.Case, size)
			},
		})
	}
	return a.open(ctx, s, withControl(seats)), nil
}

// digestBytes returns how many bytes a digest case hashes.
func digestBytes(name string) (int, error) {
	size, ok := strings.CutPrefix(name, "digest/")
	if !ok {
		return 0, fmt.Errorf("case %q: expected one such as digest/32B", name)
	}
	n, err := sizeOf(size, 64<<10)
	if err != nil {
		return 0, fmt.Errorf("case %q: %w", name, err)
	}
	return n, nil
}
