package contender_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"toll/contender"
	"toll/contender/limits"
	"toll/contender/owner"
)

// boxed makes an image of testdata/boxed and returns its name and the runtime; without a runtime that really runs
// containers, the test is skipped and says what failed.
func boxed(t *testing.T) (image, runtime string) {
	t.Helper()
	dir := t.TempDir()
	goBuild := exec.Command("go", "build", "-o", filepath.Join(dir, "boxed"), "./testdata/boxed")
	goBuild.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := goBuild.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, dir, "Dockerfile", "FROM scratch\nCOPY boxed /boxed\nLABEL org.opencontainers.image.version=\"4.2\"\nENTRYPOINT [\"/boxed\"]\n")
	// Rights to raise a limit and cgroups v2 are not everywhere; these settings ask for neither.
	conf := write(t, dir, "containers.conf", "[engine]\nruntime = \"runc\"\n[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n")
	image = "localhost/toll-boxed:" + strings.ToLower(filepath.Base(filepath.Dir(dir)))
	var tried []string
	try := func(args ...string) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
		if err != nil {
			tried = append(tried, strings.Join(args[:2], " ")+": "+err.Error()+": "+strings.TrimSpace(string(out)))
		}
		return err == nil
	}
	for _, name := range []string{"docker", "podman"} {
		path, err := exec.LookPath(name)
		if err != nil {
			tried = append(tried, name+" is not in PATH")
			continue
		}
		if !try(path, "info") || !try(path, "build", "-t", image, dir) {
			continue
		}
		t.Cleanup(func() { exec.Command(path, "rmi", "-f", image).Run() })
		run := []string{path, "run", "--rm", "--network", "host", image}
		if try(run...) {
			return image, path
		}
		if t.Setenv("CONTAINERS_CONF", conf); name == "podman" && try(run...) {
			return image, path
		}
	}
	cannot(t, "no container can be run here:\n%s", strings.Join(tried, "\n"))
	return "", ""
}

func TestContainers(t *testing.T) {
	image, runtime := boxed(t)
	dir := t.TempDir()
	load := func(text string) contender.Manifest {
		m, err := contender.Load(write(t, dir, "x.yaml", "name: boxed\nlanguage: go\ndriver: tcp\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	spec := func(text string) contender.Spec {
		s, err := load(text).Spec()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	noneRuns := func(t *testing.T) {
		t.Helper()
		out, err := exec.Command(runtime, "ps", "-a", "--format", "{{.Image}} {{.Names}}").CombinedOutput()
		if err != nil || strings.Contains(string(out), image) {
			t.Errorf("containers left: %v, %s", err, out)
		}
	}

	t.Run("one that conforms", func(t *testing.T) {
		p := start(t, spec("env: {GREETING: hello}\nimage: "+image+"\n"))
		r := p.Ready()
		if r.Version != "4.2" || r.Name != "hello" || r.Image == "" {
			t.Errorf("%+v", r)
		}
		nc, err := net.Dial("tcp", strings.TrimPrefix(r.Addr, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		if s, err := p.Stats(t.Context()); err != nil || s.Allocs != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		u, err := p.Usage()
		if err != nil || len(u.PIDs) != 1 || u.CPU <= 0 {
			t.Errorf("usage %+v, %v; want that of the container's one process", u, err)
		}
		exe, err := os.Readlink("/proc/" + strconv.Itoa(u.PIDs[0]) + "/exe")
		if err != nil || exe != "/boxed" {
			t.Errorf("usage is that of %s, %v", exe, err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		noneRuns(t)
	})
	t.Run("Check", func(t *testing.T) {
		for _, f := range contender.Check(t.Context(), load("image: "+image+"\n")) {
			if f.Fails() {
				t.Error(f)
			}
			t.Log(f)
		}
		noneRuns(t)
	})
	t.Run("one that ends by no signal", func(t *testing.T) {
		p := start(t, spec("image: "+image+"\ncommand: [stay]\nstop: 100ms\n"))
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		noneRuns(t)
	})
	t.Run("one whose client is killed", func(t *testing.T) {
		p := start(t, spec("image: "+image+"\ncommand: [stay]\n"))
		client, err := exec.Command("pgrep", "-f", runtime+" run .*"+image).Output()
		if err != nil {
			cannot(t, "pgrep: %v", err)
		}
		exec.Command("kill", append([]string{"-9"}, strings.Fields(string(client))...)...).Run()
		<-p.Done()
		if crash, ok := errors.AsType[*contender.CrashError](p.Stop(t.Context())); !ok || crash.Status != "signal: killed" {
			t.Errorf("got %v", crash)
		}
		noneRuns(t)
	})
	t.Run("one that crashes", func(t *testing.T) {
		_, err := contender.Start(t.Context(), spec("image: "+image+"\ncommand: [crash]\n"))
		want := `boxed: ended before it was ready (exit status 3); on stderr: "Error: no luck in the box"`
		if !errors.Is(err, contender.ErrNotReady) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		noneRuns(t)
	})
	t.Run("one under limits", func(t *testing.T) {
		s := spec("image: " + image + "\n")
		s.Limits = limits.Limits{CPUs: .2, Memory: 64 << 20}
		p := start(t, s)
		if _, err := p.Ask(t.Context(), []byte("spin")); err != nil {
			t.Fatal(err)
		}
		l, err := p.Limited()
		if err != nil || l.Mechanism != filepath.Base(runtime) || l.Limits != s.Limits || !l.UsageKnown {
			t.Errorf("%+v, %v", l, err)
		}
		if l.Throttled <= 0 || l.MemoryPeak <= 0 || l.MemoryPeak > 64<<20 {
			t.Errorf("100 ms of work on a fifth of a core met %+v", l.Usage)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		noneRuns(t)
	})
	t.Run("one that is too large", func(t *testing.T) {
		s := spec("image: " + image + "\n")
		s.Limits = limits.Limits{Memory: 64 << 20}
		p := start(t, s)
		p.Ask(t.Context(), []byte("eat"))
		<-p.Done()
		want := "boxed: ended by itself (exit status 137, it was killed, as for reaching its memory limit, 64MiB)"
		if err := p.Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		p.Stop(t.Context())
		noneRuns(t)
	})
	t.Run("one whose runtime holds no limits", func(t *testing.T) {
		loose := t.TempDir()
		name := filepath.Base(runtime)
		script := "#!/bin/sh\nfor a do shift; case $a in --cpus=*|--memory*=*) ;; *) set -- \"$@\" \"$a\";; esac; done\nexec " + runtime + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(loose, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", loose+":"+os.Getenv("PATH"))
		for want, l := range map[string]limits.Limits{
			"boxed: " + name + ": 0.5 CPU: not in force: cpu":  {CPUs: .5},
			"boxed: " + name + ": 64MiB: not in force: memory": {Memory: 64 << 20},
		} {
			s := spec("image: " + image + "\n")
			s.Limits = l
			if p, err := contender.Start(t.Context(), s); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
				if err == nil {
					p.Stop(t.Context())
				}
			}
			s.AllowUnlimited = true
			p := start(t, s)
			if got, err := p.Limited(); err != nil || got.Mechanism != contender.Unlimited || got.UsageKnown {
				t.Errorf("allowed without limits: %+v, %v", got, err)
			}
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		noneRuns(t)
	})
	t.Run("those of runs that are gone", func(t *testing.T) {
		self := string(owner.Self())
		gone := self[:strings.LastIndexByte(self, '-')] + "-1"
		for _, whose := range []string{gone, self} {
			out, err := exec.Command(runtime, "create", "--network", "host", "--name", "toll-"+whose+"-abcdefgh", image).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		var removed []string
		for _, f := range contender.Clean(t.Context()) {
			if f.What == "container" && f.Err == nil {
				removed = append(removed, f.Name)
			}
		}
		if want := []string{"toll-" + gone + "-abcdefgh"}; !slices.Equal(removed, want) {
			t.Errorf("removed %q, want %q", removed, want)
		}
		if out, err := exec.Command(runtime, "rm", "toll-"+self+"-abcdefgh").CombinedOutput(); err != nil {
			t.Errorf("the container of a run that lives: %v: %s", err, out)
		}
		noneRuns(t)
	})
	t.Run("one of which its runtime knows nothing", func(t *testing.T) {
		if filepath.Base(runtime) != "podman" {
			t.Log("docker has no process beside a container that could be left")
			return
		}
		self := string(owner.Self())
		name := "toll-" + self[:strings.LastIndexByte(self, '-')] + "-1-abcdefgh"
		for _, args := range [][]string{{"create", "--network", "host", "--name", name, image}, {"init", name}} {
			if out, err := exec.Command(runtime, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		defer exec.Command(runtime, "rm", "-f", name).Run()
		blind := t.TempDir()
		if err := os.WriteFile(filepath.Join(blind, "podman"), []byte("#!/bin/sh\n[ \"$1\" = ps ] || exec "+runtime+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", blind+":"+os.Getenv("PATH"))
		want := []owner.Found{{What: "container", Name: name}}
		if found := contender.Clean(t.Context()); !slices.Equal(found, want) {
			t.Errorf("found %v, want %v", found, want)
		}
		if out, err := exec.Command("pgrep", "-f", "conmon .*"+name).Output(); err == nil {
			t.Errorf("its monitor lives: %s", out)
		}
	})
	t.Run("an image that is not here", func(t *testing.T) {
		_, err := contender.Start(t.Context(), spec("image: localhost/toll-absent:1\n"))
		want := "boxed: image localhost/toll-absent:1 is not on this machine; run: toll contender build boxed"
		if !errors.Is(err, contender.ErrMissing) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestNoContainerRuntimeIsAGap(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := contender.Start(t.Context(), contender.Spec{Name: "x", Image: "y"})
	want := "x: an image needs docker or podman, and neither answers on this machine"
	if !errors.Is(err, contender.ErrMissing) || !errors.Is(err, contender.ErrNoContainerRuntime) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
