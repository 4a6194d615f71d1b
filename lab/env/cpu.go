package env

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

const cpuDir = "sys/devices/system/cpu/"

func (r *reader) cpu() {
	c := &r.env.CPU
	if c.BrandCPUID = r.sys.brandCPUID; c.BrandCPUID == "" {
		r.miss("cpu.brand_cpuid", "this kind of processor does not name itself")
	}
	info := r.cpuinfo()
	if c.BrandOS = info.brand; c.BrandOS == "" {
		r.miss("cpu.brand_os", info.whyNot)
	}
	c.Logical = r.online()
	if c.Affinity = r.sys.affinity; c.Affinity == nil {
		r.miss("cpu.affinity", "this system does not tell")
	}
	c.NUMANodes = parsed(r, "cpu.numa_nodes", "sys/devices/system/node/online", countList)
	c.SMT = parsed(r, "cpu.smt", cpuDir+"smt/active", parseSwitch)
	if c.Physical = r.physical(); c.Physical == nil {
		r.miss("cpu.physical", "no core list in /"+cpuDir)
	}
	c.MHz = r.mhz(info)
	if c.Governor = strings.Join(r.each(cpuDir+"cpu[0-9]*/cpufreq/scaling_governor"), ", "); c.Governor == "" {
		r.miss("cpu.governor", "no cpufreq on this machine")
	}
	r.turbo()
}

// online counts the machine's processors, also those that our affinity keeps from us.
func (r *reader) online() int {
	if s, err := readText(r.root, cpuDir+"online"); err == nil {
		if n, err := countList(s); err == nil {
			return n
		}
	}
	return r.sys.logical
}

// physical counts the distinct sets of sibling threads.
func (r *reader) physical() *int {
	if r.sys.physical > 0 {
		return &r.sys.physical
	}
	if n := len(r.each(cpuDir + "cpu[0-9]*/topology/thread_siblings_list")); n > 0 {
		return &n
	}
	return nil
}

// mhz prefers the highest speed that the driver allows to the speed of the moment, and that to CPUID's word.
func (r *reader) mhz(info cpuinfo) *float64 {
	mhz := info.mhz
	for _, s := range r.each(cpuDir + "cpu[0-9]*/cpufreq/cpuinfo_max_freq") {
		if khz, err := parseInt(s); err == nil {
			mhz = max(mhz, float64(khz)/1000)
		}
	}
	if mhz == 0 {
		mhz = r.sys.mhz
	}
	if mhz == 0 {
		r.miss("cpu.mhz", "neither cpufreq nor the processor list nor CPUID tells")
		return nil
	}
	return new(math.Round(mhz))
}

// turbo looks where the two kinds of driver keep their switch; Intel's says "no turbo".
func (r *reader) turbo() {
	for _, s := range []struct {
		name string
		on   bool
	}{{"intel_pstate/no_turbo", false}, {"cpufreq/boost", true}} {
		text, err := readText(r.root, cpuDir+s.name)
		if err != nil {
			continue
		}
		if v, err := parseSwitch(text); err == nil {
			r.env.CPU.Turbo = new(v == s.on)
			return
		}
	}
	r.miss("cpu.turbo", "no switch for it is visible")
}

// each returns the distinct contents of the files that match, sorted.
func (r *reader) each(pattern string) []string {
	names, err := fs.Glob(r.root, pattern)
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range names {
		if s, err := readText(r.root, name); err == nil && s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// cpuinfo is what /proc/cpuinfo says of the first processor, and the highest speed of all.
type cpuinfo struct {
	brand  string
	mhz    float64
	whyNot string // there is no brand
}

func (r *reader) cpuinfo() cpuinfo {
	if r.sys.brandOS != "" {
		return cpuinfo{brand: r.sys.brandOS}
	}
	const name = "proc/cpuinfo"
	text, err := readText(r.root, name)
	if err != nil {
		return cpuinfo{whyNot: why(name, err)}
	}
	return parseCPUInfo(text)
}

// parseCPUInfo takes "model name"; 64-bit ARM has none, and its numbers stand in.
func parseCPUInfo(text string) cpuinfo {
	out := cpuinfo{whyNot: "no model in /proc/cpuinfo"}
	var implementer, part string
	for line := range strings.Lines(text) {
		switch name, value := colonLine(line); name {
		case "model name", "cpu model":
			if out.brand == "" {
				out.brand = value
			}
		case "CPU implementer":
			implementer = value
		case "CPU part":
			part = value
		case "cpu MHz":
			if v, err := strconv.ParseFloat(value, 64); err == nil && v > out.mhz && v < math.Inf(1) {
				out.mhz = v
			}
		}
	}
	if out.brand == "" && implementer != "" && part != "" {
		out.brand = fmt.Sprintf("implementer %s part %s", implementer, part)
	}
	return out
}
