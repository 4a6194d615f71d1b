package mux

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// words frames as [length u32][number u32].
type words struct{}

func (words) Header() int                                { return 4 }
func (words) Length(h []byte) (int, error)               { return 4 + int(binary.LittleEndian.Uint32(h)), nil }
func (words) ID(frame []byte) (uint32, error)            { return binary.LittleEndian.Uint32(frame[4:]), nil }
func word(id uint32) []byte                              { return binary.LittleEndian.AppendUint32([]byte{4, 0, 0, 0}, id) }
func (words) AppendRequest(dst []byte, id uint32) []byte { return append(dst, word(id)...) }
func (words) Reply([]byte) error                         { return nil }

// A length alone does not make us set memory aside.
func TestMemoryFollowsWhatArrives(t *testing.T) {
	t.Parallel()
	r := NewReader(io.MultiReader(strings.NewReader("\x00\x00\x00\x04"), bytes.NewReader(make([]byte, 100_000))), words{})
	if _, err := r.Next(); err == nil || err.Error() != "100004 bytes of a frame of 67108868: unexpected EOF" {
		t.Errorf("got %v", err)
	}
	if len(r.buf) > 256<<10 {
		t.Errorf("%d bytes set aside for 100004", len(r.buf))
	}
}

func TestALargeBufferIsLetGo(t *testing.T) {
	t.Parallel()
	large := append(binary.LittleEndian.AppendUint32(nil, 3<<20), make([]byte, 3<<20)...)
	r := NewReader(io.MultiReader(bytes.NewReader(large), bytes.NewReader(word(1))), words{})
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) > keptBuffer {
		t.Errorf("%d bytes kept", len(r.buf))
	}
}

func TestFramesAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	var stream []byte
	sizes := []int{4, 0, 9000, 4, 100_000, 8188, 1}
	for _, n := range sizes {
		stream = append(binary.LittleEndian.AppendUint32(stream, uint32(n)), make([]byte, n)...)
	}
	for name, src := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"halves": iotest.HalfReader(bytes.NewReader(stream)), "with the end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		r := NewReader(src, words{})
		for i, n := range sizes {
			if f, err := r.Next(); err != nil || len(f) != 4+n {
				t.Fatalf("%s: frame %d: %d bytes, %v", name, i, len(f), err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

// When a slot's generations begin anew, a reply to a call that was given up could be taken for another's.
func TestNumbersAreNotUsedAgainWhileAReplyMayCome(t *testing.T) {
	t.Parallel()
	c, numbers := numbered(2)
	for _, s := range c.slots {
		s.generation = 1 << 31 // the next is too large
	}
	c.slots[0].lost = 1
	for range 2 {
		if err := c.Call(context.Background(), words{}); err != nil {
			t.Error(err)
		}
	}
	c.slots[1].generation, c.slots[1].lost = 1<<31, 1
	if err := c.Call(context.Background(), words{}); err != errNumbers || c.Err() != errNumbers {
		t.Errorf("got %v; the connection: %v", err, c.Err())
	}
	c.Close()
	if first, second := <-numbers, <-numbers; first != 1<<1|1 || second != 2<<1|1 {
		t.Errorf("numbers %#x and %#x", first, second)
	}
}

// numbered makes a connection with slots that answers each call, and tells the numbers.
func numbered(slots int) (*Conn, <-chan uint32) {
	a, b := net.Pipe()
	c := New(a, words{}, Config{InFlight: slots, IdleRead: -1})
	for range slots {
		c.slots = append(c.slots, &slot{generation: 1, wake: make(chan struct{}, 1)})
		c.free <- uint16(len(c.slots) - 1)
	}
	numbers := make(chan uint32, 100)
	go func() {
		defer close(numbers)
		buf := make([]byte, 8)
		for {
			if _, err := io.ReadFull(b, buf); err != nil {
				return
			}
			numbers <- binary.LittleEndian.Uint32(buf[4:])
			b.Write(buf)
		}
	}()
	return c, numbers
}

func TestALateReplyIsCounted(t *testing.T) {
	t.Parallel()
	c, _ := numbered(4)
	defer c.Close()
	c.slots[1].generation, c.slots[1].lost = 9, 2
	for _, want := range []int{1, 0, 0} {
		if to, err := c.deliver(word(8<<2 | 1)); to != nil || err != nil || c.slots[1].lost != want {
			t.Errorf("%v, %v, %d still lost; want %d", to, err, c.slots[1].lost, want)
		}
	}
	if to, err := c.deliver(word(1<<2 | 3)); to != nil || err != nil || c.slots[3].lost != 0 {
		t.Errorf("nobody asked for it: %v, %v", to, err)
	}
}

// The watcher gives reading back to the callers: through it, each reply would wait for another goroutine.
func TestTheWatcherReadsNoLongerThanItMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := numbered(4)
		c.cfg.IdleRead = time.Second
		c.watcher.Go(c.watch)
		reading := func() bool {
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.reading
		}
		for range 2 {
			time.Sleep(5 * time.Second)
			if !reading() {
				t.Error("nobody reads after a pause")
			}
			if err := c.Call(t.Context(), words{}); err != nil || reading() {
				t.Errorf("%v; somebody still reads behind a call", err)
			}
		}
		c.Close()
	})
}
