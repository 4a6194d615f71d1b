package receipt

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// files is what the log wants of a file system. The one of the machine is osFiles; crashtest has another, which forgets at a
// power cut what was not synced.
type files interface {
	// MakeDir makes a folder in an existing one, 0700, unless it is there.
	MakeDir(dir string) error
	// List returns the names in a folder, sorted.
	List(dir string) ([]string, error)
	// Open opens a file to be appended to, 0600; create makes it, and then it must not exist.
	Open(name string, create bool) (file, error)
	ReadFile(name string) ([]byte, error)
	// SyncDir makes the names in a folder survive a power cut.
	SyncDir(dir string) error
	// Lock takes a lock that the kernel gives up when the process ends; errLocked when another has it.
	Lock(name string) (io.Closer, error)
}

// A file is appended to. Sync makes what was written survive a power cut.
type file interface {
	io.WriteCloser
	io.ReaderAt
	Sync() error
	Truncate(size int64) error
}

var errLocked = errors.New("another process has it open")

type osFiles struct{}

func (osFiles) MakeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (osFiles) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}

func (osFiles) Open(name string, create bool) (file, error) {
	flags := os.O_RDWR | os.O_APPEND
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return f, nil
}

func (osFiles) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

func (osFiles) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a folder can't be opened for that there; names are journaled
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFiles) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// parent is the folder that holds dir.
func parent(dir string) string { return filepath.Dir(filepath.Clean(dir)) }
