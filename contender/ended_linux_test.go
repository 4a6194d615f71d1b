package contender

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnEndIsSeenBeforeAnybodyWaits(t *testing.T) {
	t.Parallel()
	lives, ends := exec.Command("sleep", "60"), exec.Command("true")
	for _, c := range []*exec.Cmd{lives, ends} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	defer lives.Wait()
	defer lives.Process.Kill()
	// This waits for the end without taking it away.
	if err := unix.Waitid(unix.P_PID, ends.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !ended(ends.Process.Pid) || ended(lives.Process.Pid) {
			t.Errorf("ended: %v, one that lives: %v", ended(ends.Process.Pid), ended(lives.Process.Pid))
		}
	}
	if err := ends.Wait(); err != nil {
		t.Errorf("its status is gone: %v", err)
	}
	if ended(ends.Process.Pid) {
		t.Error("a child that was waited for is said to have ended")
	}
}
