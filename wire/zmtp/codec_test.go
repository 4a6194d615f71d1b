package zmtp

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(src io.Reader) (frames []string, err error) {
	in := &frameReader{src: src, max: 1 << 20}
	for {
		flags, body, err := in.next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, string([]byte{'0' + flags})+string(body))
	}
}

func TestFramesAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	var stream []byte
	var want []string
	for _, n := range []int{0, 1, 255, 256, 9000, 8180, 3, 100_000} {
		body := bytes.Repeat([]byte{'x'}, n)
		stream = appendFrame(stream, flagMore, body)
		flags := byte('0' + flagMore)
		if n > 255 {
			flags |= flagLong
		}
		want = append(want, string([]byte{flags})+string(body))
	}
	for name, src := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"halves": iotest.HalfReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		got, err := readAll(src)
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %d frames, %v", name, len(got), err)
		}
	}
}

func TestBadFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"\x08\x00", "zmtp: protocol violated: frame flags 0x08"},
		{"\xff\x00", "zmtp: protocol violated: frame flags 0xff"},
		{"\x05\x00", "zmtp: protocol violated: a command frame that says more will follow"},
		{"\x02\x00\x00\x00\x00\x00\x10\x00\x01", "zmtp: too long: frame of 1048577 bytes, at most 1048576 are taken"},
		{"\x02\x00\x00\x00\x00\xff\xff\xff\xff", "zmtp: too long: frame of 4294967295 bytes, at most 1048576 are taken"},
		{"\x02\x00\x00\x01\x00\x00\x00\x00\x00", "zmtp: too long: frame of 1099511627776 bytes, at most 1048576 are taken"},
		{"\x02\x40\x00\x00\x00\x00\x00\x00\x00", "zmtp: too long: frame of 4611686018427387904 bytes, at most 1048576 are taken"},
		{"\x02\xff\xff\xff\xff\xff\xff\xff\xff", "zmtp: too long: frame of 18446744073709551615 bytes, at most 1048576 are taken"},
		{"\x00\x05abc", "5 bytes of a frame of 7: unexpected EOF"},
		{"\x00", "1 bytes of a frame of 2: unexpected EOF"},
		{"\x02\x00\x00", "3 bytes of a frame of 9: unexpected EOF"},
	} {
		if _, err := readAll(strings.NewReader(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.in, err, c.want)
		}
	}
}

// What a frame declares is not what we set aside for it.
func TestADeclaredLengthTakesNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in := &frameReader{src: strings.NewReader("\x02\x00\x00\x00\x00\x3f\xff\xff\xff" + strings.Repeat("x", 1000)), max: 1 << 30}
	if _, _, err := in.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
}

func TestGreetings(t *testing.T) {
	t.Parallel()
	good := appendGreeting(nil, "PLAIN", true)
	if g, err := parseGreeting(good); err != nil || g != (greeting{minor: 1, mechanism: "PLAIN", server: true}) {
		t.Errorf("got %+v, %v", g, err)
	}
	change := func(at int, b ...byte) []byte {
		g := bytes.Clone(good)
		copy(g[at:], b)
		return g
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{change(0, 'G'), "zmtp: protocol violated: signature 47 00 00 00 00 00 00 00 00 7f, want ff … 7f"},
		{change(9, 0), "zmtp: protocol violated: signature ff 00 00 00 00 00 00 00 00 00, want ff … 7f"},
		{change(10, 2, 1), "zmtp: protocol violated: version 2.1, want 3.0 or later"},
		{change(31, 1), `zmtp: protocol violated: mechanism "PLAIN\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" is not padded with zeros`},
	} {
		if _, err := parseGreeting(c.in); err == nil || err.Error() != c.want {
			t.Errorf("% x: got %v, want %s", c.in, err, c.want)
		}
	}
}

func TestBadCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", "zmtp: protocol violated: command of 0 bytes has no whole name"},
		{"\x00", "zmtp: protocol violated: command of 1 bytes has no whole name"},
		{"\x05REA", "zmtp: protocol violated: command of 4 bytes has no whole name"},
	} {
		if _, _, err := parseCommand([]byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("command %q: got %v", c.in, err)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"\x0bSocket-Type", "zmtp: protocol violated: metadata ends within a property's name"},
		{"\x00\x00\x00\x00\x00", "zmtp: protocol violated: metadata ends within a property's name"},
		{"\x01X\xff\xff\xff\xff", `zmtp: protocol violated: property "X" declares 4294967295 bytes, 0 are there`},
		{"\x08Identity\x00\x00\x00\x01\x00", "zmtp: protocol violated: identity of 1 bytes; want at most 255, the first not zero"},
	} {
		if _, err := parseMetadata([]byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("metadata %q: got %v", c.in, err)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"\x05ab", "zmtp: protocol violated: HELLO ends within the user's name"},
		{"\x01a\x02b", "zmtp: protocol violated: HELLO does not end with the password"},
		{"\x01a\x01bc", "zmtp: protocol violated: HELLO does not end with the password"},
	} {
		if _, _, err := parseHello([]byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("hello %q: got %v", c.in, err)
		}
	}
	m, err := parseMetadata(metadata{"DEALER", "me"}.append([]byte("\x01X\x00\x00\x00\x01y")))
	if err != nil || m != (metadata{"DEALER", "me"}) {
		t.Errorf("got %+v, %v", m, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x01a"))
	f.Add(appendFrame(appendCommand(nil, "READY", metadata{"DEALER", "x"}.append(nil)), flagMore, bytes.Repeat([]byte{1}, 300)))
	f.Add([]byte("\x02\x40\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &frameReader{src: iotest.HalfReader(bytes.NewReader(data)), max: 1 << 16}
		var again []byte
		for {
			flags, body, err := in.next()
			if err != nil {
				break
			}
			if len(body) > len(data) {
				t.Fatalf("%d bytes out of %d", len(body), len(data))
			}
			again = appendFrame(again, flags&^flagLong, body)
			if flags&flagCommand != 0 {
				if _, rest, err := parseCommand(body); err == nil {
					parseMetadata(rest)
					parseHello(rest)
				}
			}
		}
		if len(in.buf) > 1<<16+firstBuffer {
			t.Fatalf("%d bytes set aside", len(in.buf))
		}
		want, err := readAll(bytes.NewReader(again))
		if err != io.EOF {
			t.Fatalf("what was read and written again: %v after %d frames", err, len(want))
		}
	})
}

func FuzzGreeting(f *testing.F) {
	f.Add(appendGreeting(nil, "NULL", false))
	f.Add(appendGreeting(nil, "PLAIN", true))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < greetingSize {
			return
		}
		g, err := parseGreeting(data[:greetingSize])
		if err == nil && len(g.mechanism) > mechanismSize {
			t.Fatalf("mechanism of %d bytes", len(g.mechanism))
		}
	})
}
