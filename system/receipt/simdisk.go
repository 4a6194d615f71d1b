package receipt

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
)

// A simDisk is a file system in memory that forgets, at a power cut, what was not synced: bytes behind a file's last Sync
// and names behind their folder's last SyncDir. As on a real disk, some of that may be there all the same, in part.
type simDisk struct {
	mu      sync.Mutex
	rand    *rand.Rand
	names   map[string]*simFile // files and folders that there are
	durable map[string]*simFile // those whose names are synced
	left    int                 // operations until the power is cut; negative: never
	full    int                 // bytes that still fit; negative: any number
	skip    string              // a kind of sync that does nothing: what a log without it would lose
	syncs   map[string]int      // that were asked for, by kind
	locked  map[string]bool
	gone    func() // called when the power goes; nil for nobody
}

// A simFile is a file's bytes, or a folder.
type simFile struct {
	dir    bool
	data   []byte
	synced []byte
}

// The kinds of sync that the log makes.
const (
	syncData   = "data"   // of a segment, with each commit
	syncCut    = "cut"    // of a segment whose torn end was cut off
	syncName   = "name"   // of a new segment's name in the log's folder
	syncFolder = "folder" // of the log's own name in the folder above
)

var errPower = errors.New("the power is cut")

func newSimDisk(r *rand.Rand) *simDisk {
	root := &simFile{dir: true}
	return &simDisk{
		rand: rand.New(rand.NewPCG(r.Uint64(), r.Uint64())), left: -1, full: -1, syncs: make(map[string]int), locked: make(map[string]bool),
		names: map[string]*simFile{"/": root}, durable: map[string]*simFile{"/": root},
	}
}

// cut returns what the disk holds once the power is back.
func (d *simDisk) cut() *simDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newSimDisk(d.rand)
	after.skip = d.skip
	drop := d.rand.IntN(2) == 0 // everything that was not synced is gone; otherwise some of it is there
	for _, name := range slices.Sorted(keysOf(d.names)) {
		f := d.names[name]
		if d.durable[name] != f && (drop || d.rand.IntN(2) == 0) {
			continue
		}
		if _, there := after.names[filepath.Dir(name)]; !there {
			continue // its folder is gone
		}
		kept := bytes.Clone(f.synced)
		if more, ok := bytes.CutPrefix(f.data, f.synced); ok && !drop && len(more) > 0 {
			kept = append(kept, more[:d.rand.IntN(len(more)+1)]...)
			if n := len(kept) - len(f.synced); n > 0 && d.rand.IntN(2) == 0 { // a block that was not written reads as zeros
				clear(kept[len(f.synced)+d.rand.IntN(n):])
			}
		}
		g := &simFile{dir: f.dir, data: kept, synced: bytes.Clone(kept)}
		after.names[name], after.durable[name] = g, g
	}
	return after
}

func keysOf(m map[string]*simFile) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// operate counts one operation and says whether the power is there for it. The caller holds mu.
func (d *simDisk) operate() error {
	if d.left == 0 {
		if d.gone != nil {
			d.gone()
		}
		return errPower
	}
	if d.left > 0 {
		d.left--
	}
	return nil
}

// MakeDir makes a folder.
func (d *simDisk) MakeDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.operate(); err != nil {
		return err
	}
	if d.names[dir] == nil {
		d.names[dir] = &simFile{dir: true}
	}
	return nil
}

// List lists a folder.
func (d *simDisk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for name := range d.names {
		if filepath.Dir(name) == dir && name != dir {
			out = append(out, filepath.Base(name))
		}
	}
	slices.Sort(out)
	return out, nil
}

// Open opens or makes a file.
func (d *simDisk) Open(name string, create bool) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.operate(); err != nil {
		return nil, err
	}
	f := d.names[name]
	switch {
	case create && f != nil:
		return nil, fs.ErrExist
	case create:
		f = &simFile{}
		d.names[name] = f
	case f == nil:
		return nil, fs.ErrNotExist
	}
	return &simHandle{d, f}, nil
}

// ReadFile reads a file.
func (d *simDisk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[name]; f != nil {
		return bytes.Clone(f.data), nil
	}
	return nil, fs.ErrNotExist
}

// SyncDir makes the names in a folder durable.
func (d *simDisk) SyncDir(dir string) error {
	kind := syncName
	if dir == "/" {
		kind = syncFolder
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncs[kind]++; d.skip == kind {
		return nil
	}
	if err := d.operate(); err != nil {
		return err
	}
	for name, f := range d.names {
		if filepath.Dir(name) == dir {
			d.durable[name] = f
		}
	}
	return nil
}

// Lock takes a lock that ends with the disk.
func (d *simDisk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, errLocked
	}
	d.locked[name] = true
	return simLock{d, name}, nil
}

type simLock struct {
	d    *simDisk
	name string
}

// Close gives the lock up.
func (l simLock) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	delete(l.d.locked, l.name)
	return nil
}

// A simHandle is an open file.
type simHandle struct {
	d *simDisk
	f *simFile
}

// Write appends; when the power goes, or the disk is full, a part of b is there.
func (h *simHandle) Write(b []byte) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.operate(); err != nil {
		n := h.d.rand.IntN(len(b) + 1)
		h.f.data = append(h.f.data, b[:n]...)
		return n, err
	}
	if h.d.full >= 0 && len(b) > h.d.full {
		n := h.d.full
		h.f.data, h.d.full = append(h.f.data, b[:n]...), 0
		return n, errDiskFull
	}
	if h.d.full >= 0 {
		h.d.full -= len(b)
	}
	h.f.data = append(h.f.data, b...)
	return len(b), nil
}

// ReadAt reads.
func (h *simHandle) ReadAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if at > int64(len(h.f.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.f.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Sync makes the bytes durable.
func (h *simHandle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	kind := syncData
	if len(h.f.data) < len(h.f.synced) {
		kind = syncCut
	}
	if h.d.syncs[kind]++; h.d.skip == kind {
		return nil
	}
	if err := h.d.operate(); err != nil {
		return err
	}
	h.f.synced = bytes.Clone(h.f.data)
	return nil
}

// Truncate cuts the file; that is durable with the next Sync.
func (h *simHandle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.operate(); err != nil {
		return err
	}
	h.f.data = h.f.data[:size]
	return nil
}

// Close does nothing: what is not synced stays so.
func (h *simHandle) Close() error { return nil }
