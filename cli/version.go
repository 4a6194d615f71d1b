package cli

import (
	"runtime"
	"runtime/debug"

	"toll/lab/result"
)

// version says which toll this is, from the stamp that the go command leaves in the binary.
func version() result.Toll {
	v := result.Toll{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	return v
}
