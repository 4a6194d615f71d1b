package zap_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	oldrand "math/rand"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/quick"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/wire/mux"
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

// The vectors were made with the format's own implementation.
func TestVectors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"struct":       {codec[small](t).Append(nil, &small{42, "hi"}), "5a4150000100000010000000220000002a0000000000000008000000020000006869"},
		"rpc request":  {(&zap.RPCRequest{Method: 1, Promise: 7, Payload: []byte("pp")}).AppendMessage(nil), "5a415000020000c8100000002e000000010000000700000000000000000000000000000008000000020000007070"},
		"rpc response": {(&zap.RPCResponse{Status: 200, Promise: 7, Body: []byte("ok")}).AppendMessage(nil), "5a415000020000c81000000026000000c8000000070000000000000008000000020000006f6b"},
	} {
		if hex.EncodeToString(c.got) != c.want {
			t.Errorf("%s:\ngot  %x\nwant %s", name, c.got, c.want)
		}
	}
	var s small
	if err := codec[small](t).Decode(unhex("5a4150000100000010000000220000002a0000000000000008000000020000006869"), &s); err != nil || s != (small{42, "hi"}) {
		t.Errorf("decoded %+v, %v", s, err)
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
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
		"structs nested too deeply":                         newError[recursive](),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

type recursive struct{ R []recursive }

func newError[T any]() error {
	_, err := zap.NewCodec[T]()
	return err
}

// corrupt returns the small vector with bytes replaced from an offset on.
func corrupt(at int, with ...byte) []byte {
	b := unhex("5a4150000100000010000000220000002a0000000000000008000000020000006869")
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
		"64 MiB + 1":          {corrupt(12, 1, 0, 0, 4), zap.ErrTooLarge, "zap: total size 67108865: larger than 64 MiB"},
		"2^32 - 1":            {corrupt(12, 255, 255, 255, 255), zap.ErrTooLarge, "zap: total size 4294967295: larger than 64 MiB"},
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
	// A list whose count can't be true is refused before memory is set aside for it.
	type listed struct{ L []int64 }
	b := codec[listed](t).Append(nil, &listed{[]int64{1, 2}})
	binary.LittleEndian.PutUint32(b[len(b)-4:], 1<<30)
	var l listed
	if err := codec[listed](t).Decode(b, &l); !errors.Is(err, zap.ErrRange) {
		t.Errorf("a list of 2^30: %v", err)
	}
	binary.LittleEndian.PutUint32(b[len(b)-4:], 5)
	if err := codec[listed](t).Decode(b, &l); err == nil {
		t.Error("a list of 5 where 2 are")
	}
}

func exampleRequest() zap.Request {
	return zap.Request{
		Method: []byte("POST"), Target: []byte("/.well-known/zip/op/note"), Proto: []byte("HTTP/1.1"),
		Headers: []zap.Pair{{Name: []byte("Host"), Value: []byte("a")}, {Name: []byte("Content-Type"), Value: []byte("application/zap")}},
		Body:    []byte("body"), Trailer: nil,
	}
}

func TestHTTPFramesSurviveTheTrip(t *testing.T) {
	t.Parallel()
	want := exampleRequest()
	frame := want.Append(nil)
	if n := binary.BigEndian.Uint32(frame); int(n) != len(frame)-4 {
		t.Errorf("length %d of %d bytes", n, len(frame))
	}
	var got zap.Request
	if err := got.Parse(frame[4:]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	resp := zap.Response{Status: 422, Reason: []byte("No"), Proto: []byte("HTTP/1.1"), Headers: want.Headers, Body: []byte("x"), Trailer: []byte("t")}
	var back zap.Response
	if err := back.Parse(resp.Append(nil)[4:]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(resp, back); d != "" {
		t.Error(d)
	}
	if err := back.Parse(frame[4:]); !errors.Is(err, zap.ErrType) {
		t.Errorf("a request taken for a response: %v", err)
	}
	if err := got.Parse(append(frame[4:], 0)); !errors.Is(err, zap.ErrSize) {
		t.Errorf("a message shorter than its frame: %v", err)
	}
}

func TestBadHeaders(t *testing.T) {
	t.Parallel()
	at := func(b []byte) int { return bytes.Index(b, []byte("Host")) - 8 } // the number of headers
	for name, c := range map[string]struct {
		spoil func(b []byte)
		want  string
	}{
		"too many":        {func(b []byte) { b[at(b)] = 200 }, "zap: 200 headers in 48 bytes: offset or length outside the message"},
		"too few":         {func(b []byte) { b[at(b)] = 1 }, "zap: 35 bytes behind the headers: offset or length outside the message"},
		"one more":        {func(b []byte) { b[at(b)] = 3 }, "zap: header 2 of 3: truncated"},
		"a name too long": {func(b []byte) { b[at(b)+4] = 255 }, "zap: header 0 of 2 has 255 bytes of 44: offset or length outside the message"},
	} {
		r := exampleRequest()
		b := r.Append(nil)[4:]
		c.spoil(b)
		if err := new(zap.Request).Parse(b); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

func TestFramesAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	r := exampleRequest()
	one := r.Append(nil)
	big := zap.Request{Method: []byte("POST"), Body: bytes.Repeat([]byte("x"), 100_000)}
	stream := append(big.Append(bytes.Clone(one)), one...)
	for name, src := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)), "halves": iotest.HalfReader(bytes.NewReader(stream)),
	} {
		f := zap.NewFrameReader(src, 0)
		for i, want := range []int{len(one) - 4, 0, len(one) - 4} {
			m, err := f.Next()
			if err != nil || want > 0 && len(m) != want {
				t.Fatalf("%s: frame %d: %d bytes, %v", name, i, len(m), err)
			}
		}
		if _, err := f.Next(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
	for want, in := range map[string]string{
		"zap: frame of 67108865 bytes, at most 67108864: larger than 64 MiB":   "\x04\x00\x00\x01",
		"zap: frame of 4294967295 bytes, at most 67108864: larger than 64 MiB": "\xff\xff\xff\xff",
		"zap: frame of 3 bytes is less than a header: truncated":               "\x00\x00\x00\x03abc",
		"zap: 2 bytes of a frame of 4: unexpected EOF":                         "\x00\x00",
		"zap: 7 bytes of a frame of 24: unexpected EOF":                        "\x00\x00\x00\x14abc",
	} {
		if _, err := zap.NewFrameReader(strings.NewReader(in), 0).Next(); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", in, err, want)
		}
	}
}

func TestBadRPCFrames(t *testing.T) {
	t.Parallel()
	good := (&zap.RPCResponse{Status: 200, Promise: 7, Body: []byte("ok")}).Append(nil)
	spoil := func(at int, with byte) []byte {
		b := bytes.Clone(good)
		b[at] = with
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"short":        {good[:4], "zap: frame of 4 bytes: truncated"},
		"direction":    {spoil(4, 1), "zap: direction 1 instead of 2: unexpected direction"},
		"magic":        {spoil(5, 'z'), "zap: magic 7a415000: not a ZAP message"},
		"type":         {spoil(12, 199), "zap: type 199 instead of 200: unexpected type of message"},
		"shorter":      {append(bytes.Clone(good), 0), "zap: message of 38 bytes in a frame of 39: bad total size"},
		"body outside": {spoil(33, 99), "zap: slot at 28 points to 2 bytes at 127 of 38: offset or length outside the message"},
	} {
		if err := new(zap.RPCResponse).Parse(c.in); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	for n, want := range map[uint32]string{
		64<<20 + 1: "zap: frame of 67108865 bytes, at most 67108864: larger than 64 MiB",
		1<<32 - 1:  "zap: frame of 4294967295 bytes, at most 67108864: larger than 64 MiB",
		16:         "zap: frame of 16 bytes is less than a header: truncated",
	} {
		if _, err := (zap.RPCFraming{}).Length(binary.LittleEndian.AppendUint32(nil, n)); err == nil || err.Error() != want {
			t.Errorf("%d: got %v, want %s", n, err, want)
		}
	}
	var req zap.RPCRequest
	want := zap.RPCRequest{Method: 3, Promise: 9, Target: 8, Capability: []byte("c"), Payload: []byte("p")}
	if err := req.Parse(want.Append(nil)); err != nil || cmp.Diff(want, req) != "" {
		t.Errorf("%+v, %v", req, err)
	}
}

// call is one RPC call over mux.
type call struct {
	req  zap.RPCRequest
	resp zap.RPCResponse
}

func (c *call) AppendRequest(dst []byte, id uint32) []byte {
	c.req.Promise = id
	return c.req.Append(dst)
}

func (c *call) Reply(frame []byte) error { return c.resp.Parse(frame) }

func TestRPCOverAMuxOverPostQuantumTLS(t *testing.T) {
	t.Parallel()
	cert := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	serverConfig := zap.PostQuantum(&tls.Config{Certificates: []tls.Certificate{cert}})
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s := mux.Server{Framing: zap.RPCFraming{}, Quick: func([]byte) bool { return true }, Handle: func(dst, frame []byte) ([]byte, error) {
				var req zap.RPCRequest
				if err := req.Parse(frame); err != nil {
					return nil, err
				}
				return (&zap.RPCResponse{Status: zap.StatusOK, Promise: req.Promise, Body: req.Payload}).Append(dst), nil
			}}
			go s.Serve(nc)
		}
	}()
	client := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	nc, err := tls.Dial("tcp", l.Addr().String(), zap.PostQuantum(client))
	if err != nil {
		t.Fatal(err)
	}
	if got := nc.ConnectionState().CurveID; got != tls.X25519MLKEM768 {
		t.Errorf("curve %v", got)
	}
	c := mux.New(nc, zap.RPCFraming{}, mux.Config{})
	defer c.Close()
	x := &call{req: zap.RPCRequest{Method: 1, Payload: []byte("hello")}}
	if err := c.Call(t.Context(), x); err != nil || string(x.resp.Body) != "hello" {
		t.Errorf("%q, %v", x.resp.Body, err)
	}
	classic := client.Clone()
	classic.CurvePreferences = []tls.CurveID{tls.X25519}
	if nc, err := tls.Dial("tcp", l.Addr().String(), classic); err == nil {
		nc.Close()
		t.Error("a client that offers only X25519 was let in")
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestServingFramesAnswersOneAfterAnother(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	done := make(chan error, 1)
	answered := 0
	go func() {
		done <- zap.ServeHTTPFrames(b, 0, func(req *zap.Request, resp *zap.Response) {
			resp.Status = 200
			resp.Body = append(append(resp.Body, req.Target...), req.Body...)
		}, func() { answered++ })
	}()
	in := zap.NewFrameReader(a, 0)
	for range 3 {
		r := exampleRequest()
		a.Write(r.Append(nil))
		m, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		var resp zap.Response
		if err := resp.Parse(m); err != nil || resp.Status != 200 || string(resp.Body) != "/.well-known/zip/op/notebody" {
			t.Errorf("%+v, %v", resp, err)
		}
	}
	a.Close()
	if err := <-done; err != nil || answered != 3 {
		t.Errorf("%v after %d answers", err, answered)
	}
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

func TestEncodingAllocatesNothing(t *testing.T) {
	c := codec[small](t)
	buf := make([]byte, 0, 4096)
	v := &small{1, "some text"}
	req := exampleRequest()
	var got small
	var parsed zap.Request
	if n := testing.AllocsPerRun(1000, func() {
		b := c.Append(buf[:0], v)
		c.View(b, &got)
		frame := req.Append(buf[:0])
		parsed.Parse(frame[4:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	c := codec[everything](f)
	f.Add(c.Append(nil, &everything{S: "x", Texts: []string{"a", "b"}, Many: []small{{1, "y"}}, Nums: []int32{1}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, view, again everything
		err := c.Decode(b, &v)
		if viewErr := c.View(b, &view); (err == nil) != (viewErr == nil) {
			t.Fatalf("decode says %v, view %v", err, viewErr)
		}
		if err != nil {
			return
		}
		if err := c.Decode(c.Append(nil, &v), &again); err != nil {
			t.Fatalf("what was decoded can't be decoded again: %v", err)
		}
	})
}

func FuzzFrame(f *testing.F) {
	r := exampleRequest()
	f.Add(r.Append(nil))
	f.Add((&zap.RPCRequest{Method: 1, Promise: 7, Payload: []byte("pp")}).Append(nil))
	f.Add((&zap.RPCResponse{Status: 200, Promise: 7}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := zap.NewFrameReader(bytes.NewReader(b), 1<<16)
		for {
			m, err := in.Next()
			if err != nil {
				break
			}
			var req zap.Request
			if req.Parse(m) == nil {
				var again zap.Request
				if err := again.Parse(req.Append(nil)[4:]); err != nil {
					t.Fatalf("a parsed request does not parse again: %v", err)
				}
			}
			new(zap.Response).Parse(m)
		}
		new(zap.RPCRequest).Parse(b)
		new(zap.RPCResponse).Parse(b)
	})
}

func BenchmarkCodec(b *testing.B) {
	c := codec[small](b)
	v, buf := &small{1, "thirty-two bytes of text, or so."}, make([]byte, 0, 4096)
	var got small
	b.ReportAllocs()
	for b.Loop() {
		m := c.Append(buf[:0], v)
		if err := c.View(m, &got); err != nil {
			b.Fatal(err)
		}
	}
}
