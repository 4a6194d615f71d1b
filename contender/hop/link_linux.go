package hop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"toll/contender/owner"
)

// A Link is a namespace and the way to it.
type Link struct {
	Hop
	Addr  string // inside: where contenders listen
	Delay string // Netem, TUN or empty

	ns      netns.NsHandle
	devices [2]netlink.Link // ours and the one inside
	shuttle *exec.Cmd
	stdin   *os.File // closed, it ends the shuttle
}

// Open makes a namespace and a link to it. A delay without netem needs a process that carries packets: shuttle is the
// command that runs Shuttle on its file descriptors 3 and 4. An ErrUnavailable says that this machine or this user can't.
func Open(ctx context.Context, h Hop, shuttle func() *exec.Cmd) (*Link, error) {
	if h.Kind != Netns {
		return nil, fmt.Errorf("%s is no link", h.Kind)
	}
	l := &Link{Hop: h, ns: netns.None()}
	err := onThread(func() error { return l.open(ctx, shuttle) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%s): %w", ErrUnavailable, h, err), l.Close())
	}
	return l, nil
}

// onThread runs f on an OS thread of its own, which ends with it: f may leave it in another namespace.
func onThread(f func() error) error {
	out := make(chan error)
	go func() {
		runtime.LockOSThread()
		out <- f()
	}()
	return <-out
}

func (l *Link) open(ctx context.Context, shuttle func() *exec.Cmd) error {
	ours, err := netns.Get()
	if err != nil {
		return err
	}
	defer ours.Close()
	if l.ns, err = netns.New(); err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	inside, err := netlink.NewHandleAt(l.ns)
	if err != nil {
		return err
	}
	defer inside.Close()
	outside, err := netlink.NewHandleAt(ours)
	if err != nil {
		return err
	}
	defer outside.Close()
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := inside.LinkSetUp(lo); err != nil {
		return fmt.Errorf("loopback inside: %w", err)
	}
	subnet, err := freeSubnet(outside)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("toll%06x", rand.Uint32()&0xffffff)
	wired := func() error { return l.veth(outside, inside, name, ours) }
	if l.RTT > 0 && !l.netem(wired, outside, inside) {
		wired = func() error { return l.tun(ctx, outside, inside, name, ours, shuttle) }
	} else if l.Delay == Netem {
		wired = func() error { return nil } // it is, since the trial
	}
	if err := wired(); err != nil {
		return err
	}
	return l.address(outside, inside, subnet)
}

// veth joins the namespaces by a pair of devices.
func (l *Link) veth(outside, inside *netlink.Handle, name string, ours netns.NsHandle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name + "a"
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: name + "b", PeerNamespace: netlink.NsFd(l.ns)}
	if err := outside.LinkAdd(pair); err != nil {
		return fmt.Errorf("a veth pair: %w", err)
	}
	return l.find(outside, inside, name)
}

func (l *Link) find(outside, inside *netlink.Handle, name string) (err error) {
	if l.devices[0], err = outside.LinkByName(name + "a"); err != nil {
		return err
	}
	l.devices[1], err = inside.LinkByName(name + "b")
	return err
}

// netem wires the link with the kernel's own delay, half of it each way, and reports whether the kernel has it.
func (l *Link) netem(wired func() error, outside, inside *netlink.Handle) bool {
	if wired() != nil {
		return false
	}
	for i, h := range []*netlink.Handle{outside, inside} {
		attrs := netlink.QdiscAttrs{LinkIndex: l.devices[i].Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		delay := netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: uint32((l.RTT / 2).Microseconds()), Limit: queue})
		if h.QdiscAdd(delay) != nil {
			outside.LinkDel(l.devices[0])
			return false
		}
	}
	l.Delay = Netem
	return true
}

// address gives both ends their addresses and raises them.
func (l *Link) address(outside, inside *netlink.Handle, subnet net.IP) error {
	ends := [2]net.IP{{subnet[0], subnet[1], subnet[2], subnet[3] + 1}, {subnet[0], subnet[1], subnet[2], subnet[3] + 2}}
	if err := outside.LinkSetAlias(l.devices[0], aliasPrefix+string(owner.Self())); err != nil {
		return fmt.Errorf("marking %s as ours: %w", l.devices[0].Attrs().Name, err)
	}
	for i, h := range []*netlink.Handle{outside, inside} {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: ends[i], Mask: net.CIDRMask(30, 32)}}
		if err := h.AddrAdd(l.devices[i], a); err != nil {
			return fmt.Errorf("address %v: %w", a, err)
		}
		if err := h.LinkSetUp(l.devices[i]); err != nil {
			return fmt.Errorf("raising %s: %w", l.devices[i].Attrs().Name, err)
		}
	}
	l.Addr = ends[1].String()
	return nil
}

// freeSubnet returns a /30 of 198.18.0.0/15, which is set aside for benchmarks (RFC 2544), that no device of ours is in.
func freeSubnet(h *netlink.Handle) (net.IP, error) {
	taken, err := h.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	for range 100 {
		n := rand.Uint32N(1<<17) &^ 3
		subnet := &net.IPNet{IP: net.IP{198, 18 + byte(n>>16), byte(n >> 8), byte(n)}, Mask: net.CIDRMask(30, 32)}
		free := true
		for _, a := range taken {
			free = free && !subnet.Contains(a.IP) && !a.Contains(subnet.IP)
		}
		if free {
			return subnet.IP, nil
		}
	}
	return nil, errors.New("no free subnet in 198.18.0.0/15")
}

// Enter takes the calling OS thread, which must be locked, into the namespace: what it forks is born there.
func (l *Link) Enter(*exec.Cmd) (leave func() error, err error) {
	ours, err := netns.Get()
	if err != nil {
		return nil, err
	}
	if err := netns.Set(l.ns); err != nil {
		return nil, errors.Join(fmt.Errorf("entering the namespace: %w", err), ours.Close())
	}
	return func() error { return errors.Join(netns.Set(ours), ours.Close()) }, nil
}

// shuttleGrace is how long a shuttle may take to end once its stdin is closed.
const shuttleGrace = 2 * time.Second

// Close removes the link. Its devices go with the namespace, which goes with its last process.
func (l *Link) Close() error {
	var errs []error
	if l.shuttle != nil {
		l.stdin.Close()
		kill := time.AfterFunc(shuttleGrace, func() { l.shuttle.Process.Kill() })
		errs = append(errs, l.shuttle.Wait())
		kill.Stop()
	}
	if d := l.devices[0]; d != nil {
		if err := netlink.LinkDel(d); err != nil && !errors.As(err, &netlink.LinkNotFoundError{}) && !gone(err) {
			errs = append(errs, fmt.Errorf("removing %s: %w", d.Attrs().Name, err))
		}
	}
	if l.ns.IsOpen() {
		errs = append(errs, l.ns.Close())
	}
	return errors.Join(errs...)
}
