package contender

import (
	"syscall"
	"time"
)

// ownGroup keeps a console's Ctrl-C away from the child.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate does nothing: Windows has no signal that asks a process without a console to end.
func (p *Process) terminate() {}

func (p *Process) kill() { p.cmd.Process.Kill() }

// groupLives is always false: what a child leaves behind is not found on Windows.
func groupLives(int, time.Duration) bool { return false }

func killGroup(int) {}
