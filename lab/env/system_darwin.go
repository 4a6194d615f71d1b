package env

import (
	"math"

	"golang.org/x/sys/unix"
)

func (s *system) ask() {
	s.brandOS, _ = unix.Sysctl("machdep.cpu.brand_string")
	s.kernel, _ = unix.Sysctl("kern.osrelease")
	if n, err := unix.SysctlUint32("hw.physicalcpu"); err == nil {
		s.physical = int(n)
	}
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil && n < math.MaxInt64 {
		s.memory = int64(n)
	}
	if s.hypervisor != "" {
		return
	}
	if n, err := unix.SysctlUint32("kern.hv_vmm_present"); err == nil && n == 1 {
		s.hypervisor = "unnamed"
	}
}
