package place_test

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"toll/contender/place"
)

// usable is where this test may run.
func usable(t *testing.T) place.Set {
	t.Helper()
	u, err := place.Usable()
	if err != nil || len(u) == 0 {
		t.Fatalf("%v, %v", u, err)
	}
	return u
}

// threads are the processors that each thread of ours may use, as the system writes them.
func threads(t *testing.T) map[string]string {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, e := range all {
		text, err := os.ReadFile("/proc/self/task/" + e.Name() + "/status")
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(text)) {
			if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				out[e.Name()] = strings.TrimSpace(list)
			}
		}
	}
	return out
}

func TestHoldMovesEveryThreadAndLetsThemGoAgain(t *testing.T) {
	u := usable(t)
	before := threads(t)
	procs := runtime.GOMAXPROCS(0)
	want := u[len(u)-1]
	let, err := place.Hold(place.Set{want})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 { // threads that are born meanwhile
		wg.Go(func() { runtime.LockOSThread() })
	}
	wg.Wait()
	for tid, on := range threads(t) {
		if on != strconv.Itoa(want) {
			t.Errorf("thread %s may use %s; want %d", tid, on, want)
		}
	}
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("GOMAXPROCS is %d on one processor", runtime.GOMAXPROCS(0))
	}
	if err := let(); err != nil {
		t.Fatal(err)
	}
	after := threads(t)
	for tid, on := range after {
		if was, there := before[tid]; there && was != on {
			t.Errorf("thread %s may use %s; before it was held, %s", tid, on, was)
		}
	}
	if got := usable(t); len(got) != len(u) || runtime.GOMAXPROCS(0) != procs {
		t.Errorf("after release: %v, GOMAXPROCS %d; want %v, %d", got, runtime.GOMAXPROCS(0), u, procs)
	}
}

func TestAChildIsBornHeld(t *testing.T) {
	u := usable(t)
	want := u[:1]
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	leave, err := want.Enter(cmd)
	if err != nil {
		t.Fatal(err)
	}
	startErr := cmd.Start()
	if err := leave(); err != nil || startErr != nil {
		t.Fatal(err, startErr)
	}
	if err := want.InForce(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if got := usable(t); len(got) != len(u) {
		t.Errorf("our own thread may use %v; want %v", got, u)
	}
	in.Close()
	cmd.Wait()
}

func TestASetThatCannotBeIsRefused(t *testing.T) {
	for set, want := range map[*place.Set]string{
		{}:     "no processor to hold a process to",
		{1024}: "processor 1024; expected 0 to 1023",
		{-1}:   "processor -1; expected 0 to 1023",
	} {
		if _, err := place.Hold(*set); err == nil || err.Error() != want {
			t.Errorf("%v: %v; want %s", *set, err, want)
		}
		if err := set.InForce(os.Getpid()); err == nil || err.Error() != want {
			t.Errorf("in force, %v: %v; want %s", *set, err, want)
		}
	}
}
