package zap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/wire/zap"
)

// corrupt returns the small vector with bytes replaced from an offset on.
func corrupt(at int, with ...byte) []byte {
	b := []byte("ZAP\x00\x01\x00\x00\x00\x10\x00\x00\x00\x22\x00\x00\x00*\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x02\x00\x00\x00hi")
	copy(b[at:], with)
	return b
}

func TestBadMessages(t *testing.T) {
	t.Parallel()
	c := codec[small](t)
	good := corrupt(0)
	for name, x := range map[string]struct {
		in   []byte
		is   error
		want string
	}{
		"short header":        {good[:15], zap.ErrTruncated, "zap: header of 15 bytes: truncated"},
		"magic":               {corrupt(0, 'Z', 'I', 'P'), zap.ErrMagic, "zap: magic 5a495000: not a ZAP message"},
		"version 0":           {corrupt(4, 0), zap.ErrVersion, "zap: version 0: unknown version"},
		"version 3":           {corrupt(4, 3), zap.ErrVersion, "zap: version 3: unknown version"},
		"compressed":          {corrupt(6, 1), zap.ErrFlags, "zap: flags 0x0001: compressed or encrypted: flags not understood"},
		"encrypted":           {corrupt(6, 2), zap.ErrFlags, "zap: flags 0x0002: compressed or encrypted: flags not understood"},
		"root in the header":  {corrupt(8, 15), zap.ErrRoot, "zap: root at 15 of 34: root outside the message"},
		"root behind the end": {corrupt(8, 35), zap.ErrRoot, "zap: root at 35 of 34: root outside the message"},
		"root at the end":     {corrupt(8, 34), zap.ErrRange, "field N: zap: field of 8 bytes at 34 of 34: offset or length outside the message"},
		"size too small":      {corrupt(12, 15), zap.ErrSize, "zap: total size 15 is less than the header: bad total size"},
		"size too large":      {corrupt(12, 35), zap.ErrTruncated, "zap: total size 35 of 34 bytes: truncated"},
		"64 MiB + 1":          {corrupt(12, 1, 0, 0, 4), zap.ErrTooLarge, "zap: total size 67108865, at most 67108864: too large"},
		"2^32 - 1":            {corrupt(12, 255, 255, 255, 255), zap.ErrTooLarge, "zap: total size 4294967295, at most 67108864: too large"},
		"truncated":           {good[:33], zap.ErrTruncated, "zap: total size 34 of 33 bytes: truncated"},
		"slot behind the end": {corrupt(24, 9), zap.ErrRange, "field Text: zap: slot at 24 points to 2 bytes at 33 of 34: offset or length outside the message"},
		"slot too long":       {corrupt(28, 3), zap.ErrRange, "field Text: zap: slot at 24 points to 3 bytes at 32 of 34: offset or length outside the message"},
		"slot 2^32 - 1":       {corrupt(24, 255, 255, 255, 255, 255, 255, 255, 255), zap.ErrRange, "field Text: zap: slot at 24 points to 4294967295 bytes at 4294967319 of 34: offset or length outside the message"},
		"null with a length":  {corrupt(24, 0, 0, 0, 0, 2), zap.ErrRange, "field Text: zap: null slot at 24 with length 2: offset or length outside the message"},
	} {
		var s small
		err := c.Decode(x.in, &s)
		if !errors.Is(err, x.is) || err.Error() != x.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, x.want)
		}
	}
	// Bytes behind a message's total size are not its own.
	var s small
	if err := c.Decode(append(good, "rest"...), &s); err != nil || s.Text != "hi" {
		t.Errorf("trailing bytes: %+v, %v", s, err)
	}
}

func TestBadLists(t *testing.T) {
	t.Parallel()
	type listed struct{ L []int64 }
	c := codec[listed](t)
	for want, spoil := range map[string]func(slot, list []byte){
		"field L: zap: list at 40 of 1073741824 elements at 16 of 48: offset or length outside the message": func(slot, _ []byte) { binary.LittleEndian.PutUint32(slot[4:], 1<<30) },
		"field L: zap: list at 40 of 4294967295 elements at 16 of 48: offset or length outside the message": func(slot, _ []byte) { binary.LittleEndian.PutUint32(slot[4:], 1<<32-1) },
		"field L: zap: list at 40 of 9 elements at 16 of 48: offset or length outside the message":          func(slot, _ []byte) { slot[4] = 9 },
		"field L: zap: list at 40 of 2 elements at 15 of 48: offset or length outside the message":          func(slot, _ []byte) { slot[0]-- },
		"field L: zap: list at 40 of 2 elements at -2147483608 of 48: offset or length outside the message": func(slot, _ []byte) { copy(slot, "\x00\x00\x00\x80") },
		"field L: zap: list at 40 of 2 elements at 49 of 48: offset or length outside the message":          func(slot, _ []byte) { copy(slot, "\x09\x00\x00\x00") },
		"field L: zap: null list at 40 with 2 elements: offset or length outside the message":               func(slot, _ []byte) { copy(slot, "\x00\x00\x00\x00") },
		"field L: zap: element 0 of 2 has 255 bytes of 28: offset or length outside the message":            func(_, list []byte) { list[0] = 255 },
		"field L: element 0: zap: 7 bytes for a value of 8: offset or length outside the message":           func(_, list []byte) { list[0] = 7 },
		"field L: zap: list at 40 of 1 elements at 45 of 48: offset or length outside the message":          func(slot, list []byte) { copy(slot, "\x05\x00\x00\x00\x01") },
	} {
		b := c.Append(nil, &listed{[]int64{1, 2}})
		spoil(b[len(b)-8:], b[16:])
		var l listed
		if err := c.Decode(b, &l); err == nil || err.Error() != want {
			t.Errorf("\ngot  %v\nwant %s", err, want)
		}
	}
}

func TestANestedMessageIsCheckedToo(t *testing.T) {
	t.Parallel()
	c := codec[nested](t)
	b := c.Append(nil, &nested{In: small{1, "x"}})
	b[bytes.LastIndex(b[:80], []byte("ZAP"))] = 'z'
	var v nested
	if err := c.Decode(b, &v); !errors.Is(err, zap.ErrMagic) || err.Error() != "field In: zap: magic 7a415000: not a ZAP message" {
		t.Errorf("got %v", err)
	}
}

// built is a message with everything an object can point to.
func built() []byte {
	w := zap.Build(nil, zap.Version2, 7<<8)
	inner := w.Object(8)
	w.Uint32(0, 5)
	elements := w.List()
	w.Element([]byte("one"))
	w.Element(nil)
	w.Element([]byte("three"))
	flat := w.List()
	w.Raw([]byte{1, 2, 3, 4})
	w.Object(48)
	w.Uint8(0, 1)
	w.Uint16(2, 2)
	w.Link(4, inner)
	w.LinkList(8, elements, 3)
	w.LinkList(16, flat, 2)
	w.LinkList(24, flat, 0)
	w.Bytes(32, []byte("bytes"))
	return w.End()
}

func TestABuiltMessageIsReadFieldByField(t *testing.T) {
	t.Parallel()
	for _, parse := range []func([]byte) (zap.Message, error){zap.Parse, zap.ParseLenient} {
		m, err := parse(built())
		if err != nil || m.Type() != 7 || m.Version != 2 || m.Size() != len(built()) {
			t.Fatalf("%+v, %v", m, err)
		}
		o := m.Root()
		if a, b, c := o.Uint8(0), o.Uint16(2), string(o.Bytes(32)); a != 1 || b != 2 || c != "bytes" {
			t.Errorf("%d %d %q", a, b, c)
		}
		inner, ok := o.Object(4)
		if n := inner.Uint32(0); !ok || n != 5 {
			t.Errorf("inner %v %d", ok, n)
		}
		if _, ok := o.Object(40); ok || o.Bytes(40) != nil {
			t.Error("a null slot points somewhere")
		}
		var got []string
		l := o.List(8)
		for e, ok := l.Next(); ok; e, ok = l.Next() {
			got = append(got, string(e))
		}
		if d := cmp.Diff([]string{"one", "", "three"}, got); d != "" || l.Err() != nil || l.Len() != 3 {
			t.Errorf("%s, %v", d, l.Err())
		}
		flat := o.List(16)
		if b, err := flat.Fixed(2); err != nil || string(b) != "\x01\x02\x03\x04" {
			t.Errorf("%x, %v", b, err)
		}
		if none := o.List(24); none.Len() != 0 || o.Err() != nil {
			t.Errorf("%d, %v", none.Len(), o.Err())
		}
	}
}

func TestTheFirstReadingOutsideIsKept(t *testing.T) {
	t.Parallel()
	m, _ := zap.Parse(built())
	for want, read := range map[string]func(o *zap.Object){
		"zap: field of 8 bytes at 104 of 109: offset or length outside the message":                             func(o *zap.Object) { o.Uint64(48) },
		"zap: field of 4 bytes at 156 of 109: offset or length outside the message":                             func(o *zap.Object) { o.Uint32(100); o.Uint64(200) },
		"zap: slot at 60 points to 4294967256 bytes at 4294967312 of 109: offset or length outside the message": func(o *zap.Object) { o.Bytes(4) },
	} {
		o := m.Root()
		read(&o)
		if o.Uint8(0) != 0 || o.Err() == nil || o.Err().Error() != want {
			t.Errorf("\ngot  %v\nwant %s", o.Err(), want)
		}
		loose, _ := zap.ParseLenient(built())
		o = loose.Root()
		read(&o)
		if o.Uint8(0) != 1 || o.Err() != nil {
			t.Errorf("leniently %d, %v", o.Uint8(0), o.Err())
		}
	}
	o := m.Root()
	wide := o.List(16)
	if _, err := wide.Fixed(100); err == nil || err.Error() != "zap: 2 elements of 100 bytes in 61: offset or length outside the message" {
		t.Errorf("got %v", err)
	}
	m, err := zap.ParseLenient(corrupt(8, 35))
	if o := m.Root(); err != nil || o.Uint64(0) != 0 || o.Err() != nil {
		t.Errorf("a root outside, leniently: %v, %v", err, o.Err())
	}
}

// FuzzObject reads every kind of field at every offset: no reading leaves the message.
func FuzzObject(f *testing.F) {
	f.Add(built())
	for _, v := range vectors(f) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) (zap.Message, error){zap.Parse, zap.ParseLenient} {
			m, err := parse(b)
			if err != nil {
				continue
			}
			if m.Size() > len(b) {
				t.Fatalf("size %d of %d", m.Size(), len(b))
			}
			for offset := range 64 {
				readAll(t, m.Root(), offset, 0)
			}
		}
	})
}

func readAll(t *testing.T, o zap.Object, offset, depth int) {
	fresh := o
	fresh.Uint8(offset)
	fresh.Uint16(offset)
	fresh.Uint32(offset)
	fresh.Uint64(offset)
	one := o
	one.Bytes(offset)
	two := o
	l := two.List(offset)
	l.Fixed(3)
	n := 0
	for _, ok := l.Next(); ok; _, ok = l.Next() {
		n++
	}
	if n > l.Len() || n < l.Len() && l.Err() == nil {
		t.Fatalf("%d of %d elements, %v", n, l.Len(), l.Err())
	}
	three := o
	if inner, ok := three.Object(offset); ok && depth < 4 { // an object may point to itself
		readAll(t, inner, offset, depth+1)
	}
}
