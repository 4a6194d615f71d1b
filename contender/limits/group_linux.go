package limits

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"toll/contender/owner"
)

// A rung is one mechanism at work on one tree.
type rung interface {
	// before readies cmd, whose Start the caller makes next on the same OS thread; after undoes what concerns the thread.
	before(cmd *exec.Cmd) (after func() error, err error)
	// inForce reads back whether the limits hold for the process.
	inForce(pid int) error
	usage() (Usage, error)
	// close kills what is left in the group and removes it.
	close() error
}

// A Group is where a tree under limits runs. It is made before the tree and must be closed after it.
type Group struct {
	Mechanism string
	Limits    Limits
	rung
}

// machine is where a machine keeps what the rungs need; tests give their own.
type machine struct {
	proc   string // /proc
	lookup func(program string) (string, error)
}

// Open makes a group in which l is held, by the first mechanism that can. An ErrUnavailable says why each can't.
func Open(l Limits) (*Group, error) {
	return machine{proc: "/proc", lookup: exec.LookPath}.open(l)
}

func (m machine) open(l Limits) (*Group, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l == (Limits{}) {
		return nil, errors.New("no limits to hold")
	}
	var why []string
	for _, r := range [...]struct {
		mechanism string
		open      func(Limits) (rung, error)
	}{{CgroupV2, m.openV2}, {CgroupV1, m.openV1}, {Systemd, m.openSystemd}, {Taskset, m.openTaskset}} {
		got, err := r.open(l)
		if err == nil {
			return &Group{r.mechanism, l, got}, nil
		}
		why = append(why, r.mechanism+": "+err.Error())
	}
	return nil, fmt.Errorf("%w (%s): %s", ErrUnavailable, l, strings.Join(why, "; "))
}

// Enter readies cmd, whose Start the caller makes next on the same OS thread, to be born in the group. The thread must be
// locked and must not be the main one, which stands for the whole process; leave takes it out again.
func (g *Group) Enter(cmd *exec.Cmd) (leave func() error, err error) {
	if unix.Gettid() == os.Getpid() {
		return nil, errors.New("on the main thread, whose group is that of our own memory")
	}
	leave, err = g.before(cmd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.Mechanism, err)
	}
	return leave, nil
}

// InForce reads back from the system whether the limits hold for the process.
func (g *Group) InForce(pid int) error {
	if err := g.inForce(pid); err != nil {
		return fmt.Errorf("%s: %s: not in force: %w", g.Mechanism, g.Limits, err)
	}
	return nil
}

// Usage reads what the tree has met.
func (g *Group) Usage() (Usage, error) {
	u, err := g.usage()
	if err != nil {
		return u, fmt.Errorf("%s: %w", g.Mechanism, err)
	}
	return u, nil
}

// Close kills what is left in the group and removes it.
func (g *Group) Close() error {
	if err := g.close(); err != nil {
		return fmt.Errorf("%s: removing the group: %w", g.Mechanism, err)
	}
	return nil
}

// prefix begins the names of our groups, so that those of a run that was killed can be found.
const prefix = "toll-"

// groupName is one that no other group has, and names the process whose it is.
func groupName() string { return fmt.Sprintf("%s%s-%s", prefix, owner.Self(), rand.Text()[:8]) }
