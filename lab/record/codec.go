package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Bounds of an encoded shard: what is beyond was not written by us.
const (
	maxNames   = maxKinds + 1
	maxNameLen = 64
	maxCount   = math.MaxInt64 >> 8 // of anything counted, so that a few hundred shards can be added up
)

// ErrEncoding is why bytes are no shard.
var ErrEncoding = errors.New("not an encoded shard")

// AppendBinary appends the shard's counts and histograms, without its raw samples. All numbers are unsigned varints: the
// counters, then each histogram as count, sum, min, max and its buckets as (distance from the one before, count).
func (s *Shard) AppendBinary(dst []byte) []byte {
	for _, v := range s.counters() {
		dst = binary.AppendUvarint(dst, uint64(max(*v, 0)))
	}
	for _, h := range s.hists() {
		dst = h.append(dst)
	}
	dst = appendCounts(dst, s.Failures)
	dst = appendCounts(dst, s.BadParts)
	dst = binary.AppendUvarint(dst, uint64(len(s.Parts)))
	for _, name := range slices.Sorted(maps.Keys(s.Parts)) {
		dst = s.Parts[name].append(appendName(dst, name))
	}
	return dst
}

// counters are the numbers of a shard that another process may send.
func (s *Shard) counters() []*int64 {
	return []*int64{&s.FailedNS, &s.Dropped, (*int64)(&s.Active), &s.Out, &s.In}
}

func (s *Shard) hists() []*Hist { return []*Hist{&s.Latency, &s.Failing, &s.Service, &s.Late} }

func appendName(dst []byte, name string) []byte {
	name = name[:min(len(name), maxNameLen)]
	return append(binary.AppendUvarint(dst, uint64(len(name))), name...)
}

func appendCounts(dst []byte, counts map[string]int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(counts)))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		dst = binary.AppendUvarint(appendName(dst, name), uint64(counts[name]))
	}
	return dst
}

func (h *Hist) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.count))
	if h.count == 0 {
		return dst
	}
	buckets := 0
	for _, o := range h.octave {
		if o == nil {
			continue
		}
		for _, n := range o {
			if n != 0 {
				buckets++
			}
		}
	}
	for _, v := range []int64{h.sum, h.min, h.max, int64(buckets)} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	dst = slices.Grow(dst, 2*buckets) // most are two bytes
	last := 0
	for at, o := range h.octave {
		if o == nil {
			continue
		}
		for i, n := range o {
			if n == 0 {
				continue
			}
			distance := at<<subBits + i - last
			last += distance
			if uint64(distance|int(n)) < oneByte {
				dst = append(dst, byte(distance), byte(n))
			} else {
				dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(distance)), uint64(n))
			}
		}
	}
	return dst
}

// oneByte is what a varint of one byte is below.
const oneByte = 1 << 7

// ParseShard decodes what AppendBinary wrote, all of b. Every error is an ErrEncoding.
func ParseShard(b []byte) (*Shard, error) {
	p := &parser{rest: b}
	s := new(Shard)
	for _, v := range s.counters() {
		*v = p.number("a counter", maxCount)
	}
	for _, h := range s.hists() {
		p.hist(h)
	}
	s.Failures = p.counts("failures")
	s.BadParts = p.counts("failed parts")
	for range p.number("the number of parts", maxNames) {
		name := p.name()
		if _, twice := s.Parts[name]; twice {
			p.fail("part %q stands twice", name)
		}
		if p.err != nil {
			break
		}
		p.hist(s.part(name))
	}
	if len(p.rest) > 0 {
		p.fail("%d bytes behind its end", len(p.rest))
	}
	if p.err != nil {
		return nil, p.err
	}
	s.Active = time.Duration(s.Active)
	return s, nil
}

// A parser reads numbers; after an error it reads zeros.
type parser struct {
	rest []byte
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrEncoding, fmt.Sprintf(format, args...))
	}
}

func (p *parser) number(what string, most int64) int64 {
	if p.err == nil && len(p.rest) > 0 && p.rest[0] < oneByte && int64(p.rest[0]) <= most { // as most are
		v := p.rest[0]
		p.rest = p.rest[1:]
		return int64(v)
	}
	return p.long(what, most)
}

func (p *parser) long(what string, most int64) int64 {
	if p.err != nil {
		return 0
	}
	v, n := binary.Uvarint(p.rest)
	switch {
	case n <= 0:
		p.fail("it ends within %s", what)
		return 0
	case v > uint64(most):
		p.fail("%s is %d; at most %d", what, v, most)
		return 0
	}
	p.rest = p.rest[n:]
	return int64(v)
}

func (p *parser) name() string {
	n := p.number("a name's length", maxNameLen)
	if int(n) > len(p.rest) {
		p.fail("it ends within a name")
		return ""
	}
	name := string(p.rest[:n])
	p.rest = p.rest[n:]
	return name
}

func (p *parser) counts(what string) map[string]int64 {
	var out map[string]int64
	for range p.number("the number of "+what, maxNames) {
		name := p.name()
		n := p.number(what, maxCount)
		if _, twice := out[name]; twice {
			p.fail("%s: %q stands twice", what, name)
		}
		if p.err != nil {
			return nil
		}
		if out == nil {
			out = make(map[string]int64)
		}
		out[name] = n
	}
	return out
}

func (p *parser) hist(h *Hist) {
	h.count = p.number("a histogram's count", maxCount)
	if h.count == 0 {
		return
	}
	h.sum = p.number("a histogram's sum", maxCount)
	h.min = p.number("a histogram's least", math.MaxInt64)
	h.max = p.number("a histogram's most", math.MaxInt64)
	if h.min > h.max {
		p.fail("a histogram's least is %d, its most %d", h.min, h.max)
	}
	var total int64
	at := 0
	for k := range p.number("a histogram's number of buckets", numBuckets) {
		d := p.number("a bucket's distance", numBuckets-1)
		n := p.number("a bucket's count", maxCount)
		if at += int(d); at >= numBuckets || d == 0 && k > 0 || n == 0 {
			p.fail("bucket %d with %d values", at, n)
		}
		if p.err != nil {
			return
		}
		total += n
		h.of(at >> subBits)[at&(subCount-1)] += n
		if total > h.count {
			break
		}
		if k == 0 && at != bucketOf(h.min) {
			p.fail("a histogram's least is %d, and its first bucket another's", h.min)
		}
	}
	if total != h.count || p.err == nil && at != bucketOf(h.max) {
		p.fail("a histogram of %d values whose buckets hold %d, the last one beside its most", h.count, total)
	}
}
