package env

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// noneSeen is said of a hypervisor or container that left no sign, which does not prove that there is none.
const noneSeen = "none seen"

func (r *reader) memory() {
	bytes := r.sys.memory
	if bytes == 0 {
		if v := parsed(r, "memory_mb", "proc/meminfo", parseMemTotal); v != nil {
			bytes = *v
		}
	}
	if bytes > 0 {
		r.env.MemoryMB = new(bytes >> 20)
	}
}

func parseMemTotal(text string) (bytes int64, err error) {
	for line := range strings.Lines(text) {
		name, value := colonLine(line)
		if name != "MemTotal" {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err == nil && kb > 0 && kb < 1<<50 {
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("MemTotal: %w", errMalformed)
}

func (r *reader) os() {
	o := &r.env.OS
	o.Name, o.Arch = r.sys.os, r.sys.arch
	if o.Kernel = r.sys.kernel; o.Kernel == "" {
		o.Kernel = r.text("os.kernel", "proc/sys/kernel/osrelease")
	}
	o.Clocksource = r.text("os.clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource")
	o.Hypervisor = r.hypervisor()
	o.Container = r.container()
	r.mitigations()
	r.conntrack()
}

func (r *reader) mitigations() {
	const dir = cpuDir + "vulnerabilities"
	files, err := fs.ReadDir(r.root, dir)
	if err != nil || len(files) == 0 {
		r.miss("os.mitigations", why(dir, fs.ErrNotExist))
	}
	for _, f := range files {
		if s, err := readText(r.root, path.Join(dir, f.Name())); err == nil {
			r.env.OS.Mitigations[f.Name()] = s
		}
	}
}

// hypervisor asks the processor, Xen's own folder and the firmware's product name; never its serial numbers.
func (r *reader) hypervisor() string {
	name := r.sys.hypervisor
	if name == "" {
		name, _ = readText(r.root, "sys/hypervisor/type")
	}
	vendor, _ := readText(r.root, "sys/class/dmi/id/sys_vendor")
	product, _ := readText(r.root, "sys/class/dmi/id/product_name")
	firmware := strings.Join(strings.Fields(vendor+" "+product), " ")
	if strings.HasPrefix(product, vendor) {
		firmware = product
	}
	switch {
	case name == "" && !virtualProduct(firmware):
		return noneSeen
	case name == "":
		return firmware
	case firmware == "":
		return name
	}
	return name + " (" + firmware + ")"
}

// virtualProduct reports whether firmware that calls itself so runs on a hypervisor: the only sign where the processor has
// no word for it, as on 64-bit ARM.
func virtualProduct(s string) bool {
	if strings.HasPrefix(s, "Amazon EC2") {
		return !strings.Contains(s, ".metal")
	}
	return slices.ContainsFunc([]string{
		"KVM", "QEMU", "VirtualBox", "VMware", "Xen", "Virtual Machine", "Google Compute Engine", "OpenStack", "Parallels",
		"Apple Virtualization", "Alibaba Cloud ECS", "Droplet", "BHYVE", "Firecracker",
	}, func(sign string) bool { return strings.Contains(s, sign) })
}

// container goes from the surest marker to the weakest.
func (r *reader) container() string {
	groups, _ := readText(r.root, "proc/self/cgroup")
	has := func(name string) bool { _, err := fs.Stat(r.root, name); return err == nil }
	switch {
	case r.sys.env("KUBERNETES_SERVICE_HOST") != "" || strings.Contains(groups, "/kubepods"):
		return "kubernetes"
	case has("run/.containerenv"):
		return "podman"
	case has(".dockerenv") || strings.Contains(groups, "/docker"):
		return "docker"
	case strings.Contains(groups, "/lxc"):
		return "lxc"
	case strings.Contains(strings.ToLower(r.env.OS.Kernel), "microsoft"):
		return "wsl"
	}
	// The variable is systemd's convention. Its value is anyone's, so only names that we know are repeated.
	switch v := r.sys.env("container"); v {
	case "":
		return noneSeen
	case "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman", "oci", "rkt", "wsl", "proot", "pouch":
		return v
	}
	return "of a kind we do not know"
}
