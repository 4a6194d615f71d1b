package hop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// gone says that a device is not there any more.
func gone(err error) bool { return errors.Is(err, unix.ENODEV) }

// tun joins the namespaces by two devices whose packets a process of its own carries, so that its CPU time is neither the
// lab's nor the contender's. The calling thread is in the namespace.
func (l *Link) tun(ctx context.Context, outside, inside *netlink.Handle, name string, ours netns.NsHandle, shuttle func() *exec.Cmd) error {
	b, err := openTUN(name + "b")
	if err != nil {
		return err
	}
	defer b.Close()
	if err := netns.Set(ours); err != nil {
		return err
	}
	a, err := openTUN(name + "a")
	if err != nil {
		return err
	}
	defer a.Close()
	if err := l.find(outside, inside, name); err != nil {
		return err
	}
	return l.carry(ctx, a, b, shuttle())
}

// openTUN makes a device in the calling thread's namespace; it lives as long as the file.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("a TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// carry starts the shuttle between two devices.
func (l *Link) carry(ctx context.Context, a, b *os.File, cmd *exec.Cmd) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	cmd.ExtraFiles = []*os.File{a, b}
	if err := errors.Join(ctx.Err(), cmd.Start()); err != nil {
		out.Close()
		return fmt.Errorf("the process that carries packets: %w", err)
	}
	l.Delay, l.shuttle, l.stdin = TUN, cmd, out
	return nil
}

// Carried is the CPU time that the process which carries packets has used; false where none does.
func (l *Link) Carried() (time.Duration, bool) {
	if l.shuttle == nil {
		return 0, false
	}
	const whole = 2 // linux/posix-timers.h: the clock of a whole process, in nanoseconds
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^l.shuttle.Process.Pid<<3|whole), &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

const (
	queue  = 4096 // packets on their way in one direction; the next is lost, as on any link
	packet = 1 << 16
)

// Shuttle carries packets between two TUN devices, each oneWay later than it came, until ctx ends. The files are its own
// from now on.
func Shuttle(ctx context.Context, a, b *os.File, oneWay time.Duration) error {
	errs := make(chan error, 2)
	run := func(from, to *os.File) {
		go func() {
			// A thread of its own sleeps in the kernel: Go's timers are a millisecond coarse where nothing else happens.
			runtime.LockOSThread()
			errs <- carry(ctx, int(from.Fd()), int(to.Fd()), oneWay)
		}()
	}
	for _, f := range []*os.File{a, b} {
		if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
			return err
		}
	}
	run(a, b)
	run(b, a)
	return errors.Join(<-errs, <-errs, a.Close(), b.Close())
}

// look is how often a carrier looks whether it should end.
const look = 100 * time.Millisecond

type flying struct {
	due  time.Time
	data []byte
}

// carry is one direction: it reads what has come, writes what is due, and sleeps until either.
func carry(ctx context.Context, from, to int, oneWay time.Duration) error {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	var air []flying
	var spare [][]byte
	buf := make([]byte, packet)
	for ctx.Err() == nil {
		wait := look
		if len(air) > 0 {
			wait = min(wait, max(time.Until(air[0].due), 0))
		}
		t := unix.NsecToTimespec(int64(wait))
		events := int16(unix.POLLIN)
		if len(air) == queue {
			events = 0
		}
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(from), Events: events}}, &t, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for packets: %w", err)
		}
		now := time.Now()
		for len(air) < queue {
			n, err := unix.Read(from, buf)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil && !errors.Is(err, unix.EIO) { // a device that is down
				return fmt.Errorf("reading a packet: %w", err)
			}
			if err != nil {
				break
			}
			var data []byte
			if k := len(spare); k > 0 {
				data, spare = spare[k-1][:0], spare[:k-1]
			}
			air = append(air, flying{now.Add(oneWay), append(data, buf[:n]...)})
		}
		sent := 0
		for now = time.Now(); sent < len(air) && !air[sent].due.After(now); sent++ {
			unix.Write(to, air[sent].data) // what the other side does not take is lost
			spare = append(spare, air[sent].data)
		}
		air = append(air[:0], air[sent:]...)
	}
	return nil
}
