package place

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestSleepsAreCounted(t *testing.T) {
	t.Parallel()
	state := func(cpu, state, name, usage string) fstest.MapFS {
		dir := idleDir + "/cpu" + cpu + "/cpuidle/state" + state
		return fstest.MapFS{dir + "/name": {Data: []byte(name + "\n")}, dir + "/usage": {Data: []byte(usage + "\n")}}
	}
	for name, x := range map[string]struct {
		states []fstest.MapFS
		want   uint64
		err    string
	}{
		"two processors": {[]fstest.MapFS{state("0", "0", "POLL", "7"), state("0", "1", "C1", "20"), state("0", "2", "C6", "3"),
			state("11", "0", "POLL", "1"), state("11", "1", "C1", "100")}, 123, ""},
		"polling only":         {[]fstest.MapFS{state("0", "0", "POLL", "7")}, 0, ""},
		"no driver":            {nil, 0, "no idle state POLL"},
		"another kind of CPU":  {[]fstest.MapFS{state("0", "0", "WFI", "7")}, 0, "no idle state POLL"},
		"no number":            {[]fstest.MapFS{state("0", "0", "POLL", "7"), state("0", "1", "C1", "many")}, 0, `cpu0/cpuidle/state1/usage: strconv.ParseUint: parsing "many"`},
		"a state without name": {[]fstest.MapFS{{idleDir + "/cpu0/cpuidle/state0/usage": {Data: []byte("1\n")}}}, 0, "idle states: open"},
	} {
		root := make(fstest.MapFS)
		for _, s := range x.states {
			for file, data := range s {
				root[file] = data
			}
		}
		got, err := (&Polling{root: root}).sleeps()
		if got != x.want || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %d, %v; want %d and an error with %q", name, got, err, x.want, x.err)
		}
	}
}

func TestASleepIsAnError(t *testing.T) {
	t.Parallel()
	dir := idleDir + "/cpu0/cpuidle/"
	root := fstest.MapFS{
		dir + "state0/name": {Data: []byte("POLL")}, dir + "state1/name": {Data: []byte("C1")}, dir + "state1/usage": {Data: []byte("5")},
		idleDir + "/cpuidle/current_driver": {Data: []byte("intel_idle\n")},
	}
	p := &Polling{root: root, from: 5}
	if err := p.InForce(); err != nil {
		t.Errorf("nobody slept: %v", err)
	}
	root[dir+"state1/usage"] = &fstest.MapFile{Data: []byte("7")}
	if err := p.InForce(); err == nil || !strings.Contains(err.Error(), "fell asleep 2 times, although driver intel_idle") {
		t.Errorf("two sleeps: %v", err)
	}
}

// Where the machine has the state and we may ask for it, processors poll until they may sleep again; elsewhere Poll says what is
// missing.
func TestProcessorsPollUntilTheyMaySleep(t *testing.T) {
	p, err := Poll()
	switch {
	case errors.Is(err, ErrSleeps), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		t.Logf("not here: %v", err)
		return
	case err != nil:
		t.Fatal(err)
	}
	beat := time.Tick(10 * time.Millisecond) // between two of them a processor is idle
	for range 3 {
		if <-beat; p.InForce() != nil {
			t.Error(p.InForce())
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if <-beat; p.InForce() != nil {
			return
		}
	}
	if _, err := os.Stat(latencyFile); err == nil {
		t.Error("processors never slept after they were let")
	}
}
