package limits

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/contender/owner"
)

func TestOnlyGroupsOfRunsThatAreGoneAreRemoved(t *testing.T) {
	t.Parallel()
	self := string(owner.Self())
	gone := self[:strings.LastIndexByte(self, '-')] + "-1"
	proc, mounted := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "self"), 0o700); err != nil {
		t.Fatal(err)
	}
	line := "30 25 0:26 / " + mounted + " rw,nosuid - cgroup2 cgroup2 rw\n"
	if err := os.WriteFile(filepath.Join(proc, "self", "mountinfo"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	left := []string{"toll-" + self + "-ABCDEFGH", "toll-1234-ABCDEFGH", "toll-build", "docker-" + gone + "-ABCDEFGH", "a"}
	for _, name := range append(left, "toll-"+gone+"-AAAAAAAA", "a/toll-"+gone+"-BBBBBBBB") {
		if err := os.MkdirAll(filepath.Join(mounted, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got := machine{proc: proc}.clean()
	want := []owner.Found{
		{What: "control group", Name: filepath.Join(mounted, "a/toll-"+gone+"-BBBBBBBB")},
		{What: "control group", Name: filepath.Join(mounted, "toll-"+gone+"-AAAAAAAA")},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range left {
		if _, err := os.Stat(filepath.Join(mounted, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if id, ok := groupOwner(groupName()); !ok || id != owner.Self() {
		t.Errorf("our own groups are %q's", id)
	}
}
