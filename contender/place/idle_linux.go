package place

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Where Linux takes a bound on how long a processor may need to wake, in µs, from whoever holds the file open
// (Documentation/power/pm_qos_interface.rst), and where it tells how often each processor was in which idle state
// (Documentation/admin-guide/pm/cpuidle.rst).
const (
	latencyFile = "/dev/cpu_dma_latency"
	idleDir     = "sys/devices/system/cpu"
	polls       = "POLL" // the name of the state that is none: the processor looks for work
)

// Polling keeps idle processors from going to sleep until it is closed, or this process ends.
type Polling struct {
	hold *os.File
	root fs.FS
	from uint64
}

// Poll has all of the machine's idle processors look for work in place of going to sleep, which they have to be woken from: by
// an interrupt, and where the machine is a guest by its host. It needs the right to write /dev/cpu_dma_latency.
func Poll() (*Polling, error) {
	p := &Polling{root: os.DirFS("/")}
	if _, err := p.sleeps(); err != nil {
		return nil, err
	}
	var err error
	if p.hold, err = os.OpenFile(latencyFile, os.O_WRONLY, 0); err != nil {
		return nil, fmt.Errorf("asking for processors that do not sleep: %w", err)
	}
	if _, err := p.hold.Write(binary.NativeEndian.AppendUint32(nil, 0)); err != nil {
		return nil, errors.Join(fmt.Errorf("asking for processors that do not sleep: %w", err), p.hold.Close())
	}
	if err := p.settle(); err != nil {
		return nil, errors.Join(err, p.hold.Close())
	}
	return p, nil
}

// settle waits until the processors that slept have been woken, which are counted only then.
func (p *Polling) settle() (err error) {
	const tries, pause = 100, 2 * time.Millisecond
	for range tries {
		before := p.from
		if p.from, err = p.sleeps(); err != nil {
			return err
		}
		if p.from == before {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("processors go on falling asleep: a wake-up latency of 0 was asked for by %s, and %s does not heed it", latencyFile, p.driver())
}

// InForce is an error once a processor has slept all the same.
func (p *Polling) InForce() error {
	now, err := p.sleeps()
	if err == nil && now != p.from {
		err = fmt.Errorf("processors fell asleep %d times, although %s was asked for a wake-up latency of 0", now-p.from, p.driver())
	}
	return err
}

// Close lets processors sleep again.
func (p *Polling) Close() error { return p.hold.Close() }

func (p *Polling) driver() string {
	b, err := fs.ReadFile(p.root, idleDir+"/cpuidle/current_driver")
	if err != nil {
		return "the driver"
	}
	return "driver " + strings.TrimSpace(string(b))
}

// sleeps counts how often processors have been in a state that is not polling.
func (p *Polling) sleeps() (n uint64, err error) {
	states, err := fs.Glob(p.root, idleDir+"/cpu[0-9]*/cpuidle/state[0-9]*")
	if err != nil {
		return 0, err
	}
	slices.Sort(states)
	polling := false
	for _, dir := range states {
		name, err := fs.ReadFile(p.root, dir+"/name")
		if err != nil {
			return 0, fmt.Errorf("idle states: %w", err)
		}
		if strings.TrimSpace(string(name)) == polls {
			polling = true
			continue
		}
		text, err := fs.ReadFile(p.root, path.Join(dir, "usage"))
		if err != nil {
			return 0, fmt.Errorf("idle states: %w", err)
		}
		times, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("idle states: /%s/usage: %w", dir, err)
		}
		n += times
	}
	if !polling {
		return 0, fmt.Errorf("%w: it has no idle state %s (no cpuidle driver, or another kind of processor)", ErrSleeps, polls)
	}
	return n, nil
}
