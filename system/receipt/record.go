package receipt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A segment file is a head, 8 bytes of magic and the first seq (u64), and records behind one another. A record is
//
//	length u32 | CRC-32C of what follows u32 | kind u8 | payload
//
// with length counting the payload, and all numbers little-endian. A group is what one sync made durable:
//
//	kind 'G': first u64 | count u16 | form u8 | root after [32] | peaks before, 32 each | count × (length u16 | envelope)
//
// With its peaks it stands alone: its receipts can be made from it and its signatures. Signatures follow later, in any order:
//
//	kind 'S': first u64 | signatures, 64 each: of every envelope (single), of the checkpoint (batch), by both keys (rotation)
const (
	segmentMagic = "tollrcp1"
	segmentHead  = len(segmentMagic) + 8
	recordHead   = 4 + 4 + 1
	kindGroup    = 'G'
	kindSigs     = 'S'
	maxRecord    = 4 << 20
)

// The forms of a group's receipts, as written.
const (
	formSingle   = 1
	formBatch    = 2
	formRotation = 3
)

// appendRecord appends a record whose payload is appended by fill.
func appendRecord(dst []byte, kind byte, fill func([]byte) []byte) []byte {
	from := len(dst)
	dst = fill(append(dst, 0, 0, 0, 0, 0, 0, 0, 0, kind))
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-recordHead))
	binary.LittleEndian.PutUint32(dst[from+4:], checksum(dst[from+8:]))
	return dst
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// A record is one that was read.
type record struct {
	kind    byte
	payload []byte
	size    int // with its head
}

var (
	errShort    = errors.New("the record is cut short")
	errRecord   = errors.New("the record's head is damaged")
	errChecksum = errors.New("the record's checksum does not match")
)

// readRecord reads the record that b starts with.
func readRecord(b []byte) (r record, err error) {
	if len(b) < recordHead {
		return r, errShort
	}
	n := binary.LittleEndian.Uint32(b)
	if r.kind = b[8]; n > maxRecord || r.kind != kindGroup && r.kind != kindSigs {
		return r, errRecord
	}
	if r.size = recordHead + int(n); r.size > len(b) {
		return r, errShort
	}
	if binary.LittleEndian.Uint32(b[4:]) != checksum(b[8:r.size]) {
		return r, errChecksum
	}
	r.payload = b[recordHead:r.size]
	return r, nil
}

// torn reports whether b, which does not start with a whole record, is what a cut left behind: no whole record follows.
func torn(b []byte) bool {
	for i := 1; i+recordHead <= len(b); i++ {
		if b[i+8] != kindGroup && b[i+8] != kindSigs {
			continue
		}
		if _, err := readRecord(b[i:]); err == nil {
			return false
		}
	}
	return true
}

// appendGroup appends a group's record.
func appendGroup(dst []byte, g *group) []byte {
	return appendRecord(dst, kindGroup, func(b []byte) []byte {
		b = binary.LittleEndian.AppendUint64(b, g.before.size)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(g.envelopes)))
		b = append(append(b, g.form), g.root[:]...)
		b = g.before.append(b)
		for _, e := range g.envelopes {
			b = append(binary.LittleEndian.AppendUint16(b, uint16(len(e))), e...)
		}
		return b
	})
}

// readGroup reads a group's payload. The envelopes are copies; the root is what the entries give.
func readGroup(b []byte) (*group, error) {
	const fixed = 8 + 2 + 1 + 32
	if len(b) < fixed {
		return nil, errors.New("the group is cut short")
	}
	g := &group{form: b[10]}
	first, count := binary.LittleEndian.Uint64(b), int(binary.LittleEndian.Uint16(b[8:]))
	copy(g.root[:], b[11:])
	rest, ok := g.before.read(first, b[fixed:])
	if !ok || count == 0 || g.form < formSingle || g.form > formRotation {
		return nil, errors.New("the group's head is damaged")
	}
	rest = bytes.Clone(rest)
	for range count {
		if len(rest) < 2 || int(binary.LittleEndian.Uint16(rest)) > len(rest)-2 {
			return nil, errors.New("an entry is cut short")
		}
		n := 2 + int(binary.LittleEndian.Uint16(rest))
		g.envelopes = append(g.envelopes, rest[2:n:n])
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return nil, errors.New("something stands behind the last entry")
	}
	wrote := g.root
	g.build()
	if g.root != wrote {
		return nil, fmt.Errorf("the entries %d to %d do not give the root that was written", first, first+uint64(count)-1)
	}
	return g, nil
}

// appendSigs appends the record of a group's signatures.
func appendSigs(dst []byte, g *group) []byte {
	return appendRecord(dst, kindSigs, func(b []byte) []byte {
		b = binary.LittleEndian.AppendUint64(b, g.before.size)
		for _, s := range g.sigs {
			b = append(b, s...)
		}
		return b
	})
}

// readSigs reads signatures and the first seq of the group that they are of.
func readSigs(b []byte) (first uint64, sigs [][]byte, err error) {
	if len(b) < 8+64 || len(b)%64 != 8 {
		return 0, nil, errors.New("the signatures are cut short")
	}
	first = binary.LittleEndian.Uint64(b)
	b = bytes.Clone(b[8:])
	for ; len(b) > 0; b = b[64:] {
		sigs = append(sigs, b[:64:64])
	}
	return first, sigs, nil
}
