package mux_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/mux"
)

// start makes a call on a goroutine of its own.
func start(ctx context.Context, c *mux.Conn, e *echo) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Call(ctx, e) }()
	return done
}

// A caller whose write is stuck can't read; another has to, or a peer that waits for us to read would wait for ever.
func TestACallerThatIsStuckWritingIsNotTheOneToRead(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		ctx := context.Background()
		a := start(ctx, c, &echo{sent: 1})
		frame := request(peer)
		synctest.Wait() // a reads
		b := start(ctx, c, &echo{sent: 2})
		synctest.Wait() // b is stuck: nobody takes its request
		d := start(ctx, c, &echo{sent: 3})
		synctest.Wait()
		peer.Write(frame)
		if err := <-a; err != nil {
			t.Error(err)
		}
		peer.Write(make([]byte, 8)[:4]) // a frame of no bytes: read, and refused
		for _, done := range []<-chan error{b, d} {
			if err := <-done; err == nil || err.Error() != "reading: frame without an id" {
				t.Errorf("got %v", err)
			}
		}
	}))
}

// Whoever writes for all goes home when its own reply has come, however much there is still to write.
func TestWritingForOthersIsHandedOn(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		ctx := context.Background()
		reader := start(ctx, c, &echo{sent: 1})
		one := request(peer)
		synctest.Wait()
		writer := start(ctx, c, &echo{sent: 2})
		synctest.Wait()
		second := start(ctx, c, &echo{sent: 3})
		synctest.Wait()
		two := request(peer)
		synctest.Wait() // the writer now writes for the second
		third := start(ctx, c, &echo{sent: 4})
		synctest.Wait()
		peer.Write(two)
		synctest.Wait() // the writer's reply is delivered before what it writes is taken
		three := request(peer)
		synctest.Wait()
		select {
		case err := <-writer:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the writer has its reply and still writes")
		}
		four := request(peer)
		for _, frame := range [][]byte{four, three, one} {
			peer.Write(frame)
		}
		for _, done := range []<-chan error{reader, second, third} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}))
}

func TestACancelledReaderReturnsBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		done := start(ctx, c, &echo{})
		request(peer)
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		deadline, stop := context.WithDeadline(context.Background(), time.Now().Add(1234567*time.Nanosecond))
		defer stop()
		began = time.Now()
		done = start(deadline, c, &echo{})
		request(peer)
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 1234567*time.Nanosecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	}))
}

func TestThePeersEndIsNoticedWithoutACall(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		began := time.Now()
		peer.Close()
		<-c.Done()
		if err := c.Err(); err == nil || err.Error() != "reading: EOF" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("noticed after %v", took)
		}
	}))
}

func TestACallAfterALongPauseIsAnswered(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		for i := range 3 {
			time.Sleep(5 * time.Second) // the watcher reads
			e := &echo{sent: uint64(i)}
			done := start(context.Background(), c, e)
			peer.Write(request(peer))
			if err := <-done; err != nil || e.got != e.sent {
				t.Errorf("%v, sent %d, got %d", err, e.sent, e.got)
			}
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			done = start(short, c, e)
			request(peer)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
	}))
}

func TestWithoutIdleReadNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		c := mux.New(a, lengthID{}, mux.Config{IdleRead: -1})
		b.Close()
		time.Sleep(time.Minute)
		if err := c.Err(); err != nil {
			t.Errorf("got %v", err)
		}
		if err := c.Call(t.Context(), &echo{}); err == nil || err.Error() != "writing: io: read/write on closed pipe" {
			t.Errorf("got %v", err)
		}
		c.Close()
	})
}

func TestARequestThatTheFramingRefusesIsNotSent(t *testing.T) {
	t.Parallel()
	c := pair(t, &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}, mux.Config{})
	if err := c.Call(t.Context(), huge{}); !errors.Is(err, mux.ErrTooLong) || err.Error() != "request too long: frame of 2097152 bytes" {
		t.Errorf("got %v", err)
	}
	if err := c.Call(t.Context(), &echo{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

type huge struct{}

func (huge) AppendRequest(dst []byte, id uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, 2<<20)
	return append(dst, make([]byte, 2<<20)...)
}

func (huge) Reply([]byte) error { return nil }

func TestAPanicInReplyIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	c := pair(t, &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}, mux.Config{})
	if err := c.Call(t.Context(), &bomb{}); err == nil || err.Error() != "handling a reply: panic: boom" {
		t.Errorf("got %v", err)
	}
	if err := c.Call(t.Context(), &echo{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

type bomb struct{ echo }

func (*bomb) Reply([]byte) error { panic("boom") }

func TestNumbersAreNeverZeroAndNeverTheSameInFlight(t *testing.T) {
	synctest.Test(t, scripted(func(c *mux.Conn, peer net.Conn) {
		seen := map[uint32]bool{0: true}
		for range 50 {
			done := start(context.Background(), c, &echo{})
			frame := request(peer)
			if id := binary.LittleEndian.Uint32(frame[4:]); seen[id] {
				t.Errorf("number %d again", id)
			} else {
				seen[id] = true
			}
			peer.Write(frame)
			<-done
		}
	}))
}

// Whatever arrives, every call ends, and none with another's reply.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{12, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255})
	f.Add([]byte{2, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := net.Pipe()
		c := mux.New(a, lengthID{}, mux.Config{InFlight: 4})
		go io.Copy(io.Discard, b)
		done := make(chan error, 3)
		for i := range 3 {
			go func() {
				e := &echo{sent: uint64(i)}
				done <- c.Call(context.Background(), e)
			}()
		}
		b.Write(data)
		b.Close()
		for range 3 {
			<-done
		}
		if c.Err() == nil {
			t.Error("the connection outlived its end")
		}
		c.Close()
	})
}

// Many callers with deadlines that often pass: replies are right or not there.
func TestCancellationsUnderLoad(t *testing.T) {
	t.Parallel()
	c := pair(t, &mux.Server{Framing: lengthID{}, Handle: same}, mux.Config{InFlight: 16})
	done := make(chan error, 32)
	for vu := range 32 {
		go func() { done <- cancelling(c, vu) }()
	}
	for range 32 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := c.Err(); err != nil {
		t.Errorf("the connection died of it: %v", err)
	}
	for vu := range 16 {
		if err := c.Call(t.Context(), &echo{sent: uint64(vu)}); err != nil {
			t.Errorf("slot %d: %v", vu, err)
		}
	}
}

func cancelling(c *mux.Conn, vu int) error {
	for i := range 200 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(vu*i%97)*time.Microsecond)
		if i%3 == 0 {
			ctx, cancel = context.WithCancel(context.Background())
			go cancel()
		}
		e := &echo{sent: uint64(vu)<<32 | uint64(i), size: vu * 7}
		err := c.Call(ctx, e)
		cancel()
		switch {
		case err == nil && e.got != e.sent:
			return fmt.Errorf("sent %x, got %x", e.sent, e.got)
		case err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
			return err
		}
	}
	return nil
}
