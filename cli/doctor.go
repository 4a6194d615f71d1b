package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"toll/suite"
)

type doctorCmd struct {
	Seed int64 `help:"Seed of every random choice; 0 draws one." default:"0"`
}

// Help shows how it is used.
func (doctorCmd) Help() string {
	return `Takes about half a minute: clocks and timers, the client's own cost, a known delay, a freeze of one second, limits, and comparisons of a server with another of its kind. The last line says which difference is too small to be shown here today.

  toll doctor

Exit: 0 ok, 1 something that toll promises does not hold on this machine now, 3 could not be tried.`
}

// Run prints each finding as it comes.
func (c *doctorCmd) Run(ctx context.Context, s *streams) error {
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
