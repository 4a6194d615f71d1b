package contender

import "errors"

// ErrNoFreeze is why a contender can't be frozen on this system.
var ErrNoFreeze = errors.New("a process can't be frozen on this system")

// Freeze is not to be had here.
func (p *Process) Freeze(bool) error { return ErrNoFreeze }
