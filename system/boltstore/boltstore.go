// Package boltstore keeps snapshots and what changed since in one bbolt file, for any number of groups. It knows nothing of
// what it keeps.
package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// A File is a bbolt file that one process has open.
type File struct{ db *bbolt.DB }

// Open opens or makes a file, 0600. Another process that has it open is waited for, a second.
func Open(path string) (*File, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", path, err)
	}
	return &File{db: db}, nil
}

// Close closes the file; stores of it can't be used any more.
func (f *File) Close() error { return f.db.Close() }

// A Store is one group's part of a file. It is for one goroutine at a time.
type Store struct {
	db   *bbolt.DB
	name []byte
}

// Group returns a group's store.
func (f *File) Group(id []byte) *Store { return &Store{db: f.db, name: bytes.Clone(id)} }

// The keys of a group's bucket.
const (
	snapshotKey  = "snapshot"
	deltasBucket = "deltas"
)

var errEmpty = errors.New("a group without an identifier")

// Load returns the last snapshot, nil if there is none, and the deltas since, in their order.
func (s *Store) Load() (snapshot []byte, deltas [][]byte, err error) {
	if len(s.name) == 0 {
		return nil, nil, errEmpty
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(s.name)
		if b == nil {
			return nil
		}
		snapshot = bytes.Clone(b.Get([]byte(snapshotKey)))
		list := b.Bucket([]byte(deltasBucket))
		if list == nil {
			return nil
		}
		return list.ForEach(func(_, delta []byte) error {
			deltas = append(deltas, bytes.Clone(delta))
			return nil
		})
	})
	return snapshot, deltas, err
}

// Append adds deltas, all or none; they are on the disk when it returns.
func (s *Store) Append(deltas ...[]byte) error {
	return s.change(func(b *bbolt.Bucket) error {
		list, err := b.CreateBucketIfNotExists([]byte(deltasBucket))
		if err != nil {
			return err
		}
		for _, d := range deltas {
			n, err := list.NextSequence()
			if err != nil {
				return err
			}
			if err := list.Put(binary.BigEndian.AppendUint64(nil, n), d); err != nil {
				return err
			}
		}
		return nil
	})
}

// Snapshot takes the place of the last snapshot and all deltas. bbolt frees their pages and uses them again; it does not
// overwrite them at once.
func (s *Store) Snapshot(state []byte) error {
	return s.change(func(b *bbolt.Bucket) error {
		if err := b.DeleteBucket([]byte(deltasBucket)); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return err
		}
		return b.Put([]byte(snapshotKey), state)
	})
}

// Forget deletes everything of the group.
func (s *Store) Forget() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(s.name); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return err
		}
		return nil
	})
}

func (s *Store) change(do func(*bbolt.Bucket) error) error {
	if len(s.name) == 0 {
		return errEmpty
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(s.name)
		if err != nil {
			return err
		}
		return do(b)
	})
}
