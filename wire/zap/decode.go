package zap

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
)

// reading says how a message is read.
type reading struct{ alias, lenient bool }

func (p *plan) decode(src []byte, v unsafe.Pointer, how reading) error {
	m, err := parse(src, how.lenient)
	if err != nil {
		return err
	}
	for i := range p.fields {
		f := &p.fields[i]
		if err := f.get(&m, unsafe.Add(v, f.memory), how); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return nil
}

// get sets a field from the message; what is null or leniently not there stays zero.
func (f *field) get(m *Message, mem unsafe.Pointer, how reading) error {
	var b []byte
	var err error
	switch f.kind {
	case list:
		data, n, err := m.list(m.root+f.wire, 4)
		if err != nil || n == 0 {
			return err
		}
		return f.elem.decode(m, data, n, mem, how)
	case scalar, boolean:
		b, err = m.fixed(m.root+f.wire, f.width)
	default:
		b, err = m.bytes(m.root + f.wire)
	}
	if err != nil || b == nil {
		return err
	}
	return f.set(b, mem, how)
}

// set sets a field from its bytes.
func (f *field) set(b []byte, mem unsafe.Pointer, how reading) error {
	switch f.kind {
	case scalar, boolean:
		return f.setFixed(b, mem, how)
	case text:
		if how.alias {
			*(*string)(mem) = unsafe.String(unsafe.SliceData(b), len(b))
		} else {
			*(*string)(mem) = string(b)
		}
	case blob:
		if !how.alias {
			b = append([]byte(nil), b...)
		}
		*(*[]byte)(mem) = b
	case object:
		return f.sub.decode(b, mem, how)
	}
	return nil
}

func (f *field) setFixed(b []byte, mem unsafe.Pointer, how reading) error {
	var padded [8]byte
	if len(b) != f.width {
		if !how.lenient {
			return fmt.Errorf("zap: %d bytes for a value of %d: %w", len(b), f.width, ErrRange)
		}
		copy(padded[:], b)
		b = padded[:]
	}
	if f.kind == scalar {
		getScalar(b, f.width, mem)
		return nil
	}
	if b[0] > 1 && !how.lenient {
		return fmt.Errorf("zap: %#02x is no bool: %w", b[0], ErrRange)
	}
	*(*bool)(mem) = b[0] != 0
	return nil
}

func getScalar(b []byte, width int, mem unsafe.Pointer) {
	switch width {
	case 1:
		*(*byte)(mem) = b[0]
	case 2:
		*(*uint16)(mem) = binary.LittleEndian.Uint16(b)
	case 4:
		*(*uint32)(mem) = binary.LittleEndian.Uint32(b)
	default:
		*(*uint64)(mem) = binary.LittleEndian.Uint64(b)
	}
}

// decode reads n elements. The slice grows as they turn out to be there: a number alone must not make us set memory aside.
func (e *element) decode(m *Message, data []byte, n int, mem unsafe.Pointer, how reading) error {
	s := reflect.NewAt(e.slice, mem).Elem()
	for i := range n {
		one, rest, err := m.element(data, i, n)
		if err != nil {
			return err
		}
		if i == s.Cap() {
			s.Grow(min(n-i, max(i, 16)))
		}
		s.SetLen(i + 1)
		if one != nil {
			if err := e.one.set(one, e.at(mem, i), how); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		data = rest
	}
	return nil
}
