//go:build unix && !linux

package contender

import (
	"syscall"
	"time"
)

// ownGroup keeps a terminal's Ctrl-C away from the child.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// groupLives reports whether a process group is still there after the time given.
func groupLives(group int, within time.Duration) bool {
	for until := time.Now().Add(within); syscall.Kill(-group, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			return true
		}
	}
	return false
}
