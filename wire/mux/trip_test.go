//go:build unix

package mux_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"toll/wire/mux"
)

// tripping returns a caller over a socket and the other end of it, which the test serves by hand.
func tripping(t *testing.T) (*mux.Conn, *net.TCPConn) {
	t.Helper()
	near, far := connected(t)
	c := mux.New(near, lengthID{}, mux.Config{IdleRead: -1})
	t.Cleanup(func() { c.Close() })
	done := start(t.Context(), c, &echo{sent: 1})
	far.Write(request(far))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return c, far.(*net.TCPConn)
}

// An end that came before a call and is not followed by anything, since the peer still reads, ends the call all the same.
func TestAnEndBeforeTheCallIsNoticed(t *testing.T) {
	t.Parallel()
	c, far := tripping(t)
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(context.Background(), &echo{}); err == nil || err.Error() != "reading: EOF" {
		t.Errorf("got %v", err)
	}
}

func TestClosingEndsACallThatWaits(t *testing.T) {
	t.Parallel()
	c, far := tripping(t)
	done := start(context.Background(), c, &echo{})
	request(far)
	c.Close()
	if err := <-done; !errors.Is(err, mux.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// A request that the socket does not take at once is written to its end, and its reply read.
func TestARequestLargerThanTheSocketsBuffers(t *testing.T) {
	t.Parallel()
	near, far := connected(t)
	near.(*net.TCPConn).SetWriteBuffer(4096)
	c := mux.New(near, lengthID{}, mux.Config{})
	defer c.Close()
	for range 3 {
		e := &large{}
		done := make(chan error, 1)
		go func() { done <- c.Call(context.Background(), e) }()
		b := request(far)
		far.Write(b)
		if err := <-done; err != nil || e.got != len(b) {
			t.Fatalf("%v, %d bytes of %d came back", err, e.got, len(b))
		}
	}
}

// large is a call of nearly as many bytes as the framing takes.
type large struct {
	echo
	got int
}

func (l *large) AppendRequest(dst []byte, id uint32) []byte {
	at := len(dst)
	l.size = 0
	dst = l.echo.AppendRequest(dst, id)
	dst = append(dst, make([]byte, 1<<20-100)...)
	n := len(dst) - at - 4
	dst[at], dst[at+1], dst[at+2] = byte(n), byte(n>>8), byte(n>>16)
	return dst
}

func (l *large) Reply(frame []byte) error { l.got = len(frame); return nil }

// A frame that is nobody's, before the call or just before its reply, is passed over.
func TestAStrayFrameBeforeTheReply(t *testing.T) {
	t.Parallel()
	c, far := tripping(t)
	for i := range 50 {
		far.Write(frame(1<<20, 8)) // before the call, or while it begins
		e := &echo{sent: uint64(i)}
		done := start(context.Background(), c, e)
		b := request(far)
		far.Write(append(frame(1<<20, 8), b...))
		if err := <-done; err != nil || e.got != e.sent {
			t.Fatalf("%v, sent %d, got %d", err, e.sent, e.got)
		}
	}
}

// Turns answer what comes at once, late, in pieces and together, and end as reading does.
func TestTurnsAnswerEveryFrame(t *testing.T) {
	t.Parallel()
	near, far := connected(t)
	in := mux.NewReader(near, lengthID{})
	in.Eager(near)
	turns := mux.NewTurns(near, in, func() ([]byte, error) { return in.Next() })
	over := make(chan error, 1)
	go func() {
		for {
			rest, err := turns.Run()
			if len(rest) > 0 && err == nil {
				_, err = near.Write(rest)
			}
			for err == nil && !in.Alone() { // as its user does: frames come together
				var b []byte
				if b, err = in.Next(); err == nil {
					_, err = near.Write(b)
				}
			}
			if err != nil {
				over <- err
				return
			}
		}
	}()
	want := string(frame(7, 20))
	answered := func(n int) {
		t.Helper()
		for range n {
			if got := string(request(far)); got != want {
				t.Fatalf("%q", got)
			}
		}
	}
	for i := range 200 {
		far.Write([]byte(want[:i%len(want)]))
		far.Write([]byte(want[i%len(want):]))
		answered(1)
	}
	far.Write([]byte(strings.Repeat(want, 1000)))
	answered(1000)
	far.Write([]byte(want))
	answered(1)
	far.(*net.TCPConn).CloseWrite()
	if err := <-over; !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	near.SetReadDeadline(time.Unix(1, 0))
	if _, err := turns.Run(); err == nil || !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("after the deadline: %v", err)
	}
	near.Close()
	if _, err := turns.Run(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
