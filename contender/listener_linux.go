package contender

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Listener is the processes that listen at an address of this machine and that we did not start: we may look at what they
// use, and leave them alone.
type Listener struct {
	network, addr string
	base          map[int]Usage // by pid: what it had used when it was first seen
	last          map[int]Usage // and when it was last seen
}

// Listening finds who listens at a tcp address (an IP and a port) or on a unix socket. An error says why nobody could be
// found: another machine, another network namespace, no right to look.
func Listening(network, addr string) (*Listener, error) {
	l := &Listener{network: network, addr: addr, base: map[int]Usage{}, last: map[int]Usage{}}
	pids, err := l.pids()
	switch {
	case err != nil:
		return nil, fmt.Errorf("who listens at %s: %w", addr, err)
	case len(pids) == 0:
		return nil, fmt.Errorf("who listens at %s: no process that this user may look at", addr)
	case slices.Contains(pids, os.Getpid()):
		return nil, fmt.Errorf("who listens at %s: this process itself", addr)
	}
	for _, pid := range pids {
		u, ok := usageOf(pid)
		if ok {
			l.base[pid], l.last[pid] = u, u
		}
	}
	return l, nil
}

// Usage is what they have used since Listening.
func (l *Listener) Usage() (Usage, error) {
	pids, err := l.pids()
	if err != nil {
		return Usage{}, err
	}
	for _, pid := range pids {
		if u, ok := usageOf(pid); ok {
			l.last[pid] = u
		}
	}
	var sum Usage
	for pid, u := range l.last {
		was := l.base[pid] // nothing of one that was started since
		sum.CPU += u.CPU - was.CPU
		sum.User += u.User - was.User
		sum.System += u.System - was.System
		sum.RSSPeak += u.RSSPeak
		if slices.Contains(pids, pid) {
			sum.Threads += u.Threads
			sum.PIDs = append(sum.PIDs, pid)
		}
	}
	if len(sum.PIDs) == 0 {
		return Usage{}, fmt.Errorf("who listens at %s: %w", l.addr, os.ErrProcessDone)
	}
	return sum, nil
}

func usageOf(pid int) (Usage, bool) {
	s, err := readStat(pid)
	if err != nil || s.dead() {
		return Usage{}, false
	}
	cpu, ok := s.cpu()
	return Usage{CPU: cpu, User: s.user, System: s.system, RSSPeak: rssPeak(pid), Threads: s.threads}, ok
}

// pids are the processes that hold a listening socket of the address.
func (l *Listener) pids() ([]int, error) {
	inodes, err := l.inodes()
	if err != nil || len(inodes) == 0 {
		return nil, err
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, link := range links {
		to, err := os.Readlink(link)
		inode, isSocket := strings.CutPrefix(to, "socket:[")
		if err != nil || !isSocket || !inodes[strings.TrimSuffix(inode, "]")] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err == nil && !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out, nil
}

// inodes are those of the sockets that listen at the address.
func (l *Listener) inodes() (map[string]bool, error) {
	out := make(map[string]bool)
	if l.network == "unix" {
		text, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			// Num RefCount Protocol Flags Type St Inode Path; the flag says that it accepts.
			if f := strings.Fields(line); len(f) == 8 && f[7] == l.addr && f[3] == "00010000" {
				out[f[6]] = true
			}
		}
		return out, nil
	}
	at, err := netip.ParseAddrPort(l.addr)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for line := range strings.Lines(string(text)) {
			if inode, ok := listens(line, at); ok {
				out[inode] = true
			}
		}
	}
	if len(errs) == 2 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// listens reads a line of /proc/net/tcp: "0: 0100007F:1F90 00000000:0000 0A …", whose tenth field is the inode. The address is
// in words of the machine's order, the port is not.
func listens(line string, at netip.AddrPort) (inode string, ok bool) {
	const listening = "0A"
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != listening {
		return "", false
	}
	host, port, _ := strings.Cut(f[1], ":")
	if p, err := strconv.ParseUint(port, 16, 16); err != nil || uint16(p) != at.Port() {
		return "", false
	}
	ip, ok := parseHexAddr(host)
	return f[9], ok && (ip.IsUnspecified() || ip.Unmap() == at.Addr().Unmap())
}

// parseHexAddr reads an address as little-endian words in hex.
func parseHexAddr(s string) (netip.Addr, bool) {
	var b []byte
	for ; len(s) >= 8; s = s[8:] {
		w, err := strconv.ParseUint(s[:8], 16, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return netip.AddrFromSlice(b)
}
