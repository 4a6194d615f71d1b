package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// LoopWorks says whether this system has client loop.
const LoopWorks = true

// Gather connects VUs that an event loop drives, where the client is ClientLoop; else a goroutine each drives them.
func (h *HTTP) Gather(ctx context.Context, vus int) (load.Crowd, error) {
	if h.Client != ClientLoop {
		return load.Goroutines(ctx, h, vus)
	}
	if h.Fresh {
		return nil, errors.New("client loop keeps its connections; for new ones use client raw")
	}
	a, err := parseAddress(h.Addr)
	switch {
	case err != nil:
		return nil, err
	case a.tls:
		return nil, errors.New("client loop does not speak TLS; use client raw")
	}
	if h.Host != "" {
		a.host = h.Host
	}
	c := &loopCrowd{target: h, request: appendHead(nil, a.host, &h.RawRequest)}
	if c.peer, err = resolve(ctx, a); err != nil {
		return nil, err
	}
	for i := range max(h.Threads, 1) {
		t, err := newLoopThread(c)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.threads = append(c.threads, t)
		for vu := i; vu < vus; vu += max(h.Threads, 1) {
			if err := t.add(ctx); err != nil {
				c.Close()
				return nil, err
			}
		}
	}
	return c, nil
}

// resolve finds the socket address: the one that the standard library's dialer comes through to.
func resolve(ctx context.Context, a address) (unix.Sockaddr, error) {
	nc, err := new(net.Dialer).DialContext(ctx, a.network, a.addr)
	if err != nil {
		return nil, dialFailure(ctx, err)
	}
	defer nc.Close()
	switch at := nc.RemoteAddr().(type) {
	case *net.UnixAddr:
		return &unix.SockaddrUnix{Name: a.addr}, nil
	case *net.TCPAddr:
		if ip := at.IP.To4(); ip != nil {
			return &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(ip)}, nil
		}
		s := &unix.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP.To16())}
		if at.Zone != "" {
			if dev, err := net.InterfaceByName(at.Zone); err == nil {
				s.ZoneId = uint32(dev.Index)
			}
		}
		return s, nil
	}
	return nil, fmt.Errorf("address %s: no socket address", a.addr)
}

// A loopCrowd is VUs that a few threads drive, each by readiness of its own connections.
type loopCrowd struct {
	target  *HTTP
	request []byte
	peer    unix.Sockaddr
	threads []*loopThread
}

// Close ends the connections.
func (c *loopCrowd) Close() error {
	for _, t := range c.threads {
		t.close()
	}
	c.threads = nil
	return nil
}

// Run puts the load on the target. An open-model load is one thread's work: arrivals are in order.
func (c *loopCrowd) Run(ctx context.Context, l load.Load) (load.Outcome, error) {
	l = l.WithDefaults()
	sheet := load.NewSheet(l)
	threads := c.threads
	if l.Open {
		threads = threads[:1]
	}
	begin := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, len(threads))
	for i, t := range threads {
		t.prepare(l, begin, sheet, i, len(threads))
		sheet.Hold(0)
	}
	for i, t := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if l.Open {
				errs[i] = t.open(ctx)
			} else {
				errs[i] = t.closed(ctx)
			}
			t.handIn()
		})
	}
	wg.Wait()
	out := threads[0].out
	out.Threads = len(threads)
	out.Slices = sheet.Slices()
	out.Elapsed = lastReply(threads, time.Since(begin))
	return out, errors.Join(append(errs, ctx.Err())...)
}

// lastReply returns when the last reply came, or d without any.
func lastReply(threads []*loopThread, d time.Duration) time.Duration {
	var last time.Duration
	for _, t := range threads {
		last = max(last, t.last)
	}
	if last == 0 {
		return d
	}
	return last
}

// A loopConn is one VU's connection.
type loopConn struct {
	fd         int // -1: none
	connecting bool
	busy       bool
	blocked    bool          // the request waits for room in the socket's buffer
	generation int32         // of the connection: each has its own
	written    int           // of the request
	start      time.Duration // when the call began
	due        time.Duration // open model: when it was to begin
	slice      int
	spans      []plan.Span // closed model: when it is active, the current one first
	calls      int64       // left to make; -1: no bound
	mark       time.Duration
	silent     int // failures in a row that took no time
	in         scanner
}

// A loopThread drives connections from one operating system thread. In a window it reads the clock once a reply, makes one
// write and one read a call, and allocates nothing.
type loopThread struct {
	crowd  *loopCrowd
	epoll  int
	timer  int // a timer descriptor in the epoll set; -1 before there is one
	conns  []*loopConn
	events []unix.EpollEvent

	// Of the load that runs:
	load    load.Load
	begin   time.Time
	sheet   *load.Sheet
	shards  []*record.Shard // by slice, handed in at the end, or when a slice is over
	low     int             // the first slice that was not handed in
	handed  time.Duration   // when that was last looked at
	out     load.Outcome
	pending pendings      // VUs that wait for their time
	active  int           // closed: VUs that are not done
	busy    int           // calls in flight
	idle    []int         // open: free connections, the last one freed on top
	changed time.Duration // open: when busy did
	looked  time.Duration // when overdue calls were last looked for
	last    time.Duration // when the last reply came
	alarmed time.Duration // closed: when the timer was last told to fire
	stopped bool          // ctx has ended
}

func newLoopThread(c *loopCrowd) (*loopThread, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("an epoll set: %w", err)
	}
	return &loopThread{crowd: c, epoll: ep, timer: -1, events: make([]unix.EpollEvent, 256)}, nil
}

func (t *loopThread) close() {
	for i := range t.conns {
		t.disconnect(i)
	}
	unix.Close(t.epoll)
	if t.timer >= 0 {
		unix.Close(t.timer)
	}
}

// add connects one more VU and waits for it.
func (t *loopThread) add(ctx context.Context) error {
	i := t.newConn()
	if err := t.connect(i); err != nil {
		return record.Fail(record.Connect, err)
	}
	c := t.conns[i]
	for c.connecting {
		if err := ctx.Err(); err != nil {
			return record.Fail(record.KindOf(err), err)
		}
		fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(fds, 50); err != nil && err != unix.EINTR || n == 0 {
			continue
		}
		if err := t.connected(i); err != nil {
			return record.Fail(record.Connect, err)
		}
	}
	return nil
}

func (t *loopThread) newConn() int {
	c := &loopConn{fd: -1}
	c.in.maxBody = t.crowd.target.config().MaxBody
	t.conns = append(t.conns, c)
	return len(t.conns) - 1
}

// connect begins a connection.
func (t *loopThread) connect(i int) error {
	family, c := unix.AF_INET, t.conns[i]
	switch t.crowd.peer.(type) {
	case *unix.SockaddrUnix:
		family = unix.AF_UNIX
	case *unix.SockaddrInet6:
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket: %w", err)
	}
	if family != unix.AF_UNIX {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	err = unix.Connect(fd, t.crowd.peer)
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return fmt.Errorf("connecting: %w", err)
	}
	c.fd, c.connecting, c.blocked = fd, err != nil, false
	c.generation++
	c.in.reset()
	want := uint32(unix.EPOLLIN)
	if c.connecting {
		want = unix.EPOLLOUT
	}
	ev := unix.EpollEvent{Events: want, Fd: int32(i), Pad: c.generation}
	if err := unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		t.disconnect(i)
		return fmt.Errorf("watching a connection: %w", err)
	}
	return nil
}

// connected ends the connecting: the connection is made, or the error says why not.
func (t *loopThread) connected(i int) error {
	c := t.conns[i]
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		t.disconnect(i)
		return fmt.Errorf("connecting: %w", err)
	}
	c.connecting = false
	return t.watch(i, unix.EPOLLIN)
}

func (t *loopThread) watch(i int, events uint32) error {
	c := t.conns[i]
	ev := unix.EpollEvent{Events: events, Fd: int32(i), Pad: c.generation}
	return unix.EpollCtl(t.epoll, unix.EPOLL_CTL_MOD, c.fd, &ev)
}

func (t *loopThread) disconnect(i int) {
	if c := t.conns[i]; c.fd >= 0 {
		unix.Close(c.fd) // which takes it out of the epoll set
		c.fd, c.connecting = -1, false
		c.in.reset()
	}
}

func (t *loopThread) now() time.Duration { return time.Since(t.begin) }

// prepare readies the thread for a load: thread number i of n drives every nth VU.
func (t *loopThread) prepare(l load.Load, begin time.Time, sheet *load.Sheet, i, n int) {
	t.load, t.begin, t.sheet = l, begin, sheet
	t.shards = make([]*record.Shard, sheet.Len())
	t.out = load.Outcome{}
	t.pending, t.idle = t.pending[:0], t.idle[:0]
	t.active, t.busy, t.changed, t.looked, t.last, t.alarmed, t.stopped = 0, 0, 0, 0, 0, -1, false
	t.low, t.handed = 0, 0
	total := 0
	for _, other := range t.crowd.threads {
		total += len(other.conns)
	}
	for k, c := range t.conns {
		c.busy, c.silent, c.slice, c.blocked = false, 0, 0, false
		c.spans, c.calls = plan.Active(l.Stages, k*n+i), load.Share(l.Calls, k*n+i, total)
		if l.Open {
			t.idle = append(t.idle, len(t.conns)-1-k)
		} else if len(c.spans) > 0 && c.calls != 0 {
			t.active++
			t.pending.push(pending{c.spans[0].From, k})
		}
	}
}

// handIn adds what the thread measured to the sheet.
func (t *loopThread) handIn() {
	for i, s := range t.shards[t.low:] {
		if s != nil {
			t.sheet.Add(t.low+i, s)
		}
	}
	t.sheet.Release(t.low)
}

// handOver hands in the slices before one, as far as no call in flight belongs to them, where slices are delivered while the
// load runs. It looks a hundred times a second at most.
func (t *loopThread) handOver(before int, now time.Duration) {
	if before <= t.low || !t.sheet.Streams() || now-t.handed < 10*time.Millisecond {
		return
	}
	t.handed = now
	for _, c := range t.conns {
		if c.busy {
			before = min(before, c.slice)
		}
	}
	for ; t.low < before; t.low++ {
		if s := t.shards[t.low]; s != nil {
			t.sheet.Add(t.low, s)
			t.shards[t.low] = nil
		}
		t.sheet.Move(t.low, t.low+1)
	}
}

func (t *loopThread) shard(slice int) *record.Shard {
	if t.shards[slice] == nil {
		t.shards[slice] = t.sheet.Shard()
	}
	return t.shards[slice]
}
