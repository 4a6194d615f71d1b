package env

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inNamespace is what makes the test binary tell what it sees in the network namespace that it is in.
const inNamespace = "ENV_TEST_CONNTRACK"

func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) == "" {
		os.Exit(m.Run())
	}
	defer os.Exit(0)
	r := reader{root: os.DirFS("/"), sys: askSystem()}
	if r.conntrack(); r.env.OS.Conntrack == nil {
		fmt.Println(r.env.NotVisible)
		return
	}
	fmt.Println(*r.env.OS.Conntrack)
}

// apart runs a script in a network namespace of its own, never in the machine's: whoever measures there would pay for the rules.
func apart(script, rules string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", script, self)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdin = strings.NewReader(rules)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestConnectionsAreTrackedWhereARuleAsksForIt(t *testing.T) {
	t.Parallel()
	if out, err := apart("ip link set lo up && nft -f -", "add table ip toll\n"); err != nil {
		cannot(t, "no network namespace with rules can be made here; it takes privileges, ip (iproute2) and nft (nftables): %v: %s", err, out)
	}
	for name, x := range map[string]struct{ rules, want string }{
		"no rules":                              {"", "false"},
		"a translation":                         {"add chain ip nat out { type nat hook postrouting priority 100; }\nadd rule ip nat out ip saddr 10.88.0.0/16 masquerade\n", "true"},
		"translations, of which there are none": {"add chain ip nat out { type nat hook output priority -100; }\n", "false"},
		"a firewall that knows states":          {"add chain ip nat in { type filter hook input priority 0; }\nadd rule ip nat in ct state established accept\n", "true"},
		"a firewall that leaves loopback out": {"add chain ip nat raw { type filter hook output priority -300; }\nadd rule ip nat raw oif lo notrack\n" +
			"add chain ip nat in { type filter hook input priority 0; }\nadd rule ip nat in ct state established accept\n", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := apart(`ip link set lo up && nft -f - && exec "$0"`, "add table ip nat\n"+x.rules)
			if err != nil || got != x.want {
				t.Errorf("tracked: %s, %v; want %s", got, err, x.want)
			}
		})
	}
	t.Run("loopback that is down", func(t *testing.T) {
		t.Parallel()
		want := "[os.conntrack: no connections can be made over loopback to try it]"
		if got, err := apart(`exec "$0"`, ""); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	})
}

// cannot skips a test that this machine can't run, unless all must run.
func cannot(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("TOLL_RUN_ALL") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
