package receipt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// A key is what a request is known by: a digest of tenant and request id.
type key [16]byte

func keyOf(tenant, id string) (k key) {
	var b [1 + maxName + maxID]byte
	sum := sha256.Sum256(identity(&b, tenant, id))
	copy(k[:], sum[:])
	return k
}

// identity puts into b what a request is known by; no two pairs of names within the bounds give the same bytes.
func identity(b *[1 + maxName + maxID]byte, tenant, id string) []byte {
	b[0] = byte(len(tenant))
	n := 1 + copy(b[1:], tenant)
	n += copy(b[n:], id)
	return b[:n]
}

// An index finds the groups of requests that memory no longer holds. It can be made again from the log at any time.
type index struct {
	db *bolt.DB
}

func bucketNames() (requests, sigs, meta []byte) {
	return []byte("requests"), []byte("signatures"), []byte("meta")
}

const indexFile = "index.bolt"

// openIndex opens a folder's index, or makes it anew when there is none or what is there can't be used.
func openIndex(dir string, events func(Event)) (*index, error) {
	name := filepath.Join(dir, indexFile)
	x, err := tryIndex(name)
	if err == nil {
		return x, nil
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("index %s: %w", name, errLocked)
	}
	events(Event{"index", fmt.Sprintf("%v; it is made again from the log", err)})
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return tryIndex(name)
}

func tryIndex(name string) (x *index, err error) {
	defer func() {
		if r := recover(); r != nil { // what bbolt does with some damaged files
			x, err = nil, fmt.Errorf("index %s: %v", name, r)
		}
	}()
	db, err := bolt.Open(name, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		requests, sigs, meta := bucketNames()
		for _, b := range [][]byte{requests, sigs, meta} {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &index{db}, nil
}

// through returns the seq up to which the index is complete, with the root of the log there; so an index of another log, or
// of one that was cut, is found out.
func (x *index) through() (size uint64, root Hash) {
	x.db.View(func(tx *bolt.Tx) error {
		_, _, meta := bucketNames()
		if v := tx.Bucket(meta).Get([]byte("through")); len(v) == 8+len(root) {
			size = binary.BigEndian.Uint64(v)
			copy(root[:], v[8:])
		}
		return nil
	})
	return size, root
}

// clear forgets everything.
func (x *index) clear() error {
	return x.db.Update(func(tx *bolt.Tx) error {
		requests, sigs, meta := bucketNames()
		for _, b := range [][]byte{requests, sigs, meta} {
			if err := tx.DeleteBucket(b); err != nil {
				return err
			}
			if _, err := tx.CreateBucket(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// add takes in signed groups that follow what is in it.
func (x *index) add(groups []*group) error {
	return x.db.Update(func(tx *bolt.Tx) error {
		requests, sigs, meta := bucketNames()
		for _, g := range groups {
			where := binary.BigEndian.AppendUint64(nil, uint64(g.at.offset))
			where = append(where, g.at.segment...)
			for i, c := range g.keys() {
				if c == (key{}) {
					continue
				}
				if err := tx.Bucket(requests).Put(c[:], append(binary.BigEndian.AppendUint16(nil, uint16(i)), where...)); err != nil {
					return err
				}
			}
			var all []byte
			for _, s := range g.sigs {
				all = append(all, s...)
			}
			if err := tx.Bucket(sigs).Put(binary.BigEndian.AppendUint64(nil, g.before.size), all); err != nil {
				return err
			}
		}
		end := groups[len(groups)-1]
		return tx.Bucket(meta).Put([]byte("through"), append(binary.BigEndian.AppendUint64(nil, end.size()), end.root[:]...))
	})
}

// find returns where a request's envelope is.
func (x *index) find(k key) (at place, i int, found bool) {
	x.db.View(func(tx *bolt.Tx) error {
		requests, _, _ := bucketNames()
		if v := tx.Bucket(requests).Get(k[:]); len(v) > 10 {
			i = int(binary.BigEndian.Uint16(v))
			at = place{string(v[10:]), int64(binary.BigEndian.Uint64(v[2:]))}
			found = true
		}
		return nil
	})
	return at, i, found
}

// sigs returns the signatures of the group that starts at first, nil without any.
func (x *index) sigs(first uint64) (out [][]byte) {
	x.db.View(func(tx *bolt.Tx) error {
		_, sigs, _ := bucketNames()
		v := append([]byte(nil), tx.Bucket(sigs).Get(binary.BigEndian.AppendUint64(nil, first))...)
		for ; len(v) >= 64; v = v[64:] {
			out = append(out, v[:64:64])
		}
		return nil
	})
	return out
}

// keys returns the keys of a group's requests; that of a rotation is zero.
func (g *group) keys() []key {
	out := make([]key, len(g.envelopes))
	for i, e := range g.envelopes {
		if env, err := parseEnvelope(e); err == nil && env.Type == typeArrival {
			out[i] = keyOf(env.Tenant, env.RequestID)
		}
	}
	return out
}
