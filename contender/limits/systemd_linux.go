package limits

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// systemd holds a tree by a scope that systemd makes, for who may not write control groups. systemd-run becomes the
// command once the scope is there, so that pid, pipes and signals stay those of the child.
type systemd struct {
	m       machine
	limits  Limits
	unit    string
	program string
	user    bool
	dir     string // of the scope; known once the child runs
}

func (m machine) openSystemd(l Limits) (rung, error) {
	program, err := m.lookup("systemd-run")
	if err != nil {
		return nil, errors.New("systemd-run is not in PATH")
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil, errors.New("systemd does not run")
	}
	return &systemd{m: m, limits: l, unit: groupName() + ".scope", program: program, user: os.Getuid() != 0}, nil
}

// args are systemd-run's, before the command.
func (g *systemd) args() []string {
	out := []string{"--scope", "--quiet", "--collect", "--unit=" + g.unit}
	if g.user {
		out = append(out, "--user")
	}
	if g.limits.CPUs > 0 {
		out = append(out, fmt.Sprintf("--property=CPUQuota=%s%%", strconv.FormatFloat(100*g.limits.CPUs, 'f', -1, 64)))
	}
	if g.limits.Memory > 0 {
		out = append(out, fmt.Sprintf("--property=MemoryMax=%d", g.limits.Memory), "--property=MemorySwapMax=0")
	}
	return append(out, "--")
}

func (g *systemd) before(cmd *exec.Cmd) (func() error, error) {
	command := append([]string{cmd.Path}, cmd.Args[1:]...)
	cmd.Args = slices.Concat([]string{g.program}, g.args(), command)
	cmd.Path = g.program
	return func() error { return nil }, nil
}

func (g *systemd) inForce(pid int) error {
	in, err := g.m.paths(strconv.Itoa(pid))
	if err != nil {
		return err
	}
	if path.Base(in[""]) != g.unit {
		return fmt.Errorf("pid %d is in the group %s, not in the scope %s", pid, in[""], g.unit)
	}
	mounts, err := g.m.mounts()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(mounts, func(mt mount) bool { return mt.v2 })
	if at < 0 {
		return errors.New("the scope's control group is not mounted")
	}
	g.dir = mounts[at].dir(in[""])
	return readBackV2(g.dir, g.limits)
}

func (g *systemd) usage() (Usage, error) {
	if g.dir == "" {
		return Usage{}, errors.New("its group is not known")
	}
	return usageV2(g.dir, g.limits)
}

// close stops the scope; systemd removes one whose processes have ended.
func (g *systemd) close() error {
	systemctl, err := g.m.lookup("systemctl")
	if err != nil {
		return err
	}
	args := []string{"stop", g.unit}
	if g.user {
		args = append([]string{"--user"}, args...)
	}
	if out, err := exec.Command(systemctl, args...).CombinedOutput(); err != nil && !strings.Contains(string(out), "not loaded") {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
