package place

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// most is how many processors a CPUSet has room for.
const most = 1024

// Usable returns the processors that the calling thread may run on.
func Usable() (Set, error) {
	had, err := affinity(0)
	if err != nil {
		return nil, err
	}
	var out Set
	for cpu := range most {
		if had.IsSet(cpu) {
			out = append(out, cpu)
		}
	}
	return out, nil
}

func affinity(tid int) (*unix.CPUSet, error) {
	var had unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &had); err != nil {
		return nil, fmt.Errorf("the processors of thread %d: %w", tid, err)
	}
	return &had, nil
}

func (s Set) mask() (*unix.CPUSet, error) {
	var m unix.CPUSet
	for _, cpu := range s {
		if cpu < 0 || cpu >= most {
			return nil, fmt.Errorf("processor %d; expected 0 to %d", cpu, most-1)
		}
		m.Set(cpu)
	}
	if m.Count() == 0 {
		return nil, errors.New("no processor to hold a process to")
	}
	return &m, nil
}

// Enter moves the calling thread to the processors; what it forks inherits them. leave brings it back.
func (s Set) Enter(*exec.Cmd) (leave func() error, err error) {
	m, err := s.mask()
	if err != nil {
		return nil, err
	}
	had, err := affinity(0)
	if err != nil {
		return nil, err
	}
	if err := unix.SchedSetaffinity(0, m); err != nil {
		return nil, fmt.Errorf("processors %v: %w", []int(s), err)
	}
	return func() error { return unix.SchedSetaffinity(0, had) }, nil
}

// InForce reads back whether a process is held to the processors.
func (s Set) InForce(pid int) error {
	m, err := s.mask()
	if err != nil {
		return err
	}
	got, err := affinity(pid)
	if err != nil {
		return err
	}
	if *got != *m {
		return fmt.Errorf("pid %d may run on %d processors, not on %v", pid, got.Count(), []int(s))
	}
	return nil
}

// passes bounds how often Hold looks for threads that were born while it moved the others.
const passes = 10

// Hold holds all threads of this process to the processors, and those that they start, and has Go use as many threads at a
// time as there are processors unless the environment says how many. release lets them go to where they were.
func Hold(s Set) (release func() error, err error) {
	m, err := s.mask()
	if err != nil {
		return nil, err
	}
	had, err := affinity(0)
	if err != nil {
		return nil, err
	}
	if err := moveAll("self", m); err != nil {
		return nil, errors.Join(err, moveAll("self", had))
	}
	followProcessors()
	return func() error {
		err := moveAll("self", had)
		followProcessors()
		return err
	}, nil
}

// Move holds all threads of another process to the processors, and those that they start.
func (s Set) Move(pid int) error {
	m, err := s.mask()
	if err != nil {
		return err
	}
	return moveAll(strconv.Itoa(pid), m)
}

// moveAll moves every thread of a process, until it finds none elsewhere.
func moveAll(pid string, m *unix.CPUSet) error {
	for range passes {
		moved, err := moveOnce(pid, m)
		if err != nil || moved == 0 {
			return err
		}
	}
	return fmt.Errorf("new threads appeared in each of %d passes", passes)
}

func moveOnce(pid string, m *unix.CPUSet) (moved int, err error) {
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return 0, fmt.Errorf("the threads of process %s: %w", pid, err)
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if got, err := affinity(tid); err != nil || *got == *m {
			continue // it has ended, or is there
		}
		if err := unix.SchedSetaffinity(tid, m); err != nil && err != unix.ESRCH {
			return moved, fmt.Errorf("moving thread %d: %w", tid, err)
		}
		moved++
	}
	return moved, nil
}

// followProcessors sets GOMAXPROCS to what the processors in force give.
func followProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	}
}
