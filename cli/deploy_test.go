package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"toll/cli"
)

// flagsOf are the long flags that a verb's help names.
func flagsOf(t *testing.T, verb string) []string {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Main([]string{verb, "--help"}, strings.NewReader(""), &out, io.Discard); code != 0 {
		t.Fatalf("toll %s --help: exit code %d", verb, code)
	}
	return regexp.MustCompile(`--[a-z0-9-]+`).FindAllString(out.String(), -1)
}

// understood fails when arguments hold a flag that toll does not know.
func understood(t *testing.T, where string, args []string) {
	t.Helper()
	if len(args) == 0 || args[0] != "run" && args[0] != "worker" {
		t.Errorf("%s: arguments %q: want run or worker first", where, args)
		return
	}
	known := flagsOf(t, args[0])
	for _, a := range args[1:] {
		if name, _, _ := strings.Cut(a, "="); strings.HasPrefix(a, "--") && !slices.Contains(known, name) {
			t.Errorf("%s: toll %s has no flag %s", where, args[0], name)
		}
	}
}

// What a manifest of Kubernetes must have, as far as these examples use it; an unknown field is an error.
type (
	metadata struct {
		Name   string
		Labels map[string]string
	}
	manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			Selector map[string]string
			Ports    []struct {
				Name       string
				Port       int
				TargetPort int `yaml:"targetPort"`
			}
			Completions, Parallelism int
			CompletionMode           string `yaml:"completionMode"`
			BackoffLimit             *int   `yaml:"backoffLimit"`
			Template                 struct {
				Metadata metadata
				Spec     podSpec
			}
		}
	}
	podSpec struct {
		RestartPolicy             string           `yaml:"restartPolicy"`
		TopologySpreadConstraints []map[string]any `yaml:"topologySpreadConstraints"`
		Containers                []struct {
			Name, Image string
			Args        []string
			Env         []struct {
				Name      string
				ValueFrom map[string]map[string]string `yaml:"valueFrom"`
			}
			Ports        []map[string]int
			Resources    map[string]map[string]string
			VolumeMounts []struct {
				Name      string
				MountPath string `yaml:"mountPath"`
				ReadOnly  bool   `yaml:"readOnly"`
			} `yaml:"volumeMounts"`
		}
		Volumes []struct {
			Name      string
			ConfigMap map[string]string `yaml:"configMap"`
			EmptyDir  map[string]string `yaml:"emptyDir"`
		}
	}
)

func TestTheKubernetesManifestIsOne(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	api := map[string]string{"Service": "v1", "Job": "batch/v1"}
	selected, labelled := map[string]bool{}, map[string]bool{}
	jobs := 0
	for {
		var m manifest
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if api[m.Kind] != m.APIVersion || m.APIVersion == "" || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString(m.Metadata.Name) {
			t.Errorf("%s of %s named %q", m.Kind, m.APIVersion, m.Metadata.Name)
		}
		if m.Kind == "Service" {
			selected[m.Spec.Selector["app"]] = true
			continue
		}
		jobs++
		pod := m.Spec.Template.Spec
		labelled[m.Spec.Template.Metadata.Labels["app"]] = true
		if pod.RestartPolicy != "Never" || m.Spec.BackoffLimit == nil || *m.Spec.BackoffLimit != 0 || len(pod.Containers) != 1 {
			t.Errorf("job %s: a process that ended must not be started anew", m.Metadata.Name)
		}
		mounted := map[string]bool{}
		for _, v := range pod.Volumes {
			mounted[v.Name] = true
		}
		for _, c := range pod.Containers {
			understood(t, m.Metadata.Name, c.Args)
			for _, v := range c.VolumeMounts {
				if !mounted[v.Name] || !strings.HasPrefix(v.MountPath, "/") {
					t.Errorf("job %s mounts %q at %q", m.Metadata.Name, v.Name, v.MountPath)
				}
			}
		}
	}
	for app := range selected {
		if !labelled[app] {
			t.Errorf("a service selects %s, and nothing is called so", app)
		}
	}
	if jobs != 2 || len(selected) != 1 {
		t.Errorf("%d jobs, %d services", jobs, len(selected))
	}
}

func TestTheUnitFileIsOne(t *testing.T) {
	t.Parallel()
	file := "../docs/deploy/toll-worker.service"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{
		"Unit": "Description Documentation Wants After", "Install": "WantedBy",
		"Service": "Type EnvironmentFile ExecStart Restart StateDirectory DynamicUser LimitNOFILE OOMScoreAdjust NoNewPrivileges ProtectSystem ProtectHome PrivateTmp",
	}
	section, command := "", ""
	for i, line := range strings.Split(string(data), "\n") {
		switch key, value, has := strings.Cut(line, "="); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			if section = strings.Trim(line, "[]"); known[section] == "" {
				t.Errorf("line %d: section %s", i+1, section)
			}
		case !has || !slices.Contains(strings.Fields(known[section]), key):
			t.Errorf("line %d: %q in section %s", i+1, line, section)
		case key == "ExecStart":
			command = value
		}
	}
	_, args, ok := strings.Cut(command, " toll ")
	if !ok {
		t.Fatalf("ExecStart is %q", command)
	}
	understood(t, "ExecStart", strings.Fields(args))
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Logf("systemd-analyze is not here; the file was looked at line by line")
		return
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(verify, "verify", "--man=no", "--recursive-errors=no", whole).CombinedOutput(); err != nil && strings.Contains(string(out), "toll-worker.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// Three hosts as namespaces, through one NATS server: the example of docs/deploy, as it stands there.
func TestTheThreeHostExampleRuns(t *testing.T) {
	t.Parallel()
	need := os.Getenv("TOLL_RUN_ALL") != ""
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		if need {
			t.Fatal("it needs Linux and root")
		}
		t.Skip("it needs Linux and root; CI runs it")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		if need {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 { // side by side: each takes a network of its own
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			threeHosts(t, self)
		})
	}
}

func threeHosts(t *testing.T, self string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "../docs/deploy/three-hosts.sh", self, t.TempDir())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // its trap removes what it made
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// On a machine that stood still meanwhile calls may have failed; each is accounted for all the same.
	for _, want := range []string{" 1000 in ", "2 of 2 workers complete, 12 of 12 slices", "publishable"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
