package zap_test

import (
	"bytes"
	"errors"
	"math"
	oldrand "math/rand"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/wire/zap"
)

type small struct {
	N    int64
	Text string
}

func codec[T any](t testing.TB) *zap.Codec[T] {
	t.Helper()
	c, err := zap.NewCodec[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type everything struct {
	B      bool
	I8     int8
	U16    uint16
	I32    int32
	U64    uint64
	I      int
	F32    float32
	F64    float64
	S      string
	Bytes  []byte
	Nested small
	Deep   struct{ Deeper struct{ S string } }
	Texts  []string
	Nums   []int32
	Flags  []bool
	Blobs  [][]byte
	Many   []small
	After  string
}

func TestEveryKindSurvivesTheTrip(t *testing.T) {
	t.Parallel()
	c := codec[everything](t)
	trip := func(v everything, view bool) bool {
		b := c.Append([]byte("before"), &v)[6:]
		var back everything
		read := c.Decode
		if view {
			read = c.View
		}
		if err := read(b, &back); err != nil {
			t.Errorf("%+v: %v", v, err)
			return false
		}
		if d := cmp.Diff(v, back, cmpopts.EquateEmpty()); d != "" { // an empty slice and none are the same on the wire
			t.Error(d)
			return false
		}
		return true
	}
	trip(everything{}, false)
	trip(everything{I: math.MinInt, U64: math.MaxUint64, F64: math.Inf(-1), I8: -128, U16: math.MaxUint16}, true)
	if err := quick.Check(trip, &quick.Config{MaxCount: 300, Rand: oldrand.New(oldrand.NewSource(1))}); err != nil {
		t.Error(err)
	}
}

func TestUnexportedFieldsAreNotOnTheWire(t *testing.T) {
	t.Parallel()
	type secret struct {
		N      int64
		hidden string
		Text   string
	}
	b := codec[secret](t).Append(nil, &secret{42, "no", "hi"})
	if want := codec[small](t).Append(nil, &small{42, "hi"}); !bytes.Equal(b, want) {
		t.Errorf("got %x, want %x", b, want)
	}
}

func TestDecodingSetsWhatIsNotThereToZero(t *testing.T) {
	t.Parallel()
	c := codec[small](t)
	s := small{1, "old"}
	if err := c.Decode(nil, &s); err != nil || s != (small{}) {
		t.Errorf("empty input: %+v, %v", s, err)
	}
}

// A field that was added at the end does not keep an older reader from reading.
func TestAppendedFieldsAreIgnoredByOlderReaders(t *testing.T) {
	t.Parallel()
	type newer struct {
		N     int64
		Text  string
		Added string
	}
	var s small
	if err := codec[small](t).Decode(codec[newer](t).Append(nil, &newer{7, "x", "more"}), &s); err != nil || s != (small{7, "x"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestATextIsCopiedUnlessItIsViewed(t *testing.T) {
	t.Parallel()
	c := codec[small](t)
	b := c.Append(nil, &small{1, "text"})
	var copied, viewed small
	if err := errors.Join(c.Decode(b, &copied), c.View(b, &viewed)); err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] = 'T'
	if copied.Text != "text" || viewed.Text != "texT" {
		t.Errorf("copied %q, viewed %q", copied.Text, viewed.Text)
	}
}

func TestTypesWithoutAPlaceAreRefused(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"field M: map[string]int has no place in a message": newError[struct{ M map[string]int }](),
		"field A: interface {} has no place in a message":   newError[struct{ A any }](),
		"field P: *int has no place in a message":           newError[struct{ P *int }](),
		"field A: [3]int has no place in a message":         newError[struct{ A [3]int }](),
		"field L: a list of lists":                          newError[struct{ L [][]int }](),
		"int is no struct":                                  newError[int](),
		"field R: a struct within itself":                   newError[recursive](),
		"structs nested more than 16 deep":                  newError[struct{ X d4[d4[d4[d4[small]]]] }](),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

type recursive struct{ R []recursive }

type d4[T any] struct {
	A struct{ B struct{ C []struct{ T T } } }
}

func newError[T any]() error {
	_, err := zap.NewCodec[T]()
	return err
}

func TestTheSliceHeaderIsGos(t *testing.T) {
	t.Parallel()
	type header struct {
		data     unsafe.Pointer
		len, cap int
	}
	s := make([]int, 3, 7)
	h := (*header)(unsafe.Pointer(&s))
	if h.data != unsafe.Pointer(unsafe.SliceData(s)) || h.len != 3 || h.cap != 7 || unsafe.Sizeof(s) != reflect.TypeFor[header]().Size() {
		t.Error("Go keeps slices differently")
	}
}

func TestStructsWithManyLists(t *testing.T) {
	t.Parallel()
	type many struct{ A, B, C, D, E, F, G, H, I, J []int16 }
	v := many{A: []int16{1}, H: []int16{8, 8}, I: []int16{9}, J: []int16{10, 10, 10}}
	var got many
	c := codec[many](t)
	if err := c.Decode(c.Append(nil, &v), &got); err != nil || cmp.Diff(v, got) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(v, got))
	}
}

func TestTheCodecAllocatesNothing(t *testing.T) {
	c, n := codec[everything](t), codec[nested](t)
	buf := make([]byte, 0, 4096)
	v := &everything{S: "text", Texts: []string{"a", "b"}, Many: []small{{1, "x"}}, Flags: []bool{true}}
	w, got := &nested{A: 1, In: small{2, "in"}}, new(nested)
	if n := testing.AllocsPerRun(1000, func() {
		c.Append(buf[:0], v)
		if err := n.View(n.Append(buf[:0], w), got); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A field that was added and is not there, a list with too many, a bool of 2: strict readers refuse, lenient ones read on.
func TestLenientReadingTakesZeroForWhatIsNotThere(t *testing.T) {
	t.Parallel()
	type newer struct {
		N     int64
		Text  string
		More  int64
		Last  string
		Lists []string
	}
	old := codec[small](t).Append(nil, &small{7, ""})
	c := codec[newer](t)
	var got newer
	if err := c.Decode(old, &got); !errors.Is(err, zap.ErrRange) || err.Error() != "field More: zap: field of 8 bytes at 32 of 32: offset or length outside the message" {
		t.Errorf("strict: %v", err)
	}
	c.Lenient = true
	if err := c.Decode(old, &got); err != nil || cmp.Diff(newer{N: 7}, got) != "" {
		t.Errorf("lenient: %+v, %v", got, err)
	}

	type one struct {
		B bool
		L []int32
	}
	b := codec[one](t).Append(nil, &one{true, []int32{5, 6}})
	flag, number := len(b)-16, len(b)-4
	b[flag], b[number] = 2, 3
	s := codec[one](t)
	var o one
	if err := s.Decode(b, &o); err == nil || err.Error() != "field B: zap: 0x02 is no bool: offset or length outside the message" {
		t.Errorf("strict: %v", err)
	}
	b[flag] = 1
	// The third length is what stands in the padding and the object behind the list.
	if err := s.Decode(b, &o); !errors.Is(err, zap.ErrRange) || err.Error() != "field L: element 2: zap: 1 bytes for a value of 4: offset or length outside the message" {
		t.Errorf("strict: %v", err)
	}
	s.Lenient, b[flag] = true, 2
	if err := s.Decode(b, &o); err != nil || !o.B || len(o.L) != 3 || o.L[1] != 6 {
		t.Errorf("lenient: %+v, %v", o, err)
	}
}

func FuzzDecode(f *testing.F) {
	c, lenient := codec[everything](f), codec[everything](f)
	lenient.Lenient = true
	f.Add(c.Append(nil, &everything{S: "x", Texts: []string{"a", "b"}, Many: []small{{1, "y"}}, Nums: []int32{1}}))
	f.Add([]byte{})
	for _, v := range vectors(f) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, view, again, loose everything
		err := c.Decode(b, &v)
		if viewErr := c.View(b, &view); (err == nil) != (viewErr == nil) {
			t.Fatalf("decode says %v, view %v", err, viewErr)
		}
		looseErr := lenient.Decode(b, &loose)
		if err != nil {
			return
		}
		if d := cmp.Diff(v, loose, cmpopts.EquateNaNs()); looseErr != nil || d != "" {
			t.Fatalf("leniently %v: %s", looseErr, d)
		}
		if err := c.Decode(c.Append(nil, &v), &again); err != nil {
			t.Fatalf("what was decoded can't be decoded again: %v", err)
		}
	})
}
