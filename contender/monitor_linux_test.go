package contender

import (
	"strings"
	"testing"
)

func TestMonitorsAreKnownByTheirCommandLines(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0a", 32)
	line := func(args ...string) string { return strings.Join(args, "\x00") + "\x00" }
	want := monitor{"runc", id, "toll-1-2-3-abcdefgh"}
	for name, x := range map[string]struct {
		line string
		ok   bool
	}{
		"as podman 4 has it": {line("/usr/bin/conmon", "--api-version", "1", "-c", id, "-u", id, "-r", "/usr/sbin/runc", "-n", want.name, "--runtime-arg", "--log-format=json",
			"--exit-command", "/usr/bin/podman", "--exit-command-arg", "--runtime", "--exit-command-arg", "crun", "--exit-command-arg", "-c"), true},
		"long flags":          {line("conmon", "--cid", id, "--runtime", "runc", "--name", want.name), true},
		"another program":     {line("/usr/bin/sh", "-c", id, "-r", "runc", "-n", want.name), false},
		"another runtime":     {line("conmon", "-c", id, "-r", "/tmp/mine", "-n", want.name), false},
		"no runtime":          {line("conmon", "-c", id, "-n", want.name), false},
		"an id that is none":  {line("conmon", "-c", "--force", "-r", "runc", "-n", want.name), false},
		"an id that is short": {line("conmon", "-c", "0a", "-r", "runc", "-n", want.name), false},
		"a flag at the end":   {line("conmon", "-r", "runc", "-n", want.name, "-c"), false},
		"nothing":             {"", false},
		"a name only":         {"conmon", false},
	} {
		got, ok := parseMonitor([]byte(x.line))
		if ok != x.ok || ok && got != want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func FuzzMonitor(f *testing.F) {
	f.Add("conmon\x00-c\x000a\x00-r\x00runc\x00-n\x00toll-1-2-3-x\x00")
	f.Add("conmon")
	f.Add("")
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := parseMonitor([]byte(line)); ok && (len(m.id) != 64 || m.runtime != "runc" && m.runtime != "crun") {
			t.Errorf("%q: %+v", line, m)
		}
	})
}
