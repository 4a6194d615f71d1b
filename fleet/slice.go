package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"toll/lab/record"
)

// MaxSlice bounds an encoded slice, in bytes.
const MaxSlice = 1 << 20

// maxID bounds the names in it.
const maxID = 64

// A Slice is what one worker measured of the calls that began, or were due, in one part of the run's time.
type Slice struct {
	Run    string
	Worker string
	N      int // from 0
	Stage  int // of the load
	From   time.Duration
	To     time.Duration
	CPU    time.Duration // that the worker's process has used since the slice before
	Shard  *record.Shard
}

// sliceMagic begins an encoded slice: a name and a version.
const sliceMagic = "tfs1"

// ErrSlice is why bytes are no slice.
var ErrSlice = errors.New("not a slice")

// Encode returns the slice's bytes.
func (s Slice) Encode() []byte { return s.AppendBinary(nil) }

// AppendBinary appends the slice's bytes: the magic, the two names with their lengths, the numbers as varints, the shard.
func (s Slice) AppendBinary(b []byte) []byte {
	b = append(b, sliceMagic...)
	for _, name := range []string{s.Run, s.Worker} {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	for _, v := range []int64{int64(s.N), int64(s.Stage), int64(s.From), int64(s.To), int64(s.CPU)} {
		b = binary.AppendUvarint(b, uint64(max(v, 0)))
	}
	return s.Shard.AppendBinary(b)
}

// DecodeSlice parses what Encode returned. Every error is an ErrSlice.
func DecodeSlice(b []byte) (Slice, error) {
	s, rest, err := decodeHead(b)
	if err != nil {
		return s, err
	}
	if s.Shard, err = record.ParseShard(rest); err != nil {
		return s, fmt.Errorf("%w: %w", ErrSlice, err)
	}
	return s, nil
}

// decodeHead parses everything but the shard, whose bytes it returns.
func decodeHead(b []byte) (s Slice, rest []byte, err error) {
	bad := func(format string, args ...any) (Slice, []byte, error) {
		return Slice{}, nil, fmt.Errorf("%w: %s", ErrSlice, fmt.Sprintf(format, args...))
	}
	if len(b) > MaxSlice {
		return bad("%d bytes; at most %d", len(b), MaxSlice)
	}
	if len(b) < len(sliceMagic) || string(b[:len(sliceMagic)]) != sliceMagic {
		return bad("it does not begin with %s", sliceMagic)
	}
	b = b[len(sliceMagic):]
	for _, name := range []*string{&s.Run, &s.Worker} {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > maxID || int(n) > len(b)-w {
			return bad("a name that is too long or cut")
		}
		*name, b = string(b[w:w+int(n)]), b[w+int(n):]
	}
	var numbers [5]int64
	for i := range numbers {
		v, w := binary.Uvarint(b)
		if w <= 0 || v > math.MaxInt64 {
			return bad("it ends within its numbers")
		}
		numbers[i], b = int64(v), b[w:]
	}
	if numbers[0] >= maxSlices || numbers[1] >= maxSlices {
		return bad("slice %d of stage %d; at most %d", numbers[0], numbers[1], maxSlices)
	}
	s.N, s.Stage = int(numbers[0]), int(numbers[1])
	s.From, s.To, s.CPU = time.Duration(numbers[2]), time.Duration(numbers[3]), time.Duration(numbers[4])
	if s.To < s.From {
		return bad("it ends before it begins")
	}
	return s, b, nil
}

// maxSlices bounds the slices of a run: a day of seconds and as many stages as a plan may have.
const maxSlices = 24*3600 + 1000

// A chain is the running digest over a worker's slices.
type chain struct{ all []byte }

// add adds a slice's bytes.
func (c *chain) add(body []byte) {
	sum := sha256.Sum256(body)
	c.addSum(sum)
}

func (c *chain) addSum(sum [32]byte) {
	next := sha256.Sum256(append(c.all[:len(c.all):len(c.all)], sum[:]...))
	c.all = next[:]
}

// text returns the digest in hex; empty without slices.
func (c *chain) text() string { return hex.EncodeToString(c.all) }
