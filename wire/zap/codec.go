package zap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// maxDepth bounds how deep structs may nest: a message within a message within a message.
const maxDepth = 16

// A Codec turns values of one struct type into messages and back. Its exported fields stand in their order, each aligned to
// its own width: integers, floats and bools at 1, 2, 4 or 8 bytes (int and uint are 8), strings and []byte as slots, a
// struct as a message in a slot, any other slice as a list. A field may only ever be added at the end. Maps, interfaces,
// pointers and arrays are refused. It is safe for concurrent use.
type Codec[T any] struct{ plan *plan }

// NewCodec plans the layout of T. An error names the field that can't be laid out.
func NewCodec[T any]() (*Codec[T], error) {
	p, err := newPlan(reflect.TypeFor[T](), 0)
	if err != nil {
		return nil, fmt.Errorf("zap: %v: %w", reflect.TypeFor[T](), err)
	}
	return &Codec[T]{p}, nil
}

// Append appends v as a message to dst. It allocates only what dst lacks.
func (c *Codec[T]) Append(dst []byte, v *T) []byte {
	return c.plan.append(dst, unsafe.Pointer(v))
}

// Decode sets v from a message, whose bytes it does not keep: texts and slices are copied. Empty input is the zero value.
func (c *Codec[T]) Decode(src []byte, v *T) error { return c.decode(src, v, false) }

// View is Decode without the copies: the texts and byte slices of v are src's memory and change with it.
func (c *Codec[T]) View(src []byte, v *T) error { return c.decode(src, v, true) }

func (c *Codec[T]) decode(src []byte, v *T, alias bool) error {
	var zero T
	*v = zero
	if len(src) == 0 {
		return nil
	}
	return c.plan.decode(src, unsafe.Pointer(v), alias)
}

// A plan is the layout of a struct.
type plan struct {
	fields []field
	size   int // of the fixed section
	lists  bool
}

// A field is one field of a plan.
type field struct {
	name   string
	kind   kind
	width  int     // bytes of the fixed section
	memory uintptr // offset in the Go struct
	wire   int     // offset in the object
	sub    *plan   // of a struct
	elem   *element
}

// An element is what a list holds.
type element struct {
	typ reflect.Type // of the slice
	one field        // an element, at offset 0
}

type kind uint8

const (
	scalar kind = iota // copied as it is, little-endian
	boolean
	text
	blob
	object
	list
)

func newPlan(t reflect.Type, depth int) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is no struct", t)
	}
	if depth > maxDepth {
		return nil, errors.New("structs nested too deeply")
	}
	p := new(plan)
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		f, err := newField(sf.Type, depth)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		p.size = (p.size + f.width - 1) / f.width * f.width
		f.name, f.memory, f.wire = sf.Name, sf.Offset, p.size
		p.size += f.width
		p.lists = p.lists || f.kind == list
		p.fields = append(p.fields, f)
	}
	p.size = (p.size + 7) / 8 * 8
	return p, nil
}

func newField(t reflect.Type, depth int) (f field, err error) {
	switch t.Kind() {
	case reflect.Bool:
		return field{kind: boolean, width: 1}, nil
	case reflect.Int, reflect.Uint:
		// Eight bytes on the wire whatever the machine; ours are 64-bit, and newPlan refuses others.
		if t.Size() != 8 {
			return f, errors.New("int is not 64 bits on this machine; use int64")
		}
		return field{kind: scalar, width: 8}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return field{kind: scalar, width: int(t.Size())}, nil
	case reflect.String:
		return field{kind: text, width: 8}, nil
	case reflect.Struct:
		f = field{kind: object, width: 8}
		f.sub, err = newPlan(t, depth+1)
		return f, err
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return field{kind: blob, width: 8}, nil
		}
		one, err := newField(t.Elem(), depth+1)
		if err == nil && one.kind == list {
			err = errors.New("a list of lists")
		}
		return field{kind: list, width: 8, elem: &element{t, one}}, err
	}
	return f, fmt.Errorf("%v has no place in a message", t)
}

func (p *plan) append(dst []byte, v unsafe.Pointer) []byte {
	w := begin(dst, Version1, 0)
	var places []int
	if p.lists {
		places = p.appendLists(&w, v)
	}
	w.object(p.size)
	for i := range p.fields {
		f := &p.fields[i]
		if f.kind == list {
			if places[i] != 0 {
				s := w.at(f.wire)
				binary.LittleEndian.PutUint32(s, uint32(int32(places[i]-(w.root+f.wire))))
				binary.LittleEndian.PutUint32(s[4:], uint32(f.elem.len(unsafe.Add(v, f.memory))))
			}
			continue
		}
		f.put(&w, f.wire, unsafe.Add(v, f.memory))
	}
	return w.end()
}

// appendLists appends the lists that stand before the object and returns where each is, 0 for an empty one.
func (p *plan) appendLists(w *builder, v unsafe.Pointer) []int {
	places := make([]int, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		if f.kind != list {
			continue
		}
		mem := unsafe.Add(v, f.memory)
		n := f.elem.len(mem)
		if n > 0 {
			places[i] = len(w.b) - w.start
		}
		for k := range n {
			at := len(w.b)
			w.b = append(w.b, 0, 0, 0, 0)
			f.elem.one.appendAlone(w, f.elem.at(mem, k))
			binary.LittleEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
		}
	}
	return places
}

func (e *element) len(mem unsafe.Pointer) int { return (*sliceHeader)(mem).len }

func (e *element) at(mem unsafe.Pointer, i int) unsafe.Pointer {
	return unsafe.Add((*sliceHeader)(mem).data, uintptr(i)*e.typ.Elem().Size())
}

// sliceHeader is how Go keeps a slice; a test compares it with the real one.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// put writes a field into the fixed section, and behind it what its slot points to.
func (f *field) put(w *builder, offset int, mem unsafe.Pointer) {
	switch f.kind {
	case scalar:
		putScalar(w.at(offset), f.width, mem)
	case boolean:
		if *(*bool)(mem) {
			w.at(offset)[0] = 1
		}
	case text:
		w.slotString(offset, *(*string)(mem))
	case blob:
		w.slot(offset, *(*[]byte)(mem))
	case object:
		before := len(w.b)
		w.point(offset, 0)
		w.b = f.sub.append(w.b, mem)
		binary.LittleEndian.PutUint32(w.at(offset)[4:], uint32(len(w.b)-before))
	}
}

// appendAlone writes an element of a list: the bare bytes.
func (f *field) appendAlone(w *builder, mem unsafe.Pointer) {
	switch f.kind {
	case scalar:
		at := len(w.b)
		w.b = append(w.b, zeros[:f.width]...)
		putScalar(w.b[at:], f.width, mem)
	case boolean:
		w.b = append(w.b, *(*byte)(mem))
	case text:
		w.b = append(w.b, *(*string)(mem)...)
	case blob:
		w.b = append(w.b, *(*[]byte)(mem)...)
	case object:
		w.b = f.sub.append(w.b, mem)
	}
}

func putScalar(b []byte, width int, mem unsafe.Pointer) {
	switch width {
	case 1:
		b[0] = *(*byte)(mem)
	case 2:
		binary.LittleEndian.PutUint16(b, *(*uint16)(mem))
	case 4:
		binary.LittleEndian.PutUint32(b, *(*uint32)(mem))
	default:
		binary.LittleEndian.PutUint64(b, *(*uint64)(mem))
	}
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

func (p *plan) decode(src []byte, v unsafe.Pointer, alias bool) error {
	m, err := Parse(src)
	if err != nil {
		return err
	}
	for i := range p.fields {
		f := &p.fields[i]
		if err := f.get(m, unsafe.Add(v, f.memory), alias); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return nil
}

func (f *field) get(m Message, mem unsafe.Pointer, alias bool) error {
	switch f.kind {
	case scalar, boolean:
		b, err := m.fixed(f.wire, f.width)
		if err != nil {
			return err
		}
		return f.set(b, mem, alias)
	case list:
		data, n, err := m.list(f.wire)
		if err != nil || n == 0 {
			return err
		}
		return f.elem.decode(data, int(n), mem, alias)
	}
	b, err := m.bytes(f.wire)
	if err != nil || b == nil {
		return err
	}
	return f.set(b, mem, alias)
}

// set sets a field from its bytes.
func (f *field) set(b []byte, mem unsafe.Pointer, alias bool) error {
	switch f.kind {
	case scalar:
		if len(b) != f.width {
			return fmt.Errorf("zap: %d bytes for a number of %d: %w", len(b), f.width, ErrRange)
		}
		getScalar(b, f.width, mem)
	case boolean:
		if len(b) != 1 || b[0] > 1 {
			return fmt.Errorf("zap: %x is no bool: %w", b, ErrRange)
		}
		*(*bool)(mem) = b[0] == 1
	case text:
		if alias {
			*(*string)(mem) = unsafe.String(unsafe.SliceData(b), len(b))
		} else {
			*(*string)(mem) = string(b)
		}
	case blob:
		if !alias {
			b = append([]byte(nil), b...)
		}
		*(*[]byte)(mem) = b
	case object:
		return f.sub.decode(b, mem, alias)
	}
	return nil
}

// decode reads n elements, each a length of four bytes and its bytes. The slice grows as elements turn out to be there: a
// count alone must not make us set memory aside.
func (e *element) decode(data []byte, n int, mem unsafe.Pointer, alias bool) error {
	s := reflect.NewAt(e.typ, mem).Elem()
	for i := range n {
		if len(data) < 4 {
			return fmt.Errorf("zap: element %d of %d: %w", i, n, ErrTruncated)
		}
		size := binary.LittleEndian.Uint32(data)
		if uint64(size) > uint64(len(data)-4) {
			return fmt.Errorf("zap: element %d of %d has %d bytes of %d: %w", i, n, size, len(data)-4, ErrRange)
		}
		if i == s.Cap() {
			s.Grow(min(n-i, max(i, 16)))
		}
		s.SetLen(i + 1)
		s.Index(i).SetZero()
		if err := e.one.set(data[4:4+size:4+size], s.Index(i).Addr().UnsafePointer(), alias); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		data = data[4+size:]
	}
	return nil
}
