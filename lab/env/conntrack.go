package env

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Where the kernel counts the connections that it tracks in this network namespace (nf_conntrack-sysctl.rst); the second where
// the first is hidden. Without the module, neither is there.
const (
	trackedFile = "proc/sys/net/netfilter/nf_conntrack_count"
	trackedStat = "proc/net/stat/nf_conntrack"
)

// probes is how many connections are made to see whether they are tracked: more than others open and end in the millisecond
// that it takes, or half of them.
const probes = 32

// conntrack reports whether connections over loopback are tracked, as they are once something asks for addresses to be
// translated or for a connection's state: from then on every packet is looked up. Rules can't be read without privileges, and
// tell less than what they do: whether the count grows by connections that we make.
func (r *reader) conntrack() {
	const field = "os.conntrack"
	if r.sys.connections == nil {
		r.miss(field, "only Linux is asked")
		return
	}
	before, file, err := tracked(r.root)
	if errors.Is(err, fs.ErrNotExist) && r.showsNetwork() {
		r.env.OS.Conntrack = new(bool) // nothing that could track
		return
	}
	if err != nil {
		r.miss(field, why(file, err))
		return
	}
	end, err := r.sys.connections(probes)
	if err != nil {
		r.miss(field, "no connections can be made over loopback to try it")
		return
	}
	during, file, err := tracked(r.root)
	end()
	if err != nil {
		r.miss(field, why(file, err))
		return
	}
	r.env.OS.Conntrack = new(during-before >= probes/2)
}

// showsNetwork reports whether this kernel shows what of its network can be set.
func (r *reader) showsNetwork() bool {
	_, err := fs.Stat(r.root, "proc/sys/net/ipv4")
	return err == nil
}

// tracked counts the connections that are tracked now, and names the file that says so or should.
func tracked(root fs.FS) (n int, file string, err error) {
	text, err := readText(root, trackedFile)
	if err == nil {
		n, err = parseInt(text)
		return n, trackedFile, err
	}
	if text, statErr := readText(root, trackedStat); statErr == nil {
		n, err = parseTracked(text)
		return n, trackedStat, err
	}
	return 0, trackedFile, err
}

// parseTracked takes the first column of the first processor, hexadecimal; each line has the same.
func parseTracked(text string) (int, error) {
	head, rest, _ := strings.Cut(text, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	names, values := strings.Fields(head), strings.Fields(line)
	if len(names) == 0 || names[0] != "entries" || len(values) == 0 {
		return 0, fmt.Errorf("connection tracking: %w", errMalformed)
	}
	n, err := strconv.ParseUint(values[0], 16, 31)
	if err != nil {
		return 0, fmt.Errorf("entries %q: %w", values[0], errMalformed)
	}
	return int(n), nil
}
