package env

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"toll/lab/result"
)

var update = flag.Bool("update", false, "rewrite the wanted parts of testdata")

// A fixture is a txtar file: pseudo-files, and "want".
type fixture struct {
	name string
	ar   *txtar.Archive
	root fs.FS
	want string
}

func fixtures(t *testing.T, dir string) []fixture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures in %s: %v", dir, err)
	}
	var out []fixture
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		root, err := txtar.FS(ar)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := fs.ReadFile(root, "want")
		out = append(out, fixture{name: file, ar: ar, root: root, want: string(want)})
	}
	return out
}

// check compares, or with -update rewrites, the fixture's "want".
func (f *fixture) check(t *testing.T, got string) {
	t.Helper()
	if *update {
		f.ar.Files = slices.DeleteFunc(f.ar.Files, func(x txtar.File) bool { return x.Name == "want" })
		f.ar.Files = append(f.ar.Files, txtar.File{Name: "want", Data: []byte(got)})
		if err := os.WriteFile(f.name, txtar.Format(f.ar), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(f.want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", f.name, d)
	}
}

func noEnv(string) string { return "" }

// someSystem is what system calls tell in the fixtures.
func someSystem() system {
	return system{
		os: "linux", arch: "arm64", env: noEnv, logical: 3, nofile: new(uint64(1024)),
		connections: func(int) (func(), error) { return func() {}, nil },
	}
}

func TestMachinesAreReadAndWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t, "machine") {
		e := read(t.Context(), f.root, someSystem())
		e.Client.GOMAXPROCS, e.Client.GOGC, e.Client.GOMEMLIMIT = 0, "of the test", "of the test"
		f.check(t, string(document(t, e)))
		everyNullIsNamed(t, f.name, e)
		if bytes.Contains(document(t, e), []byte("SECRET")) {
			t.Errorf("%s: a host, user or serial name went into the document", f.name)
		}
	}
}

func TestThisMachineIsRead(t *testing.T) {
	t.Parallel()
	e := Read(t.Context())
	everyNullIsNamed(t, "this machine", e)
	if e.CPU.Logical < 1 || e.Client.GOMAXPROCS < 1 || e.OS.Name == "" || e.OS.Arch == "" || e.MachineKey != Machine() {
		t.Errorf("a fact that every machine has is missing: %+v", e)
	}
}

func TestNeitherHostNameNorPathIsTold(t *testing.T) {
	t.Parallel()
	got := document(t, Read(t.Context()))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	for _, secret := range []string{host, dir, home} {
		if len(secret) < 2 {
			continue
		}
		// A host that is called "vm" must not trip over "kvm".
		word := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(secret) + `($|[^\w-])`)
		if at := word.FindIndex(got); at != nil && !word.Match(document(t, read(t.Context(), fstest.MapFS{}, someSystem()))) {
			t.Errorf("%q is in the document: …%s…", secret, got[max(at[0]-40, 0):min(at[1]+40, len(got))])
		}
	}
}

func TestACancelledReadSaysWhatItDidNotRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := Read(ctx)
	var names []string
	for _, s := range e.NotVisible {
		name, _, _ := strings.Cut(s, ":")
		names = append(names, name)
	}
	want := []string{"cpu", "memory_mb", "os", "cgroup", "client", "noise"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("not read (-want +got):\n%s", d)
	}
}

func TestTheKeyIsThatOfTheMachineType(t *testing.T) {
	t.Parallel()
	some := func() *result.Environment {
		e := &result.Environment{MemoryMB: new(int64(16_000))}
		e.CPU = result.CPU{BrandCPUID: "AMD EPYC", BrandOS: "AMD EPYC", Logical: 4}
		e.OS = result.OS{Name: "linux", Arch: "amd64", Kernel: "6.18.44-fc", Hypervisor: "KVM"}
		return e
	}
	base := key(some())
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(base) {
		t.Errorf("key %q", base)
	}
	for name, x := range map[string]struct {
		change func(e *result.Environment)
		same   bool
	}{
		"kernel patch": {func(e *result.Environment) { e.OS.Kernel = "6.18.9" }, true},
		"kernel minor": {func(e *result.Environment) { e.OS.Kernel = "6.19.44-fc" }, false},
		"some MB":      {func(e *result.Environment) { *e.MemoryMB += 90 }, true},
		"two GiB":      {func(e *result.Environment) { *e.MemoryMB += 2048 }, false},
		"spaces":       {func(e *result.Environment) { e.CPU.BrandCPUID = "AMD  EPYC " }, true},
		"brand":        {func(e *result.Environment) { e.CPU.BrandCPUID = "AMD EPYC 2" }, false},
		"no CPUID":     {func(e *result.Environment) { e.CPU.BrandCPUID = "" }, true},
		"processors":   {func(e *result.Environment) { e.CPU.Logical = 8 }, false},
		"affinity":     {func(e *result.Environment) { e.CPU.Affinity = new(int) }, true},
		"container":    {func(e *result.Environment) { e.OS.Container = "docker" }, true},
		"tracking":     {func(e *result.Environment) { e.OS.Conntrack = new(true) }, true},
		"architecture": {func(e *result.Environment) { e.OS.Arch = "arm64" }, false},
		"system":       {func(e *result.Environment) { e.OS.Name = "darwin" }, false},
		"hypervisor":   {func(e *result.Environment) { e.OS.Hypervisor = noneSeen }, false},
		"no memory":    {func(e *result.Environment) { e.MemoryMB = nil }, false},
	} {
		e := some()
		x.change(e)
		if got := key(e); (got == base) != x.same {
			t.Errorf("another %s: same key %v, want %v", name, got == base, x.same)
		}
	}
}

func TestContainersAreKnownByTheirMarkers(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ file, content, env, want string }{
		{"etc/nothing", "", "", noneSeen},
		{".dockerenv", "", "", "docker"},
		{"run/.containerenv", "", "", "podman"},
		{"proc/self/cgroup", "0::/kubepods/pod1", "", "kubernetes"},
		{"proc/self/cgroup", "3:cpu:/docker/0a1b", "", "docker"},
		{"proc/self/cgroup", "0::/lxc.payload.SECRET", "", "lxc"},
		{"proc/sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2", "", "wsl"},
		{"etc/nothing", "", "systemd-nspawn", "systemd-nspawn"},
		{"etc/nothing", "", "SECRET", "of a kind we do not know"},
	} {
		sys := someSystem()
		sys.env = func(name string) string { return map[string]string{"container": x.env}[name] }
		e := read(t.Context(), fstest.MapFS{x.file: {Data: []byte(x.content)}}, sys)
		if e.OS.Container != x.want {
			t.Errorf("%s %q, container=%q: %q, want %q", x.file, x.content, x.env, e.OS.Container, x.want)
		}
	}
}

func TestHypervisorsAreKnownByProcessorOrFirmware(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ cpu, xen, vendor, product, want string }{
		{"", "", "", "", noneSeen},
		{"", "", "Dell Inc.", "PowerEdge R640", noneSeen},
		{"", "", "Amazon EC2", "c5.metal", noneSeen},
		{"", "", "QEMU", "QEMU Virtual Machine", "QEMU Virtual Machine"},
		{"KVM", "", "", "", "KVM"},
		{"KVM", "", "Google", "Google Compute Engine", "KVM (Google Compute Engine)"},
		{"", "xen\n", "", "", "xen"},
	} {
		root := fstest.MapFS{}
		for name, s := range map[string]string{"hypervisor/type": x.xen, "class/dmi/id/sys_vendor": x.vendor, "class/dmi/id/product_name": x.product} {
			if s != "" {
				root["sys/"+name] = &fstest.MapFile{Data: []byte(s)}
			}
		}
		sys := someSystem()
		sys.hypervisor = x.cpu
		if got := read(t.Context(), root, sys).OS.Hypervisor; got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

func TestListsAreCounted(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"0": 1, "0-3": 4, "0-3,8,10-11": 7, "": -1, "a": -1, "3-1": -1, "0-": -1, "-1": -1, "0,,1": -1} {
		got, err := countList(s)
		if want < 0 && err == nil || want >= 0 && got != want {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
}

func document(t *testing.T, e result.Environment) []byte {
	t.Helper()
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// everyNullIsNamed checks both ways: a field that says nothing has a reason, and a reason is that of a field.
func everyNullIsNamed(t *testing.T, of string, e result.Environment) {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal(document(t, e), &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree, "lab") // measured by others than Read
	leaves := make(map[string]any)
	flatten("", tree, leaves)
	named := make(map[string]bool)
	for _, s := range e.NotVisible {
		name, reason, ok := strings.Cut(s, ": ")
		if _, known := leaves[name]; !known || !ok || reason == "" {
			t.Errorf("%s: not_visible has %q, which names no field and reason", of, s)
		}
		named[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(leaves)) {
		v := leaves[name]
		empty := v == nil || v == "" || fmt.Sprint(v) == "map[]"
		if empty && !named[name] && !strings.HasPrefix(name, "noise.") {
			t.Errorf("%s: %s says nothing, and not_visible does not say why", of, name)
		}
	}
}

func flatten(prefix string, v any, into map[string]any) {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		into[strings.TrimSuffix(prefix, ".")] = v
		return
	}
	for k, x := range m {
		flatten(prefix+k+".", x, into)
	}
}
