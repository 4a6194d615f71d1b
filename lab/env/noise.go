package env

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"toll/lab/record"
	"toll/lab/result"
)

// tick is the unit of /proc/stat: Linux shows user space 100 ticks a second on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// A Watch is open from the start of a run to its end. It costs nothing in between: both ends read a few counters.
type Watch struct {
	root  fs.FS
	began time.Time
	first counters
	ours  time.Duration // CPU time of this process so far
	kids  time.Duration // of its children that have ended
}

// StartWatch reads the machine's counters for the first time.
func StartWatch() *Watch {
	w := &Watch{root: os.DirFS("/"), ours: record.ReadCPU(), kids: childrenCPU()}
	w.first = readCounters(w.root)
	w.began = time.Now()
	return w
}

// Stop returns what the machine did since the start of the watch. Theirs is the CPU time that the contenders used meanwhile as
// far as it was seen; a child that has ended is counted from its start to its end all the same. What neither they nor this
// process used is others'. What this system does not count is nil.
func (w *Watch) Stop(theirs time.Duration) result.Noise {
	elapsed := time.Since(w.began)
	ours := record.ReadCPU() - w.ours + max(theirs, childrenCPU()-w.kids)
	return between(w.first, readCounters(w.root), elapsed, ours)
}

// counters are those of the whole machine since it started. What could not be read is nil.
type counters struct {
	load           *float64
	cpu, mem, disk *time.Duration // pressure: time in which something waited for it
	stat           *stat
}

// stat is what /proc/stat says of all processors together.
type stat struct {
	busy, steal time.Duration // busy leaves out idle, waiting for I/O, and stolen time
	cores       int
	switches    int64
}

func readCounters(root fs.FS) counters {
	return counters{
		load: readOne(root, loadFile, parseLoad),
		cpu:  readOne(root, pressureDir+"cpu", parsePressure),
		mem:  readOne(root, pressureDir+"memory", parsePressure),
		disk: readOne(root, pressureDir+"io", parsePressure),
		stat: readOne(root, statFile, parseStat),
	}
}

const (
	loadFile    = "proc/loadavg"
	pressureDir = "proc/pressure/"
	statFile    = "proc/stat"
)

func readOne[T any](root fs.FS, name string, parse func(string) (T, error)) *T {
	s, err := readText(root, name)
	if err != nil {
		return nil
	}
	v, err := parse(s)
	if err != nil {
		return nil
	}
	return &v
}

// noise says before the run which counters a Watch won't find.
func (r *reader) noise() {
	parsed(r, "noise.load1_start", loadFile, parseLoad)
	parsed(r, "noise.load1_end", loadFile, parseLoad)
	parsed(r, "noise.psi_cpu_some_percent", pressureDir+"cpu", parsePressure)
	parsed(r, "noise.psi_memory_some_percent", pressureDir+"memory", parsePressure)
	parsed(r, "noise.psi_io_some_percent", pressureDir+"io", parsePressure)
	for _, field := range []string{"steal_percent", "others_cpu_percent", "context_switches_per_s"} {
		parsed(r, "noise."+field, statFile, parseStat)
	}
}

// between is what happened from a to b.
func between(a, b counters, elapsed, ours time.Duration) result.Noise {
	n := result.Noise{Load1Start: a.load, Load1End: b.load}
	if elapsed <= 0 {
		return n
	}
	n.PSICPUSome = share(a.cpu, b.cpu, elapsed)
	n.PSIMemSome = share(a.mem, b.mem, elapsed)
	n.PSIIOSome = share(a.disk, b.disk, elapsed)
	if a.stat == nil || b.stat == nil {
		return n
	}
	all := elapsed * time.Duration(a.stat.cores)
	n.Steal = share(&a.stat.steal, &b.stat.steal, all)
	// Ticks are coarse: on a quiet machine, ours can come out above all that was counted. Others then used nothing to speak of.
	others := max(b.stat.busy-a.stat.busy-ours, 0)
	n.OthersCPU = share(new(time.Duration), &others, all)
	if d := b.stat.switches - a.stat.switches; d >= 0 {
		n.ContextSwitches = new(int64(float64(d) / elapsed.Seconds()))
	}
	return n
}

// share returns in percent of what a counter grew. One that went back, as stolen time may when a guest is moved to another
// host, tells nothing.
func share(a, b *time.Duration, of time.Duration) *float64 {
	if a == nil || b == nil || *b < *a {
		return nil
	}
	return new(result.Round3(100 * float64(*b-*a) / float64(of)))
}

func parseLoad(s string) (float64, error) {
	first, _, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil || !(v >= 0 && v < 1e9) {
		return 0, fmt.Errorf("load %q: %w", first, errMalformed)
	}
	return v, nil
}

// parsePressure takes the total of the line "some avg10=… avg60=… avg300=… total=µs".
func parsePressure(text string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "some" {
			continue
		}
		total, ok := strings.CutPrefix(f[len(f)-1], "total=")
		us, err := strconv.ParseUint(total, 10, 53)
		if ok && err == nil {
			return time.Duration(us) * time.Microsecond, nil
		}
	}
	return 0, fmt.Errorf("pressure: %w", errMalformed)
}

// parseStat takes the sum line "cpu user nice system idle iowait irq softirq steal …", counts the lines of single
// processors, and takes the context switches. Guest time is within user time.
func parseStat(text string) (stat, error) {
	var s stat
	summed, counted := false, false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 8 && f[0] == "cpu":
			ticks, err := parseTicks(f[1:min(len(f), 9)])
			if err != nil {
				return stat{}, err
			}
			s.busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
			if len(ticks) > 7 { // since Linux 2.6.11
				s.steal = ticks[7]
			}
			summed = true
		case len(f) > 1 && strings.HasPrefix(f[0], "cpu"):
			s.cores++
		case len(f) == 2 && f[0] == "ctxt":
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return stat{}, fmt.Errorf("context switches %q: %w", f[1], errMalformed)
			}
			s.switches, counted = n, true
		}
	}
	if !summed || !counted || s.cores == 0 {
		return stat{}, fmt.Errorf("processor times: %w", errMalformed)
	}
	return s, nil
}

func parseTicks(fields []string) ([]time.Duration, error) {
	out := make([]time.Duration, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 39) // in ns, the sum of five stays an int64
		if err != nil {
			return nil, fmt.Errorf("ticks %q: %w", f, errMalformed)
		}
		out[i] = time.Duration(n) * tick
	}
	return out, nil
}
