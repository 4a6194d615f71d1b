package zap

import (
	"encoding/binary"
	"unsafe"
)

func (p *plan) append(dst []byte, v unsafe.Pointer) []byte {
	w := Build(dst, Version1, 0)
	var at places
	if p.lists > 0 {
		p.appendLists(&w, &at, v)
	}
	w.Object(p.size)
	lists := 0
	for i := range p.fields {
		f := &p.fields[i]
		mem := unsafe.Add(v, f.memory)
		if f.kind == list {
			w.LinkList(f.wire, at.of(lists), f.elem.len(mem))
			lists++
			continue
		}
		f.put(&w, mem)
	}
	return w.End()
}

// places are where a struct's lists are; those of a struct with few cost no memory.
type places struct {
	few  [8]int
	more []int
}

func (p *places) set(i, place int) {
	if i < len(p.few) {
		p.few[i] = place
		return
	}
	p.more = append(p.more, place)
}

func (p *places) of(i int) int {
	if i < len(p.few) {
		return p.few[i]
	}
	return p.more[i-len(p.few)]
}

// appendLists appends the lists, which stand before the object, and notes their places.
func (p *plan) appendLists(w *Builder, at *places, v unsafe.Pointer) {
	lists := 0
	for i := range p.fields {
		f := &p.fields[i]
		if f.kind != list {
			continue
		}
		place := 0
		if mem := unsafe.Add(v, f.memory); f.elem.len(mem) > 0 {
			place = w.List()
			f.elem.append(w, mem)
		}
		at.set(lists, place)
		lists++
	}
}

// append appends the elements, each with its length before it.
func (e *element) append(w *Builder, mem unsafe.Pointer) {
	for i := range e.len(mem) {
		at := len(w.b)
		w.b = append(w.b, 0, 0, 0, 0)
		e.one.appendAlone(w, e.at(mem, i))
		binary.LittleEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
	}
}

// sliceHeader is how Go keeps a slice; a test compares it with the real one.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

func (e *element) len(mem unsafe.Pointer) int { return (*sliceHeader)(mem).len }

func (e *element) at(mem unsafe.Pointer, i int) unsafe.Pointer {
	return unsafe.Add((*sliceHeader)(mem).data, uintptr(i)*e.size)
}

// put writes a field into the fixed section, and behind it what its slot points to.
func (f *field) put(w *Builder, mem unsafe.Pointer) {
	switch f.kind {
	case scalar:
		putScalar(w.at(f.wire), f.width, mem)
	case boolean:
		if *(*bool)(mem) {
			w.Uint8(f.wire, 1)
		}
	case text:
		w.Text(f.wire, *(*string)(mem))
	case blob:
		w.Bytes(f.wire, *(*[]byte)(mem))
	case object:
		at := w.point(f.wire)
		w.b = f.sub.append(w.b, mem)
		w.pointed(f.wire, at)
	}
}

// appendAlone writes an element of a list: the bare bytes.
func (f *field) appendAlone(w *Builder, mem unsafe.Pointer) {
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
