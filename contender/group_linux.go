package contender

import "syscall"

// ownGroup keeps a terminal's Ctrl-C away from the child, and takes the child with us when we are killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
