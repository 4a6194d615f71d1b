package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"toll/fleet"
	"toll/lab/record"
)

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   "a message that does not parse: EOF",
		"{":                                  "a message that does not parse: unexpected EOF",
		`{"from":"w","what":1}`:              `a message that does not parse: json: unknown field "what"`,
		`{"from":"w"} {}`:                    "a message with something behind it",
		`{"from":"w","beat":{"phase":"up"}}`: `a message with the phase "up"`,
		`{"from":7}`:                         "a message that does not parse: json: cannot unmarshal number into Go struct field Message.from of type string",
	} {
		if _, err := fleet.Decode([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := fleet.Decode(make([]byte, fleet.MaxMessage+1)); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("too long: %v", err)
	}
}

func slice() fleet.Slice {
	s := new(record.Shard)
	s.Done(time.Millisecond, nil)
	return fleet.Slice{Run: "run", Worker: "w1", N: 3, From: time.Second, To: 2 * time.Second, Shard: s}
}

func TestWhatIsNoSliceIsRefused(t *testing.T) {
	t.Parallel()
	good := slice().Encode()
	if s, err := fleet.DecodeSlice(good); err != nil || s.Worker != "w1" || s.N != 3 || s.To != 2*time.Second || s.Shard.Latency.Count() != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	back := slice()
	back.From = 3 * time.Second
	far := slice()
	far.N = 1 << 30
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, "not a slice: it does not begin with tfs1"},
		{[]byte("tfs2"), "not a slice: it does not begin with tfs1"},
		{good[:6], "not a slice: a name that is too long or cut"},
		{append([]byte("tfs1"), 200, 1, 'a'), "not a slice: a name that is too long or cut"},
		{good[:13], "not a slice: it ends within its numbers"},
		{good[:len(good)-1], "not a slice: not an encoded shard: it ends within the number of parts"},
		{back.Encode(), "not a slice: it ends before it begins"},
		{far.Encode(), "not a slice: slice 1073741824 of stage 0; at most 87400"},
		{make([]byte, fleet.MaxSlice+1), "not a slice: 1048577 bytes; at most 1048576"},
	} {
		if _, err := fleet.DecodeSlice(c.in); !errors.Is(err, fleet.ErrSlice) || err.Error() != c.want {
			t.Errorf("%.20q: %v, want %s", c.in, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"from":"w1","beat":{"phase":"running","life":"x"}}`))
	f.Add(fleet.Message{To: "w", Go: &fleet.Go{At: 5}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := fleet.Decode(b)
		if err != nil {
			return
		}
		if _, err := fleet.Decode(m.Encode()); err != nil {
			t.Errorf("what was decoded does not come back: %v", err)
		}
	})
}

func FuzzDecodeSlice(f *testing.F) {
	f.Add(slice().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := fleet.DecodeSlice(b)
		if err != nil {
			return
		}
		if _, err := fleet.DecodeSlice(s.Encode()); err != nil {
			t.Errorf("what was decoded does not come back: %v", err)
		}
	})
}

// FuzzCoordinator has anybody say anything to a coordinator: it must not panic, nor call a run complete that is not.
func FuzzCoordinator(f *testing.F) {
	f.Add([]byte(`{"from":"w1","hello":{"life":"a"},"beat":{"phase":"joining","life":"a"}}`), slice().Encode())
	f.Add([]byte(`{"from":"w1","beat":{"phase":"done","life":"a","totals":{"slices":9,"digest":"00"}}}`), slice().Encode())
	f.Fuzz(func(t *testing.T, msg, body []byte) {
		c := fleet.NewCoordinator(fleet.Config{Run: "run", Workers: 1, Settings: shortSettings()})
		for i := range 20 {
			now := time.Duration(i) * time.Second
			c.Tick(now)
			if m, err := fleet.Decode(msg); err == nil {
				c.Handle(now, m)
			}
			if m, err := fleet.Decode([]byte(`{"from":"w1","hello":{"life":"a"},"beat":{"phase":"joining","life":"a"}}`)); err == nil {
				c.Handle(now, m)
			}
			c.HandleSlice(now, body)
		}
		if r := c.Report(); r.Verdict.Word == fleet.Complete {
			t.Errorf("complete, with %d slices", r.SlicesGot)
		}
	})
}
