//go:build unix

package contender

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrNoFreeze is why a contender can't be frozen on this system.
var ErrNoFreeze = errors.New("a process can't be frozen on this system")

// Freeze stops the contender's processes in their tracks, or lets them go on: a stall that nothing of theirs can soften.
func (p *Process) Freeze(on bool) error {
	sig := syscall.SIGCONT
	if on {
		sig = syscall.SIGSTOP
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, sig); err != nil {
		return fmt.Errorf("%s: %v: %w", p.spec.Name, sig, err)
	}
	return nil
}
