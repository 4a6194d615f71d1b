package mux_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/mux"
)

// serving serves one end of a pipe; the other end is for the test to speak on.
func serving(s *mux.Server) (peer net.Conn, server net.Conn, done <-chan error) {
	a, b := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(b) }()
	return a, b, ended
}

func frame(id uint32, body ...byte) []byte {
	f := binary.LittleEndian.AppendUint32(nil, uint32(4+len(body)))
	return append(binary.LittleEndian.AppendUint32(f, id), body...)
}

func TestAPanicOfAHandlerEndsItsConnection(t *testing.T) {
	for name, q := range map[string]func([]byte) bool{"quick": quick, "goroutine": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer, server, done := serving(&mux.Server{Framing: lengthID{}, Quick: q, Handle: func(dst, f []byte) ([]byte, error) {
					panic("boom")
				}})
				peer.Write(frame(1))
				if name == "quick" {
					server.Close()
				}
				if err := <-done; err == nil || err.Error() != "handling a request: panic: boom" {
					t.Errorf("got %v", err)
				}
				peer.Close()
			})
		})
	}
}

func TestWhatWasAnsweredLeavesBeforeABadRequestEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("bad")
		peer, _, done := serving(&mux.Server{Framing: lengthID{}, Quick: quick, Handle: func(dst, f []byte) ([]byte, error) {
			if f[8] == 0 {
				return nil, bad
			}
			return append(dst, f...), nil
		}})
		go peer.Write(append(frame(1, 1), frame(2, 0)...))
		if got := request(peer); string(got) != string(frame(1, 1)) {
			t.Errorf("got %x", got)
		}
		if err := <-done; err != bad {
			t.Errorf("got %v", err)
		}
		peer.Close()
	})
}

func TestADeadlineInThePastStopsGracefully(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		peer, server, done := serving(&mux.Server{Framing: lengthID{}, Handle: func(dst, f []byte) ([]byte, error) {
			<-release
			return append(dst, f...), nil
		}})
		peer.Write(frame(1))
		synctest.Wait()
		server.SetReadDeadline(time.Unix(1, 0))
		synctest.Wait()
		close(release)
		if got := request(peer); string(got) != string(frame(1)) {
			t.Errorf("got %x", got)
		}
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// A quick reply is not kept back by the wait for a place.
func TestQuickRepliesLeaveBeforeWaitingForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		peer, _, done := serving(&mux.Server{Framing: lengthID{}, InFlight: 1,
			Quick: func(f []byte) bool { return f[8] == 1 },
			Handle: func(dst, f []byte) ([]byte, error) {
				if f[8] == 0 {
					<-release
				}
				return append(dst, f...), nil
			}})
		go peer.Write(append(append(frame(1, 0), frame(2, 1)...), frame(3, 0)...))
		if got := request(peer); string(got) != string(frame(2, 1)) {
			t.Errorf("got %x", got)
		}
		close(release)
		for _, want := range [][]byte{frame(1, 0), frame(3, 0)} {
			if got := request(peer); string(got) != string(want) {
				t.Errorf("got %x, want %x", got, want)
			}
		}
		peer.Close()
		if err := <-done; err != io.EOF {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPeerThatTakesNoRepliesIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, _, done := serving(&mux.Server{Framing: lengthID{}, Handle: same, InFlight: 4, WriteTimeout: 3 * time.Second})
		began := time.Now()
		go func() {
			for i := range uint32(10) {
				if _, err := peer.Write(frame(i)); err != nil {
					return
				}
			}
		}()
		if err := <-done; err == nil || err.Error() != "writing: write pipe: i/o timeout" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("given up after %v", took)
		}
		peer.Close()
	})
}
