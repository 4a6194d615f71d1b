package opserver

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// A flat reads and writes the JSON of a struct whose fields are texts, integers and booleans, without encoding/json. It
// takes on what is plain and leaves the rest to encoding/json, so that both always agree: decode and append report whether
// they did it.
type flat struct{ fields []flatField }

// A flatField is one field of the struct.
type flatField struct {
	name   string
	lead   string // what stands before the value: {"name": or ,"name":
	kind   reflect.Kind
	offset uintptr
}

// newFlat plans the fields of T, nil if T is not flat.
func newFlat[T any]() *flat {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct || t.NumField() == 0 || t.NumField() > 64 {
		return nil
	}
	f := &flat{}
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || sf.Anonymous || name == "" || name == "-" || options != "" || !plainText([]byte(name)) {
			return nil
		}
		switch kind := sf.Type.Kind(); {
		case sf.Type.PkgPath() != "": // a type of its own may write its own JSON
			return nil
		case kind == reflect.String, kind == reflect.Bool, kind == reflect.Int64:
			lead := ","
			if i == 0 {
				lead = "{"
			}
			f.fields = append(f.fields, flatField{name, lead + `"` + name + `":`, kind, sf.Offset})
		default:
			return nil
		}
	}
	return f
}

// plainText reports whether b stands in JSON as it is, even by the rules of json.Marshal, which escapes for HTML.
func plainText(b []byte) bool {
	for len(b) >= 8 && plainEight(binary.LittleEndian.Uint64(b)) {
		b = b[8:]
	}
	for _, c := range b {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// plainEight is plainText for eight bytes at once. It may say no to what is plain.
func plainEight(x uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	found := (x - each*' ') | x
	for _, c := range [...]uint64{'"', '\\', '<', '>', '&'} {
		found |= x ^ each*c - each
	}
	return found&high == 0
}

// append appends the JSON of the struct at v.
func (f *flat) append(dst []byte, v unsafe.Pointer) (_ []byte, ok bool) {
	if f == nil {
		return dst, false
	}
	start := len(dst)
	for i := range f.fields {
		one := &f.fields[i]
		dst = append(dst, one.lead...)
		switch at := unsafe.Add(v, one.offset); one.kind {
		case reflect.String:
			text := *(*string)(at)
			if !plainText(unsafe.Slice(unsafe.StringData(text), len(text))) {
				return dst[:start], false
			}
			dst = append(append(append(dst, '"'), text...), '"')
		case reflect.Int64:
			dst = strconv.AppendInt(dst, *(*int64)(at), 10)
		default:
			dst = strconv.AppendBool(dst, *(*bool)(at))
		}
	}
	return append(dst, '}'), true
}

// decode sets the struct at v from JSON. Its texts are src's memory. When it reports false, it may have set some fields.
func (f *flat) decode(src []byte, v unsafe.Pointer) bool {
	if f == nil {
		return false
	}
	p := flatReader{b: src}
	if p.next() != '{' {
		return false
	}
	p.i++
	for p.next() != '}' {
		name, ok := p.text()
		if !ok || p.next() != ':' {
			return false
		}
		p.i++
		p.next()
		if !f.set(name, &p, v) {
			return false
		}
		if p.next() == ',' {
			p.i++
			if p.next() != '"' {
				return false
			}
			continue
		}
		if p.next() != '}' {
			return false
		}
	}
	p.i++
	p.next()
	return p.i == len(src)
}

// set sets the named field from the value at hand.
func (f *flat) set(name []byte, p *flatReader, v unsafe.Pointer) (ok bool) {
	for i := range f.fields {
		one := &f.fields[i]
		if one.name != string(name) {
			continue
		}
		switch at := unsafe.Add(v, one.offset); one.kind {
		case reflect.String:
			var text []byte
			if text, ok = p.text(); ok {
				*(*string)(at) = unsafe.String(unsafe.SliceData(text), len(text))
			}
		case reflect.Int64:
			*(*int64)(at), ok = p.integer()
		default:
			*(*bool)(at), ok = p.boolean()
		}
		return ok
	}
	return false
}

// A flatReader reads the plain part of JSON.
type flatReader struct {
	b []byte
	i int
}

// next skips white space and returns the byte that follows it, 0 at the end.
func (p *flatReader) next() byte {
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// text reads a string without escapes.
func (p *flatReader) text() ([]byte, bool) {
	if p.i >= len(p.b) || p.b[p.i] != '"' {
		return nil, false
	}
	start := p.i + 1
	ascii := true
	for i := start; i < len(p.b); i++ {
		switch c := p.b[i]; {
		case c == '"':
			p.i = i + 1
			return p.b[start:i], ascii || utf8.Valid(p.b[start:i])
		case c < ' ', c == '\\':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// integer reads an integer of at most 18 digits.
func (p *flatReader) integer() (n int64, ok bool) {
	negative := p.i < len(p.b) && p.b[p.i] == '-'
	if negative {
		p.i++
	}
	start := p.i
	for ; p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9'; p.i++ {
		if p.i-start == 18 {
			return 0, false
		}
		n = 10*n + int64(p.b[p.i]-'0')
	}
	if p.i == start || p.b[start] == '0' && p.i-start > 1 {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

func (p *flatReader) boolean() (v, ok bool) {
	for _, v := range []bool{true, false} {
		if w := strconv.FormatBool(v); strings.HasPrefix(unsafe.String(unsafe.SliceData(p.b), len(p.b))[p.i:], w) {
			p.i += len(w)
			return v, true
		}
	}
	return false, false
}
