package resp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/wire/resp"
)

func read(text string) (resp.Value, error) {
	return resp.Read(bufio.NewReader(strings.NewReader(text)))
}

func TestReplies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]resp.Value{
		"+OK\r\n":                          {Text: "OK"},
		":-42\r\n":                         {Int: -42},
		"$5\r\na\r\nbc\r\n":                {Text: "a\r\nbc"},
		"$0\r\n\r\n":                       {},
		"$-1\r\n":                          {Null: true},
		"*-1\r\n":                          {Null: true},
		"*0\r\n":                           {List: []resp.Value{}},
		"*2\r\n$1\r\na\r\n*1\r\n:7\r\n":    {List: []resp.Value{{Text: "a"}, {List: []resp.Value{{Int: 7}}}}},
		"$100000\r\n" + x(100000) + "\r\n": {Text: x(100000)},
	} {
		if got, err := read(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%.40q: %v, %s", text, err, cmp.Diff(want, got))
		}
	}
	if got := string(resp.AppendCommand(nil, "SET", "k", "")); got != "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n" {
		t.Errorf("a command is %q", got)
	}
}

func x(n int) string { return strings.Repeat("x", n) }

func TestBadRepliesAreErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "reply: EOF",
		"$5\r\nab":                  "reply: unexpected EOF",
		"*2\r\n:1\r\n":              "reply: unexpected EOF",
		"\r\n":                      `reply: the line "\r\n" has no type or does not end in CRLF`,
		"+OK\n":                     `reply: the line "+OK\n" has no type or does not end in CRLF`,
		"%1\r\n":                    `reply: begins with "%1", which is no type of version 2`,
		":x\r\n":                    `reply: "x" is no whole number`,
		"$-2\r\n":                   `reply: "-2" is no length of a text, up to 8388608`,
		"$99999999\r\n":             `reply: "99999999" is no length of a text, up to 8388608`,
		"$1\r\nab\r\n":              "reply: a text that is longer than it says",
		"*9999999\r\n":              `reply: "9999999" is no length of a list, up to 1048576`,
		"-ERR no\r\n":               "the server says: ERR no",
		"*2\r\n-ERR\r\n:1\r\n":      "the server says: ERR",
		"+" + x(70000):              "reply: a line of more than 65536 bytes",
		strings.Repeat("*1\r\n", 9): "reply: lists within lists, more than 8 deep",
	} {
		if _, err := read(text); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v\nwant %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"+OK\r\n", "*2\r\n$1\r\na\r\n:7\r\n", "$-1\r\n", "-E\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bufio.NewReader(bytes.NewReader(text))
		for range 100 {
			if _, err := resp.Read(r); err != nil {
				return
			}
		}
	})
}

// A server that answers each command by how many words it had.
func TestAClientSendsSeveralCommandsAsOnePiece(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		in := bufio.NewReader(nc)
		for {
			v, err := resp.Read(in)
			if err != nil {
				return
			}
			if v.List[0].Text == "BAD" {
				fmt.Fprint(nc, "-ERR unknown\r\n")
				continue
			}
			fmt.Fprintf(nc, ":%d\r\n", len(v.List))
		}
	}()
	c := resp.New(l.Addr().String())
	for range 2 {
		got, err := c.Do(t.Context(), []string{"A"}, []string{"BAD"}, []string{"A", "b", "c"})
		if err == nil || !strings.HasSuffix(err.Error(), "the server says: ERR unknown") || len(got) != 3 || got[0].Int != 1 || got[2].Int != 3 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-done
	l.Close()
	if _, err := c.Do(t.Context(), []string{"A"}); err == nil {
		t.Error("a server that is not there answered")
	}
}
