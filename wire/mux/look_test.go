package mux_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"toll/wire/mux"
)

// connected returns the two ends of a connection over the loopback address.
func connected(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

// A reader that looks before it waits reads the same as one that does not: frames that come together and alone, at once and
// late, a deadline, and the end.
func TestAnEagerReaderReadsTheSame(t *testing.T) {
	t.Parallel()
	near, far := connected(t)
	r := mux.NewReader(near, lengthID{})
	r.Eager(near)
	batch := func(n int) []byte {
		var b []byte
		for i := range n {
			b = append(b, frame(uint32(i+1), 7)...)
		}
		return b
	}
	read := func(n int) {
		t.Helper()
		for i := range n {
			got, err := r.Next()
			if err != nil || string(got) != string(frame(uint32(i+1), 7)) {
				t.Fatalf("frame %d: %q, %v", i, got, err)
			}
		}
	}
	for range 50 { // so many at a time that it looks
		if _, err := far.Write(batch(4)); err != nil {
			t.Fatal(err)
		}
		read(4)
	}
	for range 10 { // it looks in vain, waits, and is woken
		time.AfterFunc(2*time.Millisecond, func() { far.Write(batch(3)) })
		read(3)
	}
	near.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
	if _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("at the deadline: %v", err)
	}
	near.SetReadDeadline(time.Time{})
	far.Write(batch(2))
	read(2)
	far.Close()
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	near.Close()
	if _, err := r.Next(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// What is no socket is read as ever.
func TestAPipeIsNotLookedAt(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	r := mux.NewReader(near, lengthID{})
	r.Eager(near)
	go func() {
		far.Write(frame(1, 7))
		far.Close()
	}()
	if got, err := r.Next(); err != nil || string(got) != string(frame(1, 7)) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
