//go:build unix

package env

import (
	"os/exec"
	"testing"
)

// What a child that has ended has used is ours, though nobody looked at it while it lived.
func TestChildrenThatHaveEndedAreOurs(t *testing.T) {
	t.Parallel()
	w := StartWatch()
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	if got := childrenCPU() - w.kids; got <= 0 {
		t.Errorf("a child that counted to 20,000 used %v", got)
	}
}
