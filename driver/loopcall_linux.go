package driver

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"toll/lab/record"
)

// beginCall starts a call of a slice on a connection.
func (t *loopThread) beginCall(i int, at time.Duration, slice int) {
	c := t.conns[i]
	c.start, c.busy, c.written, c.slice = at, true, 0, slice
	t.count(1, at)
	if c.fd < 0 {
		if err := t.connect(i); err != nil {
			t.ended(i, t.now(), record.Fail(record.Connect, err))
			return
		}
	}
	if !c.connecting {
		t.write(i)
	}
}

// count changes the number of calls in flight.
func (t *loopThread) count(by int, at time.Duration) {
	t.out.InFlight += time.Duration(t.busy) * (at - t.changed)
	t.changed = at
	t.busy += by
	t.out.InFlightMost = max(t.out.InFlightMost, t.busy)
}

// write sends what is left of the request.
func (t *loopThread) write(i int) {
	c := t.conns[i]
	left := t.crowd.request[c.written:]
	n, err := sysWrite(c.fd, left)
	switch {
	case err == unix.EAGAIN || err == nil && n < len(left):
		c.written += max(n, 0)
		c.blocked = true
		if err := t.watch(i, unix.EPOLLIN|unix.EPOLLOUT); err != nil {
			t.ended(i, t.now(), ioFailure(err, record.Other, "watching a connection"))
		}
	case err != nil:
		t.ended(i, t.now(), ioFailure(err, record.Closed, "sending the request"))
	default:
		c.written = len(t.crowd.request)
		if !c.blocked {
			return
		}
		c.blocked = false
		if err := t.watch(i, unix.EPOLLIN); err != nil {
			t.ended(i, t.now(), ioFailure(err, record.Other, "watching a connection"))
		}
	}
}

// handle does what a connection is ready for.
func (t *loopThread) handle(i int, events uint32) {
	c := t.conns[i]
	if c.fd < 0 {
		return
	}
	if c.connecting {
		if err := t.connected(i); err != nil {
			if c.busy {
				t.ended(i, t.now(), record.Fail(record.Connect, err))
			}
			return
		}
		if c.busy {
			t.write(i)
		}
		return
	}
	if events&unix.EPOLLOUT != 0 && c.busy && c.blocked {
		t.write(i)
	}
	if events&^uint32(unix.EPOLLOUT) != 0 && c.fd >= 0 {
		t.read(i)
	}
}

// read takes what has arrived, and ends the call when its reply is complete.
func (t *loopThread) read(i int) {
	c := t.conns[i]
	n, err := sysRead(c.fd, c.in.room())
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case !c.busy:
		// Closed while idle, or bytes that nobody asked for: the next call connects anew.
		t.disconnect(i)
		return
	case err != nil:
		t.ended(i, t.now(), ioFailure(err, record.Closed, "reading"))
		return
	}
	c.in.w += n
	t.shard(c.slice).In += int64(n)
	h := t.crowd.target
	reply, ok, err := c.in.next(h.method(), n == 0)
	if !ok && err == nil {
		return
	}
	now := t.now()
	if err == nil {
		err = h.Expect.check(reply)
		if reply.Close {
			t.disconnect(i)
		}
		t.done(i, now, err)
		return
	}
	t.ended(i, now, err)
}

// ended is done for a call whose connection is of no more use.
func (t *loopThread) ended(i int, now time.Duration, err error) {
	t.disconnect(i)
	t.done(i, now, err)
}

// done records a call and gives the connection its next one.
func (t *loopThread) done(i int, now time.Duration, err error) {
	c := t.conns[i]
	c.busy = false
	t.last = max(t.last, now)
	t.count(-1, now)
	s := t.shard(c.slice)
	s.Out += int64(c.written)
	if err == nil {
		c.silent = 0
	} else if kind := record.KindOf(err); kind == record.Connect || kind == record.Closed {
		c.silent++
	}
	if t.load.Open {
		s.Sent(now-c.start, c.start-c.due, err)
		t.idle = append(t.idle, i)
		return
	}
	s.Done(now-c.start, err)
	t.next(i, now, err)
}

// next gives a VU of the closed model its next call: at once, after its pause, when it is active again, or never.
func (t *loopThread) next(i int, now time.Duration, err error) {
	c := t.conns[i]
	if c.calls > 0 {
		c.calls--
	}
	pause := t.load.Think
	if err != nil && c.silent > 0 {
		pause = max(pause, min(time.Millisecond<<min(c.silent-1, 10), 100*time.Millisecond))
	}
	end := c.spans[0].To
	if pause == 0 && now < end && c.calls != 0 && !t.stopped {
		t.again(i, now)
		return
	}
	t.rest(i, now)
	at := now + pause
	if at >= end {
		c.spans = c.spans[1:]
		if len(c.spans) > 0 {
			at = max(at, c.spans[0].From)
		}
	}
	if len(c.spans) == 0 || c.calls == 0 || t.stopped {
		t.active--
		return
	}
	t.pending.push(pending{at, i})
}

// again starts the call that follows another at once; across slices the VU's active time is divided.
func (t *loopThread) again(i int, now time.Duration) {
	c := t.conns[i]
	slice := t.sheet.At(c.slice, now)
	if slice != c.slice {
		t.rest(i, now)
	}
	t.beginCall(i, now, slice)
}

// rest counts a VU's active time up to now.
func (t *loopThread) rest(i int, now time.Duration) {
	c := t.conns[i]
	t.shard(c.slice).Active += now - c.mark
	c.mark = now
}

// errOverdue is why a call is given up.
func (t *loopThread) errOverdue() error {
	return record.Fail(record.Timeout, fmt.Errorf("no complete reply within %v", t.load.Timeout))
}

// overdue gives up the calls that have taken longer than they may. It looks a few dozen times in a timeout.
func (t *loopThread) overdue(now time.Duration) {
	if now-t.looked < min(max(t.load.Timeout/50, time.Millisecond), 100*time.Millisecond) {
		return
	}
	t.looked = now
	for i, c := range t.conns {
		if c.busy && now-c.start >= t.load.Timeout {
			t.ended(i, now, t.errOverdue())
		}
	}
}

// sysRead and sysWrite are the bare system calls: they do not tell the scheduler, because a socket that does not block
// returns sooner than that would take.
func sysRead(fd int, b []byte) (int, error) {
	n, errno := rawIO(unix.SYS_READ, fd, b)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

func sysWrite(fd int, b []byte) (int, error) {
	n, errno := rawIO(unix.SYS_WRITE, fd, b)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}
