package limits

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
)

// Seen returns the group of a process that runs already, which somebody else made and will remove: the runtime of a container.
// mechanism is who, and l what was asked of it; InForce says whether it was given. An ErrUnavailable: the process' groups can't be
// seen from here.
func Seen(mechanism string, pid int, l Limits) (*Group, error) {
	return machine{proc: "/proc"}.seen(mechanism, pid, l)
}

func (m machine) seen(mechanism string, pid int, l Limits) (*Group, error) {
	mounts, err := m.mounts()
	if err != nil {
		return nil, fmt.Errorf("%w (%s): %s: %w", ErrUnavailable, l, mechanism, err)
	}
	in, err := m.paths(strconv.Itoa(pid))
	if err != nil {
		return nil, fmt.Errorf("%w (%s): %s: the control groups of pid %d: %w", ErrUnavailable, l, mechanism, pid, err)
	}
	if g, ok := seenV1(mounts, in, l); ok {
		return &Group{mechanism, l, foreign{m, pid, in, g}}, nil
	}
	at := slices.IndexFunc(mounts, func(mt mount) bool { return mt.v2 })
	if at < 0 {
		return nil, fmt.Errorf("%w (%s): %s: no control groups are mounted here", ErrUnavailable, l, mechanism)
	}
	own := mounts[at].dir(in[""])
	// A runtime may hold a group and keep the container in one below it, as crun does in a systemd scope.
	if above := mounts[at].dir(path.Dir(in[""])); readBackV2(own, l) != nil && readBackV2(above, l) == nil {
		own = above
	}
	return &Group{mechanism, l, foreign{m, pid, in, &v2{m: m, limits: l, dir: own}}}, nil
}

// seenV1 is the process' groups of version 1; not ok where a controller has no hierarchy of that version.
func seenV1(mounts []mount, in map[string]string, l Limits) (*v1, bool) {
	g := &v1{limits: l, dirs: make(map[string]string)}
	for _, c := range l.controllers() {
		at := slices.IndexFunc(mounts, func(mt mount) bool { return slices.Contains(mt.controllers, c) })
		if at < 0 {
			return nil, false
		}
		g.dirs[c] = mounts[at].dir(in[c])
	}
	return g, true
}

// files are the files of a group of either version.
type files interface {
	readBack() error
	usage() (Usage, error)
}

// foreign is a group that is not ours to enter or to remove.
type foreign struct {
	m   machine
	pid int
	in  map[string]string // the process' groups when they were looked up
	files
}

func (foreign) before(*exec.Cmd) (func() error, error) {
	return nil, errors.New("the group is somebody else's")
}

func (g foreign) inForce(pid int) error {
	in, err := g.m.paths(strconv.Itoa(pid))
	if err != nil {
		return err
	}
	for controller, group := range g.in {
		if in[controller] != group {
			return fmt.Errorf("pid %d is in the group %s, and pid %d in %s", pid, in[controller], g.pid, group)
		}
	}
	return g.readBack()
}

func (foreign) close() error { return nil }
