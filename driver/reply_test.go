package driver

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"toll/lab/record"
)

func read(src io.Reader, method string, maxBody int64) (Reply, error) {
	return (&replyReader{src: src, maxBody: maxBody}).next(method)
}

const ok = "HTTP/1.1 200 OK\r\n"

// refusedReplies are texts that are no reply, and the errors that they give with a bound of 100 bytes of body.
func refusedReplies() []struct{ in, want string } {
	const length, chunks = "Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n"
	return []struct{ in, want string }{
		// The status line.
		{"", "closed: reading the head: EOF"},
		{"HTT", "closed: reading the head: EOF"},
		{"HTTP/1.1 200 OK\r\nContent-Le", "closed: reading the head: EOF"},
		{"garbage", `bad_reply: no HTTP/1 reply: "garbage"`},
		{"HTTP/2.0 200 OK\r\n\r\n", `bad_reply: no HTTP/1 reply: "HTTP/2.0 200 OK\r\n\r\n"`},
		{"http/1.1 200 OK\r\n\r\n", `bad_reply: no HTTP/1 reply: "http/1.1 200 OK\r\n\r\n"`},
		{"\r\n" + ok + "\r\n", `bad_reply: no HTTP/1 reply: "\r\nHTTP/1.1 200 OK\r\n\r\n"`},
		{"HTTP/1.2 200 OK\r\n\r\n", `bad_reply: status line "HTTP/1.2 200 OK"`},
		{"HTTP/1.1  200 OK\r\n\r\n", `bad_reply: status line "HTTP/1.1  200 OK"`},
		{"HTTP/1.1 20 OK\r\n\r\n", `bad_reply: status line "HTTP/1.1 20 OK"`},
		{"HTTP/1.1 +20 OK\r\n\r\n", `bad_reply: status line "HTTP/1.1 +20 OK"`},
		{"HTTP/1.1 2000 OK\r\n\r\n", `bad_reply: status line "HTTP/1.1 2000 OK"`},
		{"HTTP/1.1 099 OK\r\n\r\n", `bad_reply: status line "HTTP/1.1 099 OK"`},
		{"HTTP/1.1 200 O\x00K\r\n\r\n", `bad_reply: status line "HTTP/1.1 200 O\x00K"`},
		{"HTTP/1.1 200 OK\nX: y\r\n\r\n", `bad_reply: status line "HTTP/1.1 200 OK\nX: y"`},

		// The fields.
		{ok + "X\r\n\r\n", `bad_reply: header line "X"`},
		{ok + ": x\r\n\r\n", `bad_reply: header line ": x"`},
		{ok + "X : y\r\n\r\n", `bad_reply: header line "X : y"`},
		{ok + " X: y\r\n\r\n", `bad_reply: header line " X: y"`},
		{ok + "X: y\r\n folded\r\n\r\n", `bad_reply: header line " folded"`},
		{ok + "X: y\r\n\tfolded: z\r\n\r\n", `bad_reply: header line "\tfolded: z"`},
		{ok + "X: y\rContent-Length: 2\r\n\r\n{}", `bad_reply: header line "X: y\rContent-Length: 2"`},
		{ok + "X: y\nContent-Length: 2\r\n\r\n{}", `bad_reply: header line "X: y\nContent-Length: 2"`},
		{ok + "X: \x00\r\n\r\n", `bad_reply: header line "X: \x00"`},
		{ok + "Tran\u017ffer: y\r\n\r\n", `bad_reply: header line "Tran` + "\u017f" + `fer: y"`},

		// What delimits the body.
		{ok + length + "Content-Length: 3\r\n\r\n{} ", "bad_reply: two lengths, 2 and 3"},
		{ok + "Content-Length: 2, 2\r\n\r\n{}", `bad_reply: Content-Length "2, 2"`},
		{ok + "Content-Length: +2\r\n\r\n{}", `bad_reply: Content-Length "+2"`},
		{ok + "Content-Length: -2\r\n\r\n{}", `bad_reply: Content-Length "-2"`},
		{ok + "Content-Length: 0x2\r\n\r\n{}", `bad_reply: Content-Length "0x2"`},
		{ok + "Content-Length:\r\n\r\n{}", `bad_reply: Content-Length ""`},
		{ok + "Content-Length: 9999999999999999999\r\n\r\n", `bad_reply: Content-Length "9999999999999999999"`},
		{ok + "Content-Length: 101\r\n\r\n", "bad_reply: body of 101 bytes, more than 100"},
		{ok + length + chunks + "\r\n0\r\n\r\n", "bad_reply: both Content-Length and Transfer-Encoding"},
		{ok + chunks + length + "\r\n0\r\n\r\n", "bad_reply: both Content-Length and Transfer-Encoding"},
		{ok + chunks + chunks + "\r\n0\r\n\r\n", `bad_reply: Transfer-Encoding "chunked"`},
		{ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", `bad_reply: Transfer-Encoding "gzip, chunked"`},
		{ok + "Transfer-Encoding: identity\r\n\r\n", `bad_reply: Transfer-Encoding "identity"`},
		{"HTTP/1.0 200 OK\r\n" + chunks + "\r\n0\r\n\r\n", `bad_reply: Transfer-Encoding "chunked"`},
		{"HTTP/1.1 204 No\r\n" + length + "\r\n{}", "bad_reply: status 204 with a body"},
		{ok + length + "\r\n{", "short_body: body of 2 bytes ends after 1: EOF"},
		{ok + "\r\n" + strings.Repeat(" ", 101), "bad_reply: body of more than 100 bytes"},

		// Chunks.
		{ok + chunks + "\r\n", "short_body: chunked body ends after 0 bytes of data: EOF"},
		{ok + chunks + "\r\n2\r\n{", "short_body: chunked body ends after 1 bytes of data: EOF"},
		{ok + chunks + "\r\n2\r\n{}\r\n", "short_body: chunked body ends after 2 bytes of data: EOF"},
		{ok + chunks + "\r\n2\r\n{}\r\n0\r\n", "short_body: chunked body ends after 2 bytes of data: EOF"},
		{ok + chunks + "\r\n2\r\n{}}\r\n0\r\n\r\n", "bad_reply: chunk longer than its size"},
		{ok + chunks + "\r\n\r\n", `bad_reply: chunk size ""`},
		{ok + chunks + "\r\n-2\r\n{}\r\n", `bad_reply: chunk size "-2"`},
		{ok + chunks + "\r\n+2\r\n{}\r\n", `bad_reply: chunk size "+2"`},
		{ok + chunks + "\r\n0x2\r\n{}\r\n", `bad_reply: chunk size "0x2"`},
		{ok + chunks + "\r\n 2\r\n{}\r\n", `bad_reply: chunk size " 2"`},
		{ok + chunks + "\r\n2 2\r\n{}\r\n", `bad_reply: chunk size "2 2"`},
		{ok + chunks + "\r\n10000000000000000\r\n", `bad_reply: chunk size "10000000000000000"`},
		{ok + chunks + "\r\nfffffffffffffff\r\n", "bad_reply: body of more than 100 bytes"},
		{ok + chunks + "\r\n2\n{}\r\n0\r\n\r\n", `bad_reply: chunk line "2"`},
		{ok + chunks + "\r\n2;\x00\r\n{}\r\n0\r\n\r\n", `bad_reply: chunk line "2;\x00\r"`},
		{ok + chunks + "\r\n0\r\nX\r\n\r\n", `bad_reply: header line "X"`},
		{ok + chunks + "\r\n0\r\nX: y\r\n folded\r\n\r\n", `bad_reply: header line " folded"`},

		// Interim replies.
		{"HTTP/1.1 101 Switching\r\n\r\n", "bad_reply: interim reply 101 that nobody asked for"},
		{"HTTP/1.1 100 Go\r\n" + length + "\r\n{}", "bad_reply: interim reply 100 that nobody asked for"},
		{"HTTP/1.1 100 Go\r\n" + chunks + "\r\n", "bad_reply: interim reply 100 that nobody asked for"},
		{strings.Repeat("HTTP/1.1 100 Go\r\n\r\n", 6) + ok + length + "\r\n{}", "bad_reply: more than 5 interim replies"},
	}
}

func TestReplyReaderRefuses(t *testing.T) {
	for _, tt := range refusedReplies() {
		if _, err := read(strings.NewReader(tt.in), "GET", 100); err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.in, err, tt.want)
		}
		want, _, _ := strings.Cut(tt.want, ":")
		if _, err := read(iotest.OneByteReader(strings.NewReader(tt.in)), "GET", 100); err == nil || record.KindOf(err) != want {
			t.Errorf("byte by byte, %q: got %v, want kind %s", tt.in, err, want)
		}
	}
}

// both gives the text whole and byte by byte.
func both(in string) map[string]io.Reader {
	return map[string]io.Reader{"whole": strings.NewReader(in), "bytewise": iotest.OneByteReader(strings.NewReader(in))}
}

func TestReplyReaderBoundsTheHead(t *testing.T) {
	fits := strings.Repeat("a", maxHead-len(ok)-len("X: "))
	chunky := ok + "Transfer-Encoding: chunked\r\n\r\n"
	tests := []struct{ name, in, want string }{
		{"as large as allowed", ok + "X: " + fits + "\r\n\r\n", ""},
		{"one more", ok + "X: a" + fits + "\r\n\r\n", "bad_reply: head of more than 65536 bytes"},
		{"endless", ok + "X: aaaa" + fits + fits, "bad_reply: head of more than 65536 bytes"},
		{"chunk line", chunky + "1;" + fits + fits, "bad_reply: chunk line of more than 65536 bytes"},
		{"extensions", chunky + strings.Repeat("1;"+fits[:8000]+"\r\nx\r\n", 9), "bad_reply: chunk extensions of more than 65536 bytes"},
		{"trailers", chunky + "0\r\n" + strings.Repeat("X: "+fits[:8000]+"\r\n", 9), "bad_reply: trailers of more than 65536 bytes"},
	}
	for _, tt := range tests {
		for name, src := range both(tt.in) {
			_, err := read(src, "GET", 100)
			if got := fmt.Sprint(err); got != tt.want && !(err == nil && tt.want == "") {
				t.Errorf("%s, %s: got %v, want %s", tt.name, name, err, tt.want)
			}
		}
	}
}

// A peer that announces a large body and sends little of it must not make us set aside all of it.
func TestReplyReaderGrowsWithWhatArrives(t *testing.T) {
	r := replyReader{src: strings.NewReader(ok + "Content-Length: 60000000\r\n\r\nsome"), maxBody: 64 << 20}
	if _, err := r.next("GET"); record.KindOf(err) != record.ShortBody {
		t.Errorf("got %v", err)
	}
	if len(r.buf) > 8<<10 {
		t.Errorf("%d bytes set aside", len(r.buf))
	}
}

var validReplies = []string{
	ok + "Content-Length: 0\r\n\r\n",
	ok + "content-length:2\r\nContent-Length: 2 \r\n\r\n{}",
	ok + "Content-Length: 2\r\nConnection: keep-alive, close\r\n\r\n{}",
	ok + "\r\nuntil close",
	ok + "Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n\r\n",
	ok + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0001\r\n{\r\n000\r\nX: y\r\n\r\n",
	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n",
	"HTTP/1.1 503\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\n" + ok + "Content-Length: 1\r\n\r\nx",
	ok + "Content-Length: 20000\r\n\r\n" + strings.Repeat("0123456789", 2000),
	ok + "Transfer-Encoding: chunked\r\n\r\n4e20\r\n" + strings.Repeat("0123456789", 2000) + "\r\n0\r\n\r\n",
}

// oracle reads a reply with net/http.
func oracle(in string, method string) (Reply, error) {
	r := bufio.NewReader(strings.NewReader(in))
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return Reply{}, err
		}
		if resp.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		return Reply{Status: resp.StatusCode, Body: body, Close: resp.Close}, err
	}
}

// sameAsOracle holds what we accept against net/http.
func sameAsOracle(t *testing.T, in, method string, got Reply) {
	t.Helper()
	want, err := oracle(in, method)
	if err != nil {
		t.Fatalf("%q: we accept %+v, net/http says %v", in, got, err)
	}
	if got.Status != want.Status || !bytes.Equal(got.Body, want.Body) || got.Close != want.Close {
		t.Errorf("%q:\ngot  %+v\nwant %+v", in, got, want)
	}
}

func TestReplyReaderAgreesWithNetHTTP(t *testing.T) {
	for _, in := range validReplies {
		for _, method := range []string{"GET", "HEAD"} {
			for name, src := range both(in) {
				got, err := read(src, method, 1<<20)
				if err != nil {
					t.Errorf("%s %s %q: %v", name, method, in, err)
					continue
				}
				sameAsOracle(t, in, method, got)
			}
		}
	}
}

// One connection carries replies of every shape, one behind the other.
func TestReplyReaderKeepsItsPlace(t *testing.T) {
	var all strings.Builder
	var want []string
	for _, in := range validReplies {
		if reply, err := oracle(in, "GET"); err == nil && !strings.Contains(in, "until close") {
			all.WriteString(in)
			want = append(want, string(reply.Body))
		}
	}
	for name, src := range both(all.String()) {
		r := replyReader{src: src, maxBody: 1 << 20}
		for i, body := range want {
			got, err := r.next("GET")
			if err != nil || string(got.Body) != body {
				t.Fatalf("%s, reply %d: got %.50q, %v, want %.50q", name, i, got.Body, err, body)
			}
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, in := range validReplies {
		f.Add(in, false)
	}
	f.Add(ok+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true)
	f.Add(ok+"X: y\r\n folded\r\nContent-Length: 1\r\n\r\nx", false)
	f.Fuzz(func(t *testing.T, in string, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		got, err := read(strings.NewReader(in), method, 1<<16)
		slow, slowErr := read(iotest.OneByteReader(strings.NewReader(in)), method, 1<<16)
		if (err == nil) != (slowErr == nil) || err != nil && record.KindOf(err) != record.KindOf(slowErr) {
			t.Fatalf("%q: %v whole, %v byte by byte", in, err, slowErr)
		}
		if err != nil {
			if record.KindOf(err) == record.Other {
				t.Errorf("%q: %v has no kind", in, err)
			}
			return
		}
		if !bytes.Equal(got.Body, slow.Body) || int64(len(got.Body)) > 1<<16 {
			t.Errorf("%q: body %q whole, %q byte by byte", in, got.Body, slow.Body)
		}
		sameAsOracle(t, in, method, got)
	})
}
