package bus

import "encoding/binary"

// seen knows the numbers of a connection's latest requests. A caller gives each request a number of its own, and one comes
// again only after millions of others, so a frame whose number is known was replayed on the way: it is passed over, and the first is answered.
type seen struct{ numbers [1 << slotBits]uint32 }

// replayed is a flag that no frame has on the wire.
const replayed = 1 << 15

const (
	numberAt = 4
	flagsAt  = 10
)

// mark notes a frame, and flags it when it has been here.
func (s *seen) mark(b []byte) {
	flags := binary.LittleEndian.Uint16(b[flagsAt:]) &^ replayed
	id := binary.LittleEndian.Uint32(b[numberAt:])
	if last := &s.numbers[id%uint32(len(s.numbers))]; *last != id {
		*last = id
	} else if id != 0 {
		flags |= replayed
	}
	binary.LittleEndian.PutUint16(b[flagsAt:], flags)
}

func marked(b []byte) bool { return binary.LittleEndian.Uint16(b[flagsAt:])&replayed != 0 }
