package contender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"toll/contender/owner"
)

// runtimes are the programs that run containers, in the order in which they are asked.
func runtimes() []string { return []string{"docker", "podman"} }

const (
	runtimeAnswers = 10 * time.Second // how long docker or podman may take to say that it works
	runtimeActs    = 15 * time.Second // and to look something up, or to remove a container
)

// A container is a contender that docker or podman runs. The process that we start is the runtime's client, which passes
// stdin and stdout on.
type container struct {
	runtime string // path of docker or podman
	name    string
	run     []string // arguments that run it
	image   string   // id
	version string
}

// newContainer finds a runtime and the image, and runs nothing.
func newContainer(ctx context.Context, s Spec, mark string) (*container, error) {
	runtime, err := containerRuntime(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	c := &container{runtime: runtime, name: containerName(mark)}
	const format = `{{.Id}} {{with .Config.Labels}}{{index . "org.opencontainers.image.version"}}{{end}}`
	said, err := c.do(ctx, runtimeActs, "image", "inspect", "--format", format, s.Image)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, ctx.Err())
	}
	if err != nil {
		return nil, missing("%s: image %s is not on this machine; run: toll contender build %s", s.Name, s.Image, s.Name)
	}
	c.image, c.version, _ = strings.Cut(said, " ")
	c.run = []string{"run", "--rm", "-i", "--network", "host", "--name", c.name, "--env", mark}
	c.run = append(c.run, limitFlags(s.Limits)...)
	if len(s.Processors) > 0 {
		c.run = append(c.run, "--cpuset-cpus="+strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(s.Processors)), " ", ","), "[]"))
	}
	for _, e := range s.Env {
		c.run = append(c.run, "--env", e)
	}
	c.run = append(append(c.run, s.Image), s.Command...)
	return c, nil
}

// containerName names the process whose the container is, so that one of a run that was killed can be found.
func containerName(mark string) string {
	return fmt.Sprintf("%s%s-%s", FolderPrefix, owner.Self(), strings.ToLower(mark[len(mark)-8:]))
}

// containerOwner reads from a container's name whose it is.
func containerOwner(name string) (owner.ID, bool) {
	rest, ours := strings.CutPrefix(name, FolderPrefix)
	at := strings.LastIndexByte(rest, '-')
	if !ours || at < 0 {
		return "", false
	}
	return owner.Parse(rest[:at])
}

// containerRuntime returns the first of docker and podman that is there and answers.
func containerRuntime(ctx context.Context, contender string) (string, error) {
	for _, path := range installed() {
		c := container{runtime: path}
		if _, err := c.do(ctx, runtimeAnswers, "info"); err == nil {
			return path, nil
		}
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s: %w", contender, ctx.Err())
	}
	return "", &missingError{contender + ": an image needs docker or podman, and neither answers on this machine", ErrNoContainerRuntime}
}

// installed are the paths of the runtimes that are on this machine; they may not answer.
func installed() []string {
	var out []string
	for _, name := range runtimes() {
		if path, err := exec.LookPath(name); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// kind is the runtime's name: docker or podman.
func (c *container) kind() string { return filepath.Base(c.runtime) }

// do runs one of the runtime's commands and returns what it says.
func (c *container) do(ctx context.Context, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	out, said := make([]byte, 0, maxLine), make([]byte, 0, maxTail)
	cmd := exec.CommandContext(ctx, c.runtime, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &bounded{&out}, &bounded{&said}, time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w%s", c.runtime, args[0], err, lastWords(string(said)))
	}
	return string(bytes.TrimSpace(out)), nil
}

// inspect finds the container's main process, which is none of our children.
func (c *container) inspect(ctx context.Context, r *Ready) (pid int, err error) {
	r.Image = c.image
	if r.Version == "" {
		r.Version = c.version
	}
	said, err := c.do(ctx, runtimeActs, "inspect", "--format", "{{.State.Pid}}", c.name)
	if err != nil {
		return 0, err
	}
	pid, err = strconv.Atoi(said)
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("container %s: its main process is %s; expected a pid", c.name, quote([]byte(said)))
	}
	return pid, nil
}

// near says why a container's process can't be called or looked at as a child of ours is: a daemon that runs elsewhere starts
// containers where it is itself. What may not be looked at is taken for near.
func (c *container) near(client, pid int) error {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if errors.Is(err, os.ErrNotExist) && hasProc() {
		return fmt.Errorf("container %s: its main process, pid %d, is not among the processes that are seen from here: %s runs containers elsewhere", c.name, pid, c.kind())
	}
	ours, clientErr := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", client))
	if err == nil && clientErr == nil && ours != theirs {
		return fmt.Errorf("container %s is on the network of %s's daemon and not on ours: podman starts containers where it is called", c.name, c.kind())
	}
	return nil
}

// hasProc reports whether this system shows processes as Linux does.
func hasProc() bool {
	_, err := os.Lstat("/proc/self/ns/net")
	return err == nil
}

// remove makes sure that the container is gone, also when its client was killed.
func (c *container) remove(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	// Removing gives a container ten seconds to end; killing does not. An error means that it has ended.
	c.do(ctx, runtimeActs, "kill", c.name)
	_, err := c.do(ctx, runtimeActs, "rm", "-f", c.name)
	if err == nil || isGone(err) {
		_, err = removeMonitored(ctx, c.name)
		return err
	}
	return fmt.Errorf("container %s is left behind: %w", c.name, err)
}

func isGone(err error) bool {
	var exit *exec.ExitError
	text := strings.ToLower(err.Error())
	return errors.As(err, &exit) && (strings.Contains(text, "no such container") || strings.Contains(text, "in progress"))
}

// cleanContainers removes the containers of runs that are gone, also those that were made and never ran, or of which podman has a
// file system only because its client was killed while it made them.
func cleanContainers(ctx context.Context) []owner.Found {
	var out []owner.Found
	for _, path := range installed() {
		c := container{runtime: path}
		list := []string{"ps", "--all", "--format", "{{.Names}}"}
		if c.kind() == "podman" {
			list = append(list, "--external")
		}
		said, err := c.do(ctx, runtimeAnswers, list...)
		if err != nil {
			continue // it does not work here, so nothing of ours runs in it
		}
		for c.name = range strings.FieldsSeq(said) {
			if id, ok := containerOwner(c.name); ok && id.Gone() {
				out = append(out, owner.Found{What: "container", Name: c.name, Err: c.remove(ctx)})
			}
		}
	}
	return out
}
