package owner

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Self is this process' ID.
func Self() ID {
	id, err := of("self")
	if err != nil {
		return ""
	}
	return id
}

func of(pid string) (ID, error) {
	ns, err := namespace(pid)
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", err
	}
	// The name stands in parentheses and may hold any character, also a closing one.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 {
		return "", fmt.Errorf("/proc/%s/stat has %d fields", pid, len(f))
	}
	number, _, _ := strings.Cut(string(stat), " ")
	return ID(ns + "-" + number + "-" + f[19]), nil
}

// namespace is the number of a process' PID namespace.
func namespace(pid string) (string, error) {
	link, err := os.Readlink("/proc/" + pid + "/ns/pid")
	if err != nil {
		return "", err
	}
	number := strings.TrimSuffix(strings.TrimPrefix(link, "pid:["), "]")
	if _, err := strconv.ParseUint(number, 10, 64); err != nil {
		return "", fmt.Errorf("PID namespace %q", link)
	}
	return number, nil
}

// Gone reports that the process has ended. Of one that it can't look for, such as one of another PID namespace, it says no.
func (id ID) Gone() bool {
	ns, rest, _ := strings.Cut(string(id), "-")
	pid, _, _ := strings.Cut(rest, "-")
	own, err := namespace("self")
	if _, ok := Parse(string(id)); !ok || err != nil || own != ns {
		return false
	}
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 {
		return false
	}
	if err := syscall.Kill(n, 0); err == syscall.ESRCH {
		return true
	}
	now, err := of(pid)
	return err == nil && now != id // another process has its pid
}

func ownedByUs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
