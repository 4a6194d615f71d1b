// Package limits holds a process tree to a CPU quota and a memory limit, by writing control groups directly: version 2,
// else version 1, else a systemd scope, else the affinity that taskset sets. It says which it was, reads back what is in
// force, and what it cost: throttled time, memory peak, processes killed for memory.
package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrUnavailable is why limits that were asked for can't be held on this machine.
var ErrUnavailable = errors.New("limits can't be held on this machine")

// Limits are what a process tree may use. A field that is zero is not limited.
type Limits struct {
	CPUs   float64 // cores' worth of CPU time per second
	Memory int64   // bytes, swap included
}

// Least and most that can be asked for: a kernel refuses less than a millisecond of CPU per period.
const (
	leastCPUs   = 0.01
	mostCPUs    = 4096
	leastMemory = 4 << 20
)

// Check says what is wrong with l.
func (l Limits) Check() error {
	switch {
	case l.CPUs != 0 && !(l.CPUs >= leastCPUs && l.CPUs <= mostCPUs):
		return fmt.Errorf("cpus: %v; expected %v to %v", l.CPUs, leastCPUs, mostCPUs)
	case l.Memory != 0 && l.Memory < leastMemory:
		return fmt.Errorf("memory: %d bytes; expected at least 4MiB", l.Memory)
	}
	return nil
}

// String returns what people write: 1 CPU, 1GiB.
func (l Limits) String() string {
	var out []string
	if l.CPUs > 0 {
		out = append(out, strconv.FormatFloat(l.CPUs, 'g', -1, 64)+" CPU")
	}
	if l.Memory > 0 {
		out = append(out, size(l.Memory))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

var units = [...]struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func size(bytes int64) string {
	for _, u := range units {
		if bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// ParseSize parses a size such as 512MiB or 1GiB.
func ParseSize(s string) (int64, error) {
	for _, u := range units {
		n, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(n, 10, 64)
		if err != nil || v <= 0 || v > math.MaxInt64/u.bytes {
			break
		}
		return v * u.bytes, nil
	}
	return 0, fmt.Errorf("size %q; expected a whole number of KiB, MiB or GiB, such as 512MiB", s)
}

// Usage is what a tree under limits has met.
type Usage struct {
	Throttled        time.Duration // time for which the tree had work and no quota left
	Periods          int64         // of 100 ms in which it ran
	ThrottledPeriods int64         // in which its quota ran out
	MemoryPeak       int64         // bytes; 0 where the mechanism does not say
	OOMKills         int64         // processes killed because the memory limit was reached
}

// The mechanisms, as the result document names them.
const (
	CgroupV2 = "cgroup-v2"
	CgroupV1 = "cgroup-v1"
	Systemd  = "systemd"
	Taskset  = "taskset"
)
