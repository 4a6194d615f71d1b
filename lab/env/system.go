package env

import (
	"os"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// system is what only instructions and system calls tell. Where a pseudo-file tells the same, its zero value leaves the
// question to the file.
type system struct {
	os, arch   string
	env        func(name string) string // of the process
	brandCPUID string
	hypervisor string // "" when the processor names none
	mhz        float64
	logical    int

	brandOS, kernel string
	memory          int64 // bytes
	physical        int
	affinity        *int
	nofile          *uint64

	connections func(n int) (end func(), err error) // opens some over loopback; nil where the answer is not asked for
}

func askSystem() system {
	s := system{
		os: runtime.GOOS, arch: runtime.GOARCH, env: os.Getenv, logical: runtime.NumCPU(), nofile: openFiles(),
		brandCPUID: strings.TrimSpace(cpuid.CPU.BrandName),
		hypervisor: hypervisorOf(&cpuid.CPU),
		mhz:        float64(cpuid.CPU.Hz) / 1e6,
	}
	s.ask()
	return s
}

func hypervisorOf(c *cpuid.CPUInfo) string {
	switch {
	case !c.Has(cpuid.HYPERVISOR):
		return ""
	case c.HypervisorVendorID == cpuid.MSVM:
		return "Hyper-V"
	case c.HypervisorVendorID != cpuid.VendorUnknown:
		return c.HypervisorVendorID.String()
	}
	if s := strings.TrimFunc(c.HypervisorVendorString, func(r rune) bool { return r <= ' ' || r > '~' }); s != "" {
		return s
	}
	return "unnamed"
}
