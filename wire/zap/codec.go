package zap

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// maxDepth bounds how deep structs may nest: a message within a message within a message.
const maxDepth = 16

// A Codec turns values of one struct type into messages and back. Its exported fields stand in their order, each aligned to
// its own width: integers, floats and bools at 1, 2, 4 or 8 bytes (int and uint are 8), strings and []byte as slots, a
// struct as a message in a slot, any other slice as a list. Maps, interfaces, pointers, arrays, slices of slices and a
// struct within itself are refused. It is safe for concurrent use.
//
// Nothing on the wire says what a field is or how many there are. A field may only ever be added at the end, and then older
// readers ignore it; newer readers of an older message find other bytes in its place, or none.
type Codec[T any] struct {
	// Lenient makes Decode and View read zero where the message ends, and any byte but 0 as true. Set it before use.
	Lenient bool

	plan *plan
}

// NewCodec plans the layout of T. An error names the field that can't be laid out.
func NewCodec[T any]() (*Codec[T], error) {
	p, err := newPlan(reflect.TypeFor[T](), nil)
	if err != nil {
		return nil, fmt.Errorf("zap: %v: %w", reflect.TypeFor[T](), err)
	}
	return &Codec[T]{plan: p}, nil
}

// Append appends v as a message to dst. It allocates only what dst lacks.
func (c *Codec[T]) Append(dst []byte, v *T) []byte { return c.plan.append(dst, unsafe.Pointer(v)) }

// Decode sets v from a message, whose bytes it does not keep: texts and slices are copied. Empty input is the zero value.
// After an error v holds no more than part of the message.
func (c *Codec[T]) Decode(src []byte, v *T) error { return c.decode(src, v, false) }

// View is Decode without the copies: the texts and byte slices of v are src's memory and change with it.
func (c *Codec[T]) View(src []byte, v *T) error { return c.decode(src, v, true) }

func (c *Codec[T]) decode(src []byte, v *T, alias bool) error {
	var zero T
	*v = zero
	if len(src) == 0 {
		return nil
	}
	return c.plan.decode(src, unsafe.Pointer(v), reading{alias: alias, lenient: c.Lenient})
}

// A plan is the layout of a struct.
type plan struct {
	fields []field
	size   int // of the fixed section
	lists  int // fields that are lists
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
	slice reflect.Type
	size  uintptr // of an element in memory
	one   field   // an element, at offset 0
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

func newPlan(t reflect.Type, within []reflect.Type) (*plan, error) {
	switch {
	case t.Kind() != reflect.Struct:
		return nil, fmt.Errorf("%v is no struct", t)
	case slices.Contains(within, t):
		return nil, errors.New("a struct within itself")
	case len(within) > maxDepth:
		return nil, fmt.Errorf("structs nested more than %d deep", maxDepth)
	}
	within = append(slices.Clip(within), t)
	p := new(plan)
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		f, err := newField(sf.Type, within)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		p.size = (p.size + f.width - 1) / f.width * f.width
		f.name, f.memory, f.wire = sf.Name, sf.Offset, p.size
		p.size += f.width
		if f.kind == list {
			p.lists++
		}
		p.fields = append(p.fields, f)
	}
	p.size = (p.size + 7) / 8 * 8
	return p, nil
}

func newField(t reflect.Type, within []reflect.Type) (f field, err error) {
	switch t.Kind() {
	case reflect.Bool:
		return field{kind: boolean, width: 1}, nil
	case reflect.Int, reflect.Uint:
		if t.Size() != 8 {
			return f, errors.New("int is 8 bytes on the wire and not on this machine; use int64")
		}
		return field{kind: scalar, width: 8}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return field{kind: scalar, width: int(t.Size())}, nil
	case reflect.String:
		return field{kind: text, width: 8}, nil
	case reflect.Struct:
		f = field{kind: object, width: 8}
		f.sub, err = newPlan(t, within)
		return f, err
	case reflect.Slice:
		return newList(t, within)
	}
	return f, fmt.Errorf("%v has no place in a message", t)
}

func newList(t reflect.Type, within []reflect.Type) (field, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return field{kind: blob, width: 8}, nil
	}
	one, err := newField(t.Elem(), within)
	if err == nil && one.kind == list {
		err = errors.New("a list of lists")
	}
	return field{kind: list, width: 8, elem: &element{t, t.Elem().Size(), one}}, err
}
