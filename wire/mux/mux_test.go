package mux_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/mux"
)

// lengthID frames as [length u32][id u32][body]; a reply looks like its request.
type lengthID struct{}

func (lengthID) Header() int { return 4 }

func (lengthID) Length(h []byte) (int, error) {
	n := binary.LittleEndian.Uint32(h)
	if n > 1<<20 {
		return 0, fmt.Errorf("frame of %d bytes", n)
	}
	return 4 + int(n), nil
}

func (lengthID) ID(frame []byte) (uint32, error) {
	if len(frame) < 8 {
		return 0, errors.New("frame without an id")
	}
	return binary.LittleEndian.Uint32(frame[4:]), nil
}

// an echo call sends a number and wants it back.
type echo struct {
	sent, got uint64
	size      int
}

func (e *echo) AppendRequest(dst []byte, id uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(12+e.size))
	dst = binary.LittleEndian.AppendUint32(dst, id)
	dst = binary.LittleEndian.AppendUint64(dst, e.sent)
	return append(dst, zeros[:e.size]...)
}

var zeros [4096]byte

func (e *echo) Reply(frame []byte) error {
	e.got = binary.LittleEndian.Uint64(frame[8:])
	return nil
}

func same(dst, frame []byte) ([]byte, error) { return append(dst, frame...), nil }

// loopback returns the two ends of a connection.
func loopback(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// pair connects a caller to a server over loopback.
func pair(t testing.TB, s *mux.Server, cfg mux.Config) *mux.Conn {
	t.Helper()
	client, server := loopback(t)
	done := make(chan error, 1)
	go func() {
		defer server.Close()
		done <- s.Serve(server)
	}()
	c := mux.New(client, lengthID{}, cfg)
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	return c
}

func quick([]byte) bool { return true }

func TestManyCallersEachGetTheirOwnReply(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]func([]byte) bool{"quick": quick, "goroutines": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var most atomic.Int64
			c := pair(t, &mux.Server{Framing: lengthID{}, Handle: same, Quick: q, Answered: func(n int) { most.Store(max(most.Load(), int64(n))) }}, mux.Config{})
			var wg sync.WaitGroup
			for vu := range 64 {
				wg.Go(func() {
					e := &echo{size: vu * 31}
					for i := range 200 {
						e.sent = uint64(vu)<<32 | uint64(i)
						if err := c.Call(t.Context(), e); err != nil || e.got != e.sent {
							t.Errorf("sent %x, got %x, %v", e.sent, e.got, err)
							return
						}
					}
				})
			}
			wg.Wait()
			if name == "quick" && most.Load() < 2 {
				t.Errorf("64 callers, and no write carried more than %d replies", most.Load())
			}
		})
	}
}

func TestCallersBeyondTheSlotsWaitForOne(t *testing.T) {
	t.Parallel()
	c := pair(t, &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}, mux.Config{InFlight: 2})
	var wg sync.WaitGroup
	for vu := range 16 {
		wg.Go(func() {
			e := &echo{sent: uint64(vu)}
			for range 100 {
				if err := c.Call(t.Context(), e); err != nil || e.got != e.sent {
					t.Errorf("%v, got %d", err, e.got)
				}
			}
		})
	}
	wg.Wait()
}

// scripted serves one end of a pipe by hand.
func scripted(f func(c *mux.Conn, peer net.Conn)) func(*testing.T) {
	return func(t *testing.T) {
		a, b := net.Pipe()
		c := mux.New(a, lengthID{}, mux.Config{InFlight: 4})
		f(c, b)
		c.Close()
		b.Close()
	}
}

// request reads one frame from the peer's end.
func request(peer net.Conn) []byte {
	var h [4]byte
	if _, err := io.ReadFull(peer, h[:]); err != nil {
		return nil
	}
	frame := append(h[:], make([]byte, binary.LittleEndian.Uint32(h[:]))...)
	io.ReadFull(peer, frame[4:])
	return frame
}

func TestALateReplyReachesNobody(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- c.Call(ctx, &echo{sent: 1}) }()
		late := request(peer)
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		e := &echo{sent: 2}
		go func() { done <- c.Call(context.Background(), e) }()
		next := request(peer)
		peer.Write(late)
		peer.Write(next)
		if err := <-done; err != nil || e.got != 2 {
			t.Errorf("%v, got %d", err, e.got)
		}
	}))
}

// A caller that gives up while it reads leaves half a frame to the next.
func TestGivingUpWhileReadingLosesNothing(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Call(short, &echo{sent: 1}) }()
		request(peer)
		synctest.Wait()
		e := &echo{sent: 2, size: 100}
		go func() { second <- c.Call(context.Background(), e) }()
		frame := request(peer)
		peer.Write(frame[:30])
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("first: %v", err)
		}
		peer.Write(frame[30:])
		if err := <-second; err != nil || e.got != 2 {
			t.Errorf("second: %v, got %d", err, e.got)
		}
	}))
}

func TestCancellingOneCallLeavesTheOthers(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		ctx, cancel := context.WithCancel(context.Background())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- c.Call(ctx, &echo{sent: 1}) }()
		request(peer)
		synctest.Wait() // the first caller reads
		e := &echo{sent: 2}
		go func() { second <- c.Call(context.Background(), e) }()
		frame := request(peer)
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("first: %v", err)
		}
		synctest.Wait() // the second caller reads in its place
		peer.Write(frame)
		if err := <-second; err != nil || e.got != 2 {
			t.Errorf("second: %v, got %d", err, e.got)
		}
		if err := c.Err(); err != nil {
			t.Errorf("the connection died of it: %v", err)
		}
	}))
}

func TestTheEndOfTheConnectionEndsEveryCallAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(peer net.Conn)
		want string
	}{
		"closed":       {func(p net.Conn) { p.Close() }, "reading: EOF"},
		"half a frame": {func(p net.Conn) { p.Write([]byte{9, 0, 0, 0, 1}); p.Close() }, "reading: 5 bytes of a frame of 13: unexpected EOF"},
		"too long":     {func(p net.Conn) { p.Write([]byte{255, 255, 255, 255}) }, "reading: frame of 4294967295 bytes"},
		"no id":        {func(p net.Conn) { p.Write([]byte{2, 0, 0, 0, 1, 1}) }, "reading: frame without an id"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, scripted(func(conn *mux.Conn, peer net.Conn) {
				done := make(chan error, 3)
				for range 3 {
					go func() { done <- conn.Call(context.Background(), &echo{}) }()
				}
				for range 3 {
					request(peer)
				}
				synctest.Wait()
				start := time.Now()
				c.end(peer)
				for range 3 {
					if err := <-done; err == nil || err.Error() != c.want {
						t.Errorf("got %v, want %s", err, c.want)
					}
				}
				if time.Since(start) > 0 {
					t.Errorf("it took %v", time.Since(start))
				}
				if err := conn.Call(context.Background(), &echo{}); err == nil || err.Error() != c.want {
					t.Errorf("a later call: %v", err)
				}
			}))
		})
	}
}

func TestFullSlotsAreBusyWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		go io.Copy(io.Discard, peer)
		long, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		done := make(chan error, 4)
		for range 4 {
			go func() { done <- c.Call(long, &echo{}) }()
		}
		synctest.Wait()
		short, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if err := c.Call(short, &echo{}); !errors.Is(err, mux.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the fifth of four: %v", err)
		}
		c.Close()
		for range 4 {
			if err := <-done; !errors.Is(err, mux.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	}))
}

func TestAPeerThatReadsNothingMeetsABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		c := mux.New(a, lengthID{}, mux.Config{Queued: 1000})
		done := make(chan error, 30)
		for range 30 {
			go func() { done <- c.Call(t.Context(), &echo{size: 200}) }()
		}
		synctest.Wait()
		busy := 0
		for len(done) > 0 {
			if err := <-done; errors.Is(err, mux.ErrBusy) {
				busy++
			}
		}
		if busy < 20 {
			t.Errorf("%d of 30 calls were refused; a thousand bytes may wait", busy)
		}
		start := time.Now()
		for range 30 - busy {
			if err := <-done; err == nil {
				t.Error("a call succeeded")
			}
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the write that nobody reads was given up after %v", took)
		}
		b.Close()
	})
}

func TestASlowRequestDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := pair(t, &mux.Server{Framing: lengthID{}, Handle: func(dst, frame []byte) ([]byte, error) {
		if frame[8] == 1 {
			<-release
		}
		return append(dst, frame...), nil
	}}, mux.Config{})
	slow := make(chan error, 1)
	go func() { slow <- c.Call(t.Context(), &echo{sent: 1}) }()
	for range 10 {
		if err := c.Call(t.Context(), &echo{sent: 2}); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

func TestACallAllocatesNothing(t *testing.T) {
	c := pair(t, &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}, mux.Config{})
	e := &echo{size: 50}
	ctx := context.Background()
	for range 10 {
		c.Call(ctx, e)
	}
	if n := testing.AllocsPerRun(500, func() { c.Call(ctx, e) }); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := net.Pipe()
		s := &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}
		done := make(chan error, 1)
		go func() { done <- s.Serve(b) }()
		go io.Copy(io.Discard, a)
		a.SetWriteDeadline(time.Now().Add(time.Second))
		a.Write(data)
		a.Close()
		if err := <-done; err == nil {
			t.Error("serving ended without a reason")
		}
		b.Close()
	})
}
