package suite

import (
	"context"
	"errors"

	"toll/contender"
	"toll/driver"
)

// A LengthLevel is one level of requests whose replies hold a number that grows, counted in two ways.
type LengthLevel struct {
	Requests int
	Differ   int // replies of another length than the first one of the level
	Failed   int // replies that say that something failed
}

// Lengths starts a server whose replies name a child by a number that grows from request to request, asks it once by hand,
// and then makes levels of n requests each.
func Lengths(ctx context.Context, n, levels int) (out []LengthLevel, err error) {
	spec, err := contender.Self("serve", "spawn")
	if err != nil {
		return nil, err
	}
	p, err := contender.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(ctx))) }()
	if _, _, err := driver.Lengths(ctx, p.Ready().Addr, "/v1/noop", 1); err != nil {
		return nil, err
	}
	for range levels {
		differ, failed, err := driver.Lengths(ctx, p.Ready().Addr, "/v1/noop", n)
		if err != nil {
			return nil, err
		}
		out = append(out, LengthLevel{n, differ, failed})
	}
	return out, nil
}
