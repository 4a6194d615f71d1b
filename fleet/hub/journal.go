package hub

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"toll/fleet"
)

// A Journal is the file in which a worker keeps its slices: each as its length (4 bytes, big-endian), its CRC-32C and its bytes.
type Journal struct {
	file *os.File
	buf  []byte  // of the last slice, head and bytes
	at   []int64 // where each slice's bytes begin
	size []int
	sums []uint32
	end  int64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewJournal makes the file; there must be none.
func NewJournal(dir, run, id string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the worker's folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, run+"-"+id+".slices"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the worker's file: %w", err)
	}
	return &Journal{file: f}, nil
}

// Name is the file's path.
func (j *Journal) Name() string { return j.file.Name() }

// Append adds the next slice.
func (j *Journal) Append(body []byte) error {
	sum := crc32.Checksum(body, castagnoli)
	j.buf = binary.BigEndian.AppendUint32(j.buf[:0], uint32(len(body)))
	j.buf = append(binary.BigEndian.AppendUint32(j.buf, sum), body...)
	if _, err := j.file.WriteAt(j.buf, j.end); err != nil {
		return fmt.Errorf("the worker's file: %w", err)
	}
	j.end += int64(len(j.buf))
	j.at = append(j.at, j.end-int64(len(body)))
	j.size = append(j.size, len(body))
	j.sums = append(j.sums, sum)
	return nil
}

// Read returns slice n.
func (j *Journal) Read(n int) ([]byte, error) {
	if n < 0 || n >= len(j.at) {
		return nil, fmt.Errorf("%s holds %d slices; slice %d is not one of them", j.file.Name(), len(j.at), n)
	}
	body := make([]byte, j.size[n])
	if _, err := j.file.ReadAt(body, j.at[n]); err != nil {
		return nil, fmt.Errorf("slice %d of %s: %w", n, j.file.Name(), err)
	}
	if crc32.Checksum(body, castagnoli) != j.sums[n] {
		return nil, fmt.Errorf("slice %d of %s is not what was written there", n, j.file.Name())
	}
	return body, nil
}

// Close puts everything on disk and closes the file.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close()) }

// ReadJournal reads the slices of a journal. Where its end is torn, or damaged, it returns those before and says so.
func ReadJournal(r io.Reader) (all []fleet.Slice, err error) {
	b := bufio.NewReader(r)
	for {
		var head [8]byte
		if n, err := io.ReadFull(b, head[:]); err != nil {
			if n == 0 && errors.Is(err, io.EOF) {
				return all, nil
			}
			return all, fmt.Errorf("behind slice %d: torn within a head", len(all))
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > fleet.MaxSlice {
			return all, fmt.Errorf("behind slice %d: a slice of %d bytes; at most %d", len(all), size, fleet.MaxSlice)
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(b, body); err != nil {
			return all, fmt.Errorf("behind slice %d: torn within a slice", len(all))
		}
		if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
			return all, fmt.Errorf("behind slice %d: damaged", len(all))
		}
		s, err := fleet.DecodeSlice(body)
		if err != nil {
			return all, fmt.Errorf("behind slice %d: %w", len(all), err)
		}
		all = append(all, s)
	}
}
