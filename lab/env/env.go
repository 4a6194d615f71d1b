package env

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"

	"toll/lab/result"
)

// Read returns all that stays the same during a run; LabCost and a Watch give the rest. A field that is null or empty is
// named in NotVisible with the reason. When ctx ends, what was not yet read is not read, and says so.
func Read(ctx context.Context) result.Environment {
	return read(ctx, os.DirFS("/"), askSystem())
}

// Machine returns the machine's key, made of rounded facts only, so that another machine of the same type has the same key:
// processor brand, online processors, memory to the GiB, system, architecture, kernel to the minor version, hypervisor.
func Machine() string { return Read(context.Background()).MachineKey }

func read(ctx context.Context, root fs.FS, sys system) result.Environment {
	r := reader{root: root, sys: sys}
	r.env.NotVisible = []string{}
	r.env.OS.Mitigations = map[string]string{}
	for _, s := range []struct {
		name string
		read func()
	}{
		{"cpu", r.cpu}, {"memory_mb", r.memory}, {"os", r.os}, {"cgroup", r.cgroup}, {"client", r.client}, {"noise", r.noise},
	} {
		if err := ctx.Err(); err != nil {
			r.miss(s.name, "not read: "+err.Error())
			continue
		}
		s.read()
	}
	r.env.MachineKey = key(&r.env)
	return r.env
}

// A reader reads one machine.
type reader struct {
	root fs.FS
	sys  system
	env  result.Environment
}

// miss says that a field, named as in the document, was not seen, and why. Reasons are our own words: an error's text could
// hold a path.
func (r *reader) miss(field, reason string) {
	r.env.NotVisible = append(r.env.NotVisible, field+": "+reason)
}

// key uses 16 hex digits: enough to tell machine types apart, and no secret.
func key(e *result.Environment) string {
	brand := e.CPU.BrandCPUID
	if brand == "" {
		brand = e.CPU.BrandOS
	}
	var gib float64
	if e.MemoryMB != nil {
		gib = math.Round(float64(*e.MemoryMB) / 1024)
	}
	facts := fmt.Sprintf("%s|%d|%.0f GiB|%s|%s|%s|%s", strings.Join(strings.Fields(brand), " "), e.CPU.Logical, gib, e.OS.Name,
		e.OS.Arch, majorMinor(e.OS.Kernel), e.OS.Hypervisor)
	sum := sha256.Sum256([]byte(facts))
	return hex.EncodeToString(sum[:8])
}

// majorMinor cuts "6.18.44-generic" to "6.18".
func majorMinor(kernel string) string {
	major, rest, _ := strings.Cut(kernel, ".")
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(rest)
	}
	return major + "." + rest[:end]
}
