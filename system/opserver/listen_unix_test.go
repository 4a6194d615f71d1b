//go:build unix

package opserver_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"toll/system/opserver"
)

// The umask belongs to the process, so this test does not run in parallel.
func TestSocketIsPrivateUnderAnyUmask(t *testing.T) {
	for _, mask := range []int{0o000, 0o022, 0o077} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		path := filepath.Join(dir, "s")
		old := syscall.Umask(mask)
		l, err := opserver.Listen(opserver.Config{Unix: path})
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]os.FileMode{path: 0o600, dir: 0o700, filepath.Dir(dir): 0o700} {
			info, err := os.Lstat(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("umask %#o: %s has mode %#o, want %#o", mask, name, got, want)
			}
		}
		l.Close()
	}
}

func TestStickyFolderIsTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	listen(t, opserver.Config{Unix: filepath.Join(dir, "s")})
}
