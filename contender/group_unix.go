//go:build unix

package contender

import "syscall"

// terminate asks the child's process group to end.
func (p *Process) terminate() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) }

// kill ends the child's process group.
func (p *Process) kill() { killGroup(p.cmd.Process.Pid) }

func killGroup(group int) { syscall.Kill(-group, syscall.SIGKILL) }
