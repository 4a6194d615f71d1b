package receipt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// A guard remembers, in a file of its own, every checkpoint that a sidecar signed, before the signature leaves: never two
// roots for one size, whoever asks. A record is size u64 | root [32] | CRC-32C of both u32, little-endian.
type guard struct {
	size  uint64
	root  Hash
	roots map[uint64]Hash // of the last checkpoints
	file  file            // nil remembers for this process' life only
	lock  io.Closer
}

const (
	guardFile   = "signed"
	guardRecord = 8 + 32 + 4
	guardKept   = 1 << 16 // checkpoints that can be signed again
)

func openGuard(fs files, dir string) (*guard, error) {
	g := &guard{roots: make(map[uint64]Hash)}
	if dir == "" {
		return g, nil
	}
	lock, err := lockLog(fs, dir)
	if err != nil {
		return nil, err
	}
	g.lock = lock
	if err := g.load(fs, dir); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *guard) load(fs files, dir string) error {
	name := filepath.Join(dir, guardFile)
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	create := true
	for _, n := range names {
		create = create && n != guardFile
	}
	if g.file, err = fs.Open(name, create); err != nil {
		g.file = nil
		return err
	}
	if create {
		return fs.SyncDir(dir)
	}
	text, err := fs.ReadFile(name)
	if err != nil {
		return err
	}
	at := 0
	for ; at+guardRecord <= len(text); at += guardRecord {
		r := text[at : at+guardRecord]
		if binary.LittleEndian.Uint32(r[40:]) != checksum(r[:40]) {
			break
		}
		if size := binary.LittleEndian.Uint64(r); size <= g.size {
			return &Damage{guardFile, int64(at), fmt.Errorf("size %d behind %d", size, g.size)}
		}
		g.note(binary.LittleEndian.Uint64(r), Hash(r[8:40]))
	}
	if len(text)-at > guardRecord {
		return &Damage{guardFile, int64(at), errChecksum}
	}
	if at < len(text) {
		return errors.Join(g.file.Truncate(int64(at)), g.file.Sync())
	}
	return nil
}

func (g *guard) note(size uint64, root Hash) {
	if len(g.roots) >= 2*guardKept {
		clear(g.roots)
		g.roots[g.size] = g.root
	}
	g.size, g.root = size, root
	g.roots[size] = root
}

// add makes a checkpoint durable.
func (g *guard) add(size uint64, root Hash) error {
	if g.file != nil {
		r := append(binary.LittleEndian.AppendUint64(nil, size), root[:]...)
		r = binary.LittleEndian.AppendUint32(r, checksum(r))
		if _, err := g.file.Write(r); err != nil {
			return err
		}
		if err := g.file.Sync(); err != nil {
			return err
		}
	}
	g.note(size, root)
	return nil
}

func (g *guard) close() error {
	var errs []error
	if g.file != nil {
		errs = append(errs, g.file.Close())
	}
	if g.lock != nil {
		errs = append(errs, g.lock.Close())
	}
	return errors.Join(errs...)
}
