package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// The contract that toll has with every contender: the first line on stdout says where it listens, the lines "stats" and
// "collect" on stdin are answered by one line each, the latter after a collection, and closed stdin means stop. This file
// is the same in every Go contender here, so that each folder can be built by itself; a test holds them equal.

// ready prints the first line. sdk is the module path whose version is the contender's.
func ready(out io.Writer, addr, sdk string) error {
	return json.NewEncoder(out).Encode(map[string]any{
		"ready": addr, "version": moduleVersion(sdk), "language": "go", "sdk": sdk, "gomaxprocs": runtime.GOMAXPROCS(0),
	})
}

// moduleVersion is the version of the module that this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}

// obey answers the lines of in until it ends. Lines that are none of the contract's go to other, if there is one.
func obey(in io.Reader, out io.Writer, other io.Writer) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		switch string(line) {
		case "stats\n":
			err = stats(out)
		case "collect\n":
			runtime.GC()
			runtime.GC() // what finalizers and pools let go in the first
			err = stats(out)
		default:
			if other != nil && len(line) > 0 {
				_, err = other.Write(line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
	}
}

func stats(out io.Writer) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return json.NewEncoder(out).Encode(map[string]any{
		"allocs": m.Mallocs, "alloc_bytes": m.TotalAlloc, "heap": m.HeapAlloc, "stack": m.StackInuse, "gc": m.NumGC, "gomaxprocs": runtime.GOMAXPROCS(0),
	})
}
