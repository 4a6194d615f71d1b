package owner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/contender/owner"
)

func TestWhatIsNoID(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1-2", "1-2-3-4", "1-2-x", "-1-2-3", "1--2", "1-2-3\n", "toll-1-2-3",
		"11111111111111111111111-11111111111111111111111-11111111111111111111111"} {
		if id, ok := owner.Parse(text); ok {
			t.Errorf("%q is ID %q", text, id)
		}
		if owner.ID(text).Gone() {
			t.Errorf("%q is gone", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("4026531836-77-123456")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := owner.Parse(text); ok && string(id) != text {
			t.Errorf("%q became %q", text, id)
		}
	})
}

// folder makes one that says that it belongs to whom.
func folder(t *testing.T, dir, name, whom string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"owner", "a.sock"} {
		if err := os.WriteFile(filepath.Join(path, file), []byte(whom+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Name())
	}
	return out
}

func TestOnlyFoldersOfWhoIsGoneAreRemoved(t *testing.T) {
	t.Parallel()
	gone := string(ended(t))
	dir := t.TempDir()
	removed := folder(t, dir, "toll-1", gone)
	folder(t, dir, "toll-2-lives", string(owner.Self()))
	folder(t, dir, "toll-3-of-nobody", "")
	folder(t, dir, "toll-4-nonsense", "../../etc")
	folder(t, dir, "other-5", gone)
	open := folder(t, dir, "toll-6-anyones", gone)
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	linked := folder(t, dir, "toll-7-linked-owner", gone)
	if err := os.Rename(filepath.Join(linked, "owner"), filepath.Join(linked, "real")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(linked, "owner")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder(t, t.TempDir(), "toll-x", gone), filepath.Join(dir, "toll-8-link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "toll-9-file"), []byte(gone), 0o600); err != nil {
		t.Fatal(err)
	}
	got := owner.CleanFolders(dir, "toll-")
	if d := cmp.Diff([]owner.Found{{What: "folder", Name: removed}}, got); d != "" {
		t.Error(d)
	}
	want := []string{"other-5", "toll-2-lives", "toll-3-of-nobody", "toll-4-nonsense", "toll-6-anyones", "toll-7-linked-owner", "toll-8-link", "toll-9-file"}
	if d := cmp.Diff(want, names(t, dir)); d != "" {
		t.Error(d)
	}
	if again := owner.CleanFolders(dir, "toll-"); again != nil {
		t.Errorf("a second time: %v", again)
	}
}

func TestAFolderSaysWhoseItIs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	mine, err := owner.Folder("toll-")
	if err != nil {
		t.Fatal(err)
	}
	if got := owner.CleanFolders(dir, "toll-"); got != nil {
		t.Errorf("removed while its process lives: %v", got)
	}
	if text, err := os.ReadFile(filepath.Join(mine, "owner")); err != nil || string(text) != string(owner.Self())+"\n" {
		t.Errorf("%q, %v", text, err)
	}
}
