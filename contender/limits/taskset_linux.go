package limits

import (
	"errors"
	"fmt"
	"math"
	"os/exec"

	"golang.org/x/sys/unix"
)

// maxCPUs is how many a CPUSet has room for.
const maxCPUs = 1024

// taskset holds a tree to some of the cores that we may use ourselves. It is no quota: a tree on one core shares that core
// with whatever else runs there.
type taskset struct{ want, had unix.CPUSet }

func (machine) openTaskset(l Limits) (rung, error) {
	if l.Memory > 0 {
		return nil, errors.New("holds no memory limit")
	}
	if l.CPUs != math.Trunc(l.CPUs) {
		return nil, fmt.Errorf("holds whole cores only, not %v", l.CPUs)
	}
	g := new(taskset)
	if err := unix.SchedGetaffinity(0, &g.had); err != nil {
		return nil, err
	}
	left := int(l.CPUs)
	// From the last core down: the first is where most interrupts go.
	for cpu := maxCPUs - 1; cpu >= 0 && left > 0; cpu-- {
		if g.had.IsSet(cpu) {
			g.want.Set(cpu)
			left--
		}
	}
	if left > 0 {
		return nil, fmt.Errorf("we may use %d cores", g.had.Count())
	}
	return g, nil
}

// before moves the calling thread to the cores; what it forks inherits them.
func (g *taskset) before(*exec.Cmd) (func() error, error) {
	if err := unix.SchedSetaffinity(0, &g.want); err != nil {
		return nil, err
	}
	return func() error { return unix.SchedSetaffinity(0, &g.had) }, nil
}

func (g *taskset) inForce(pid int) error {
	var got unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &got); err != nil {
		return err
	}
	if got != g.want {
		return fmt.Errorf("pid %d may use %d cores", pid, got.Count())
	}
	return nil
}

func (*taskset) usage() (Usage, error) { return Usage{}, errors.New("an affinity counts nothing") }

func (*taskset) close() error { return nil }
