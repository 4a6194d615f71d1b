package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"toll/contender"
	"toll/suite"
)

type doctorCmd struct {
	Clean bool  `help:"Only remove what runs that were killed left behind: processes, control groups, devices, folders."`
	Seed  int64 `help:"Seed of every random choice; 0 draws one." default:"0"`
}

// Help shows how it is used.
func (doctorCmd) Help() string {
	return `Takes about half a minute, at most one: clocks and timers, the client's own cost, a known delay, a freeze of one second, limits, and comparisons of a server with another of its kind. The last line says which difference is too small to be shown here today.

  toll doctor
  toll doctor --clean

--clean touches only what bears toll's own mark and whose run is gone, and says what it removed.

Exit: 0 ok, 1 something that toll promises does not hold on this machine now, 3 could not be tried.`
}

// Run prints each finding as it comes.
func (c *doctorCmd) Run(ctx context.Context, s *streams) error {
	if c.Clean {
		return clean(ctx, s)
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.Int64N(9999)
	}
	err := suite.Doctor(ctx, c.Seed, func(f suite.Finding) {
		mark := " "
		if f.Known && !f.OK {
			mark = "!"
		}
		fmt.Fprintf(s.out, "%s %-20s %s\n", mark, f.About, f.Text)
	})
	switch {
	case errors.Is(err, suite.ErrUnwell):
		return exit(exitMissed, err)
	case err != nil:
		return exit(exitNotMeasured, err)
	}
	return nil
}

// clean removes what killed runs left behind and prints it.
func clean(ctx context.Context, s *streams) error {
	found := contender.Clean(ctx)
	failed := 0
	for _, f := range found {
		fmt.Fprintln(s.out, f)
		if f.Err != nil {
			failed++
		}
	}
	if len(found) == 0 {
		fmt.Fprintln(s.out, "nothing of a run that is gone was found")
	}
	if failed > 0 {
		return exit(exitMissed, fmt.Errorf("%d of %d could not be removed", failed, len(found)))
	}
	return nil
}
