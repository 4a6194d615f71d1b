package system

import (
	"io"
	"net"
	"strings"
	"testing"
)

// Each message of the agreed size calls the handler once and comes back as it was.
func TestASocketCallsAHandlerForEachMessage(t *testing.T) {
	t.Parallel()
	r, err := Start(t.Context(), "gateway", Config{Front: "socket", Call: `fibonacci {"n":10}`})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	nc, err := net.Dial("tcp", strings.TrimPrefix(r.Addr, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	before := *r.Stats().Handled // Start has tried the call once
	message, got := []byte(strings.Repeat("abcdefgh", SocketMessage/8)), make([]byte, SocketMessage)
	for range 3 {
		for _, part := range [][]byte{message[:7], message[7:]} { // also in pieces
			if _, err := nc.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(nc, got); err != nil || string(got) != string(message) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if n := *r.Stats().Handled - before; n != 3 {
		t.Errorf("the handler was called %d times for 3 messages", n)
	}
}

func TestWhatASocketCantCallIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"":                    "expected an operation, a space and its payload",
		"sleep {}":            "expected an operation, a space and its payload",
		"fibonacci":           "its payload: unexpected end of JSON input",
		`fibonacci {"n":99}`:  "n: expected a whole number from 0 to 40",
		"echo [1]":            "its payload: json: cannot unmarshal array",
		`work {"us":5000000}`: "us: expected a whole number of microseconds",
	} {
		r, err := Start(t.Context(), "gateway", Config{Front: "socket", Call: call})
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", call, err, want)
		}
	}
}
