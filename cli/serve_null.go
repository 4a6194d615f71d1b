package cli

import (
	"os"
	"time"
)

// nullFlags are those of serve that only null has.
type nullFlags struct {
	Reply string        `help:"null: file with the whole HTTP reply that it gives." placeholder:"FILE" type:"existingfile"`
	Delay time.Duration `help:"null: how long it keeps a core busy before it answers, a known cost to measure." placeholder:"TIME"`
}

// config checks the flags.
func (f *nullFlags) config() (reply []byte, delay time.Duration, err error) {
	if f.Delay < 0 || f.Delay > time.Second {
		return nil, 0, usage("--delay %v: want 0 to 1s", f.Delay)
	}
	if f.Reply == "" {
		return nil, f.Delay, nil
	}
	if reply, err = os.ReadFile(f.Reply); err != nil {
		return nil, 0, usage("--reply: %w", err)
	}
	return reply, f.Delay, nil
}
