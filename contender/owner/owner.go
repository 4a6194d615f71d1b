// Package owner marks what can outlive the process that made it (a child, a control group, a device, a folder) with whose it
// is, so that what a run that was killed left behind can be told from what a run that lives still needs, and from all else.
package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// An ID is a process among all that ever ran on this machine since it started: its PID namespace, its pid there and when it
// began. It is empty where the system does not tell.
type ID string

// form is how an ID is written.
var form = regexp.MustCompile(`^[0-9]+-[0-9]+-[0-9]+$`)

// Parse returns the ID that text is; ok is false when it is none.
func Parse(text string) (id ID, ok bool) {
	if len(text) > 64 || !form.MatchString(text) {
		return "", false
	}
	return ID(text), true
}

// file is where a folder says whose it is.
const file = "owner"

// Folder makes a folder for temporary files, 0700, that says whose it is.
func Folder(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(Self()+"\n"), 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// A Found thing bears our mark and the process that made it is gone.
type Found struct {
	What string // folder | control group | device | process
	Name string
	Err  error // why it could not be removed; nil: it is gone
}

// String says what became of it.
func (f Found) String() string {
	if f.Err != nil {
		return fmt.Sprintf("%s %s could not be removed: %v", f.What, f.Name, f.Err)
	}
	return fmt.Sprintf("%s %s removed", f.What, f.Name)
}

// CleanFolders removes the folders below dir whose names begin with prefix and that say that they belong to a process that
// is gone. It follows no link.
func CleanFolders(dir, prefix string) []Found {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []Found
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) || !mine(e) {
			continue
		}
		if id, ok := read(path); ok && id.Gone() {
			out = append(out, Found{"folder", path, os.RemoveAll(path)})
		}
	}
	return out
}

func read(dir string) (ID, bool) {
	path := filepath.Join(dir, file)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 128 {
		return "", false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	return Parse(strings.TrimSpace(string(text)))
}

// mine reports whether an entry is a folder that only we may enter.
func mine(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.Mode().Perm()&0o077 == 0 && ownedByUs(info)
}
