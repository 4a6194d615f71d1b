package bus

import (
	"bytes"
	"maps"
	"slices"
	"testing"
)

func TestBadNames(t *testing.T) {
	t.Parallel()
	good := appendAttach(nil, -7, []Name{{"a", 1}, {"bc", 1 << 60}})
	names, at, err := parseAttach(good)
	if err != nil || at != -7 || !slices.Equal(names, []Name{{"a", 1}, {"bc", 1 << 60}}) {
		t.Errorf("%v, %d, %v", names, at, err)
	}
	for _, in := range []string{"", "1234567", string(good[:len(good)-1]), string(good[:9]), string(good[:8]) + "\x00" + "12345678", string(good) + "\xff"} {
		if _, _, err := parseAttach([]byte(in)); err == nil || err.Error() != "bus: a list of names is malformed" {
			t.Errorf("%q: %v", in, err)
		}
	}
	owners := map[string]Owner{"n": {"node", "tcp://x", 3}, "m": {"node", "", 4}}
	list := appendOwners(nil, owners, []string{"tcp://y"})
	back, met, err := parseOwners(list)
	if err != nil || !maps.Equal(back, owners) || !slices.Equal(met, []string{"tcp://y"}) {
		t.Errorf("%v, %v, %v", back, met, err)
	}
	for _, in := range []string{"\x01", "\x01n\x00\x00" + "12345678", "\x00\x00\x00" + "12345678", string(list[:len(list)-1]), string(list) + "\x05"} {
		if _, _, err := parseOwners([]byte(in)); err == nil || err.Error() != "bus: a list of names is malformed" {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := parseProbe(make([]byte, 15)); err == nil || err.Error() != "bus: the answer to a probe is malformed: 15 bytes" {
		t.Error(err)
	}
}

func FuzzAttach(f *testing.F) {
	f.Add(appendAttach(nil, 1, []Name{{"a", 1}, {"bc", 2}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		names, at, err := parseAttach(data)
		if err == nil && !bytes.Equal(appendAttach(nil, at, names), data) {
			t.Fatalf("%x was read as %v", data, names)
		}
	})
}

func FuzzOwners(f *testing.F) {
	f.Add(appendOwners(nil, map[string]Owner{"n": {"node", "addr", 3}}, []string{"addr"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		owners, met, err := parseOwners(data)
		if err != nil {
			return
		}
		again, metAgain, err := parseOwners(appendOwners(nil, owners, met))
		if err != nil || !maps.Equal(again, owners) || !slices.Equal(met, metAgain) {
			t.Fatalf("%x: %v, %v", data, owners, err)
		}
	})
}

// Whatever comes, a responder answers it or says that it is no frame.
func FuzzRespond(f *testing.F) {
	c := NewCall("to", "from", "op")
	c.Kind = 1
	f.Add(c.AppendRequest(nil, 1))
	r := NewResponder(func(dst []byte, r *Request) ([]byte, error) { return append(dst, r.Body...), nil }, Config{})
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := r.respond([]byte("before"), data)
		if !bytes.HasPrefix(out, []byte("before")) {
			t.Fatalf("what was there before is now %q", out)
		}
		if err == nil && len(out) > len("before") {
			var back Call
			if err := back.Reply(out[len("before"):]); err != nil {
				t.Fatal(err)
			}
		}
	})
}
