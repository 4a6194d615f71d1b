package cli

import (
	"context"
	"io"
	"os"
	"time"

	"toll/contender/hop"
)

// shuttleCmd is the process between two TUN devices, which toll starts for a hop with a delay.
type shuttleCmd struct {
	OneWay time.Duration `help:"How much later each packet goes on." required:""`
}

// Run carries packets between the devices on file descriptors 3 and 4 until stdin closes. Ctrl-C is for who started it.
func (c *shuttleCmd) Run(ctx context.Context, s *streams) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		io.Copy(io.Discard, s.in)
		cancel()
	}()
	return exit(exitNotMeasured, hop.Shuttle(ctx, os.NewFile(3, "a"), os.NewFile(4, "b"), c.OneWay))
}
