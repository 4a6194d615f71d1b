package limits

import (
	"io/fs"
	"path/filepath"
	"strings"

	"toll/contender/owner"
)

// Clean ends what still runs in the groups of runs that are gone, and removes them. A systemd scope goes with its last process.
func Clean() []owner.Found { return machine{proc: "/proc"}.clean() }

func (m machine) clean() []owner.Found {
	mounts, err := m.mounts()
	if err != nil {
		return nil
	}
	var out []owner.Found
	for _, mt := range mounts {
		filepath.WalkDir(mt.point, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // it has gone meanwhile
			}
			if id, ok := groupOwner(d.Name()); ok && id.Gone() {
				out = append(out, owner.Found{What: "control group", Name: path, Err: remove(path)})
				return filepath.SkipDir
			}
			return nil
		})
	}
	return out
}

// groupOwner reads from a group's name whose it is.
func groupOwner(name string) (owner.ID, bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	at := strings.LastIndexByte(rest, '-')
	if !ours || at < 0 {
		return "", false
	}
	return owner.Parse(rest[:at])
}
