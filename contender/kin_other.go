//go:build !linux

package contender

import (
	"fmt"
	"runtime"
	"time"
)

// kin is a contender's process tree, of which this system shows us only the process group.
type kin struct{ group int }

func (k *kin) root(pid int, _ string) { k.group = pid }

func (k *kin) move(int) {}

func (k *kin) census() {}

func (k *kin) pids() ([]int, error) {
	return nil, fmt.Errorf("%w: %s does not show us a process tree", ErrUnsupported, runtime.GOOS)
}

func (k *kin) usage() (Usage, error) {
	return Usage{}, fmt.Errorf("%w: %s does not show us a process tree's use", ErrUnsupported, runtime.GOOS)
}

func (k *kin) outlived(grace time.Duration) []Leaked {
	if !groupLives(k.group, grace) {
		return nil
	}
	return []Leaked{{k.group, "(process group)"}}
}

func (k *kin) killAll(within time.Duration) bool {
	killGroup(k.group)
	return !groupLives(k.group, within)
}
