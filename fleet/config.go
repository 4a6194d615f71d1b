package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"toll/lab/plan"
)

// What a run does when a worker is lost.
const (
	Invalidate = "invalidate" // it ends, and keeps what all workers delivered before
	Continue   = "continue"   // it goes on with less load
)

// A Config is what a coordinator conducts.
type Config struct {
	Run      string
	Plan     []byte // the plan file, which workers read again
	Settings plan.Settings
	Workers  int
	OnLoss   string        // Invalidate when empty
	Rejoin   time.Duration // DefaultRejoin when 0
	Seed     int64
	Build    Build
	Raw      bool // workers keep every latency in a file of their own
}

// WithDefaults returns c with its zero values replaced.
func (c Config) WithDefaults() Config {
	c.OnLoss, c.Rejoin = cmp.Or(c.OnLoss, Invalidate), cmp.Or(c.Rejoin, DefaultRejoin)
	return c
}

// Check returns what is wrong with a configuration.
func (c Config) Check() error {
	s := c.Settings
	switch {
	case c.Workers < 1 || c.Workers > mostWorkers:
		return fmt.Errorf("%d workers; expected 1 to %d", c.Workers, mostWorkers)
	case !s.Timed():
		return errors.New("the plan's turns are calls, not a time; a fleet spreads a load that lasts")
	case s.CallsOnly:
		return errors.New("the plan ends after a number of calls; a fleet spreads a load that lasts")
	case s.Rounds > 1 || s.Blocks > 1 || len(s.Concurrency) != 1:
		return fmt.Errorf("the plan has %d rounds, %d blocks and %d concurrencies; a fleet runs one load once", s.Rounds, s.Blocks, len(s.Concurrency))
	case s.Model == plan.Closed && plan.Peak(s.Shape(s.Concurrency[0])) < float64(c.Workers):
		return fmt.Errorf("%d workers for %.0f VUs; expected a VU for each at least", c.Workers, plan.Peak(s.Shape(s.Concurrency[0])))
	}
	return nil
}

// mostWorkers bounds a fleet.
const mostWorkers = 10_000
