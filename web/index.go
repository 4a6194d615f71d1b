package web

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"toll/lab/result"
)

// mostRuns bounds how many results a list has: the newest.
const mostRuns = 5000

// An index knows every result of the folder: from the history where it has a line, else from the document itself, read once.
type index struct {
	root *os.Root

	mu      sync.Mutex
	history stamp // guarded by mu, as all below
	lines   map[string]result.Record
	read    map[string]entry
}

// A stamp tells whether a file is still the one that was read.
type stamp struct {
	size int64
	time time.Time
}

type entry struct {
	stamp  stamp
	record result.Record
	err    error
}

// runs returns the records of all results, newest first, and what could not be read.
func (x *index) runs() ([]result.Record, []error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	if err := x.refresh(); err != nil {
		errs = append(errs, err)
	}
	dir, err := x.root.Open(".")
	if err != nil {
		return nil, []error{err}
	}
	defer dir.Close()
	names, err := dir.ReadDir(-1)
	if err != nil {
		return nil, []error{err}
	}
	slices.SortFunc(names, func(a, b fs.DirEntry) int { return cmp.Compare(b.Name(), a.Name()) })
	var out []result.Record
	for _, n := range names {
		if len(out) == mostRuns {
			errs = append(errs, fmt.Errorf("only the newest %d results are listed", mostRuns))
			break
		}
		if !n.IsDir() || !folderName(n.Name()) {
			continue
		}
		switch e, ok := x.entry(n.Name()); {
		case ok && e.err != nil:
			errs = append(errs, e.err)
		case ok:
			out = append(out, e.record)
		}
	}
	slices.SortStableFunc(out, func(a, b result.Record) int { return b.Started.Compare(a.Started) })
	return out, errs
}

// refresh reads the history again when it has changed.
func (x *index) refresh() error {
	f, err := x.root.Open(result.HistoryName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	now := stamp{info.Size(), info.ModTime()}
	if now == x.history {
		return nil
	}
	all, bad, err := result.ReadHistory(f)
	x.history, x.lines = now, make(map[string]result.Record, len(all))
	for _, r := range all {
		x.lines[r.Folder] = r
	}
	if bad > 0 {
		err = errors.Join(err, fmt.Errorf("%s: %d lines can't be read and are left out", result.HistoryName, bad))
	}
	return err
}

// entry is what is known of a folder; false when it holds no result.
func (x *index) entry(folder string) (entry, bool) {
	info, err := x.root.Stat(path.Join(folder, "result.json"))
	if err != nil {
		return entry{}, false
	}
	if r, ok := x.lines[folder]; ok {
		return entry{record: r}, true
	}
	now := stamp{info.Size(), info.ModTime()}
	if e, ok := x.read[folder]; ok && e.stamp == now {
		return e, true
	}
	e := entry{stamp: now}
	d, err := readDocument(x.root, folder)
	if err != nil {
		e.err = err
	} else {
		e.record = d.Record(folder)
	}
	if x.read == nil {
		x.read = make(map[string]entry)
	}
	x.read[folder] = e
	return e, true
}

// readDocument reads a folder's result.
func readDocument(root *os.Root, folder string) (*result.Document, error) {
	data, err := readResult(root, folder)
	if err != nil {
		return nil, err
	}
	d, err := result.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("result %s: %w", folder, err)
	}
	return d, nil
}

// readResult reads the text of a folder's result, at most as much as a document may have.
func readResult(root *os.Root, folder string) ([]byte, error) {
	if !folderName(folder) {
		return nil, fmt.Errorf("result %q: no such folder", folder)
	}
	f, err := root.Open(path.Join(folder, "result.json"))
	if err != nil {
		return nil, fmt.Errorf("result %s: there is no result.json", folder)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, result.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("result %s: %w", folder, err)
	}
	if len(data) > result.MaxBytes {
		return nil, fmt.Errorf("result %s: more than %d MiB; not a result that toll wrote", folder, result.MaxBytes>>20)
	}
	return data, nil
}
