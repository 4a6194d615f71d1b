package driver

import (
	"container/heap"
	"context"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"toll/lab/plan"
)

// A pending VU waits for its time.
type pending struct {
	at   time.Duration
	conn int
}

// pendings is a heap of them, the earliest on top.
type pendings []pending

func (p pendings) Len() int           { return len(p) }
func (p pendings) Less(i, j int) bool { return p[i].at < p[j].at }
func (p pendings) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push is for package heap.
func (p *pendings) Push(x any) { *p = append(*p, x.(pending)) }

// Pop is for package heap.
func (p *pendings) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

func (p *pendings) push(x pending) { heap.Push(p, x) }

// longestWait bounds a wait for readiness, so that the end of ctx and overdue calls are seen.
const longestWait = 20 * time.Millisecond

// closed runs the VUs' calls until all are done.
func (t *loopThread) closed(ctx context.Context) error {
	for t.active > 0 {
		now := t.now()
		t.stopped = ctx.Err() != nil
		t.wakeUp(now)
		if t.active == 0 {
			break
		}
		t.overdue(now)
		t.handOver(t.sheet.At(t.low, now), now)
		if err := t.alarm(now); err != nil {
			return err
		}
		if err := t.poll(longestWait); err != nil {
			return err
		}
	}
	return nil
}

// alarm has the wait for readiness end when the next VU's time has come, not on the next millisecond.
func (t *loopThread) alarm(now time.Duration) error {
	if len(t.pending) == 0 || t.pending[0].at == t.alarmed {
		return nil
	}
	if err := t.armTimer(); err != nil {
		return err
	}
	t.alarmed = t.pending[0].at
	return t.setTimer(t.alarmed - now)
}

// setTimer has the timer end the wait for readiness so much later.
func (t *loopThread) setTimer(d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if err := unix.TimerfdSettime(t.timer, 0, &spec, nil); err != nil {
		return fmt.Errorf("setting the timer: %w", err)
	}
	return nil
}

// wakeUp starts the calls of VUs whose time has come.
func (t *loopThread) wakeUp(now time.Duration) {
	for len(t.pending) > 0 && (t.pending[0].at <= now || t.stopped) {
		p := heap.Pop(&t.pending).(pending)
		c := t.conns[p.conn]
		if t.stopped {
			t.active--
			continue
		}
		if now >= c.spans[0].To { // it slept through the span
			c.spans = c.spans[1:]
			if len(c.spans) == 0 {
				t.active--
				continue
			}
			if c.spans[0].From > now {
				t.pending.push(pending{c.spans[0].From, p.conn})
				continue
			}
		}
		c.mark = now
		t.beginCall(p.conn, now, t.sheet.At(c.slice, now))
	}
}

// poll waits for readiness, at most so long, and handles what there is.
func (t *loopThread) poll(wait time.Duration) error {
	ms := 0
	if wait > 0 {
		ms = int((wait + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.EpollWait(t.epoll, t.events, ms)
	if err == unix.EINTR {
		return nil
	}
	if err != nil {
		return fmt.Errorf("waiting for replies: %w", err)
	}
	for _, ev := range t.events[:n] {
		// An event may be of a connection that another one of the same batch has replaced.
		if ev.Fd >= 0 && t.conns[ev.Fd].generation == ev.Pad {
			t.handle(int(ev.Fd), ev.Events)
		}
	}
	return nil
}

// spinBefore is how long before an arrival the thread stops sleeping: about what waking up takes on an idle core.
const spinBefore = 60 * time.Microsecond

// open sends each arrival when it is due.
func (t *loopThread) open(ctx context.Context) error {
	if err := t.armTimer(); err != nil {
		return err
	}
	arrivals := plan.NewArrivals(t.load.Stages, t.load.Rand).Ahead(t.load.Ahead)
	slice := 0
	var behind int64
	for {
		at, ok := arrivals.Next()
		if !ok {
			break
		}
		now, err := t.until(ctx, at)
		if err != nil || t.stopped {
			break
		}
		behind = t.out.Behind(behind, now-at)
		t.out.Arrivals++
		slice = t.sheet.At(slice, at)
		if !t.send(at, slice, now) {
			t.shard(slice).Dropped++
		}
		t.overdue(now)
		t.handOver(slice, now)
	}
	t.out.Behind(behind, 0)
	for t.busy > 0 {
		if err := t.poll(longestWait); err != nil {
			return err
		}
		t.overdue(t.now())
	}
	return nil
}

// send starts an arrival's call on a free connection, or on a new one, and reports whether there was one to be had.
func (t *loopThread) send(at time.Duration, slice int, now time.Duration) bool {
	if t.busy >= t.load.InFlight {
		return false
	}
	var i int
	if n := len(t.idle); n > 0 {
		i, t.idle = t.idle[n-1], t.idle[:n-1]
	} else {
		i = t.newConn()
	}
	t.conns[i].due = at
	t.beginCall(i, now, slice)
	return true
}

// armTimer puts a timer descriptor into the epoll set: its grain is the clock's, where epoll's own is a millisecond.
func (t *loopThread) armTimer() error {
	if t.timer >= 0 {
		return nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("a timer to pace calls by: %w", err)
	}
	t.timer = fd
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: -1}
	return unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, fd, &ev)
}

// until handles replies until an arrival is due, and returns the time then.
func (t *loopThread) until(ctx context.Context, at time.Duration) (time.Duration, error) {
	for {
		now := t.now()
		left := at - now
		if left <= 0 {
			return now, nil
		}
		if t.stopped = ctx.Err() != nil; t.stopped {
			return now, nil
		}
		if left <= spinBefore {
			if err := t.poll(0); err != nil {
				return now, err
			}
			continue
		}
		if err := t.setTimer(min(left, longestWait) - spinBefore); err != nil {
			return now, err
		}
		if err := t.poll(longestWait); err != nil {
			return now, err
		}
		t.overdue(now)
	}
}

func rawIO(trap uintptr, fd int, b []byte) (int, unix.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	n, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}
