package contender_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toll/contender"
)

func TestUsageCountsTheWholeTree(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "burns"))
	before, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if before.CPU <= 0 || before.CPU%(10*time.Millisecond) == 0 || before.RSSPeak < 1<<20 || before.Threads < 1 || len(before.PIDs) != 1 {
		t.Errorf("before: %+v", before)
	}
	check := func(question string, least time.Duration) {
		t.Helper()
		before, err := p.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Ask(t.Context(), []byte(question)); err != nil {
			t.Fatal(err)
		}
		after, err := p.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if after.CPU-before.CPU < least {
			t.Errorf("%s: CPU grew by %v, want at least %v", question, after.CPU-before.CPU, least)
		}
		if d := after.CPU - (after.User + after.System); d < -50*time.Millisecond || d > 50*time.Millisecond {
			t.Errorf("%s: CPU %v is not user %v and system %v", question, after.CPU, after.User, after.System)
		}
	}
	check(`{"here":60}`, 60*time.Millisecond)
	check(`{"child":60}`, 50*time.Millisecond) // one that has ended is counted in ticks
}

func TestUsageSeesChildrenThatLive(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "family"))
	u, err := p.Usage()
	if err != nil || len(u.PIDs) != 2 || u.Threads < 2 {
		t.Errorf("got %+v, %v", u, err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("a child that ends with its parent is no leak: %v", err)
	}
}

func TestUsageSeesAProcessThatLeftItsParent(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "leaks"))
	u, err := p.Usage()
	if err != nil || len(u.PIDs) != 2 {
		t.Errorf("got %+v, %v", u, err)
	}
}

func TestWhatOutlivesAContenderIsNamedAndKilled(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"leaks", "leaves", "bares"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s := spec(t, act)
			p := start(t, s)
			err := p.Stop(t.Context())
			leak, ok := errors.AsType[*contender.LeakError](err)
			if !ok || len(leak.Processes) != 1 || leak.Surviving {
				t.Fatalf("got %v, want a leak of one process", err)
			}
			left := leak.Processes[0]
			if left.Command != testBinary(t) {
				t.Errorf("command %q", left.Command)
			}
			want := fmt.Sprintf("%s: left 1 running after it was stopped, killed: pid %d %q", act, left.PID, left.Command)
			if err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if lives(left.PID) {
				t.Error("it lives still")
			}
			if again := p.Stop(t.Context()); again == nil || again.Error() != err.Error() {
				t.Errorf("a second stop says %v", again)
			}
			nothingLeft(t, s)
		})
	}
}

func lives(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// A toll that is killed takes its contenders along.
func TestContendersDoNotOutliveUs(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "toll"))
	answer, err := p.Ask(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	var child struct{ ID int }
	if err := json.Unmarshal(answer, &child); err != nil || !lives(child.ID) {
		t.Fatalf("%s: %v", answer, err)
	}
	u, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range u.PIDs {
		if pid != child.ID {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	eventually(t, "child of a killed toll", func() error {
		if lives(child.ID) {
			return fmt.Errorf("pid %d lives", child.ID)
		}
		return nil
	})
}
