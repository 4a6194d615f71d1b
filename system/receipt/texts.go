package receipt

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// A texts is the recall of a gateway that makes no groups: the envelopes themselves, in two generations. They are copied into
// large blocks, so that a remembered one neither keeps a receipt alive nor is followed by the collector. Its table is open
// addressing with the places of both generations in one cache line: a new request costs one access to memory, not three.
type texts struct {
	seeds  [2]maphash.Seed
	most   int // of one generation
	count  int // in the current one
	now    uint32
	table  [][2]textSlot // of now's parity, and of the other; its length is a power of two, at least twice most
	blocks [2][][]byte   // likewise
}

// A textSlot is where a request's envelope is. Without the generation that is looked for it is free.
type textSlot struct {
	key           key
	generation    uint32
	block, offset uint32
	length        uint32
}

const textBlock = 256 << 10 // bytes

func newTexts(most int) texts {
	most = max(most/2, 1)
	return texts{ // a slot that was never used is of generation 0
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: most, now: 2,
	}
}

// keyOf is a request's key as long as this table lives: of the same length as the one that the index keeps, and a fifth of
// its price. Without the seeds nobody can choose two requests that share it.
func (t *texts) keyOf(tenant, id string) (k key) {
	var b [1 + maxName + maxID]byte
	text := identity(&b, tenant, id)
	binary.LittleEndian.PutUint64(k[:], maphash.Bytes(t.seeds[0], text))
	binary.LittleEndian.PutUint64(k[8:], maphash.Bytes(t.seeds[1], text))
	return k
}

// slot returns a key's slot of a generation, or the one to put it in.
func (t *texts) slot(k *key, generation uint32) (s *textSlot, used bool) {
	mask := uint64(len(t.table) - 1)
	for i := binary.LittleEndian.Uint64(k[:]); ; i++ {
		s = &t.table[i&mask][generation&1]
		if s.generation != generation || s.key == *k {
			return s, s.generation == generation
		}
	}
}

func (t *texts) find(k key) ([]byte, bool) {
	if t.table == nil {
		return nil, false
	}
	s, ok := t.slot(&k, t.now)
	if !ok {
		if s, ok = t.slot(&k, t.now-1); !ok {
			return nil, false
		}
	}
	b := t.blocks[s.generation&1][s.block]
	return b[s.offset : s.offset+s.length : s.offset+s.length], true
}

// put remembers what find did not find. When the generation is full, the next one begins, and what the old one held is forgotten.
func (t *texts) put(k key, text []byte) {
	if t.table == nil {
		t.table = make([][2]textSlot, 1<<bits.Len(uint(2*t.most-1)))
	}
	if t.count == t.most {
		t.now, t.count = t.now+1, 0
		t.blocks[t.now&1] = nil
	}
	blocks := &t.blocks[t.now&1]
	last := len(*blocks) - 1
	if last < 0 || cap((*blocks)[last])-len((*blocks)[last]) < len(text) {
		*blocks = append(*blocks, make([]byte, 0, textBlock))
		last++
	}
	b := &(*blocks)[last]
	s, _ := t.slot(&k, t.now)
	*s = textSlot{k, t.now, uint32(last), uint32(len(*b)), uint32(len(text))}
	*b = append(*b, text...)
	t.count++
}
