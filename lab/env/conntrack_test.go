package env

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// counting shows a count of tracked connections that grows by grows while connections are open.
type counting struct {
	fstest.MapFS
	count, grows int
	ended        int
	fails        error
}

func (c *counting) Open(name string) (fs.File, error) {
	if name == trackedFile && c.count >= 0 {
		return fstest.MapFS{name: {Data: fmt.Appendf(nil, "%d\n", c.count)}}.Open(name)
	}
	if name == trackedStat && c.count < -1 {
		return fstest.MapFS{name: {Data: fmt.Appendf(nil, "entries  found new\n%08x  00000001 00000000\n%08x  00000000 00000000\n", -c.count, -c.count)}}.Open(name)
	}
	return c.MapFS.Open(name)
}

func (c *counting) connections(n int) (func(), error) {
	if c.fails != nil {
		return nil, c.fails
	}
	if c.count >= 0 {
		c.count += c.grows
	} else {
		c.count -= c.grows
	}
	return func() { c.ended++ }, nil
}

func TestConnectionsAreTrackedIfTheirCountGrows(t *testing.T) {
	t.Parallel()
	network := fstest.MapFS{"proc/sys/net/ipv4/ip_local_port_range": {Data: []byte("32768\t60999\n")}}
	for name, x := range map[string]struct {
		files counting
		want  string // true, false, or the reason
	}{
		"all of ours":              {counting{count: 7, grows: probes}, "true"},
		"some of others' ended":    {counting{count: 90_000, grows: probes - 9}, "true"},
		"none":                     {counting{count: 7}, "false"},
		"others' only":             {counting{count: 90_000, grows: 5}, "false"},
		"others' ended":            {counting{count: 90_000, grows: -5}, "false"},
		"the second file":          {counting{count: -1000, grows: probes}, "true"},
		"the second file, none":    {counting{count: -1000}, "false"},
		"no module":                {counting{count: -1, MapFS: network}, "false"},
		"no /proc":                 {counting{count: -1}, "no /" + trackedFile},
		"no connections":           {counting{count: 7, fails: errors.New("SECRET")}, "no connections can be made over loopback to try it"},
		"a count that is none":     {counting{count: -1, MapFS: fstest.MapFS{trackedFile: {Data: []byte("many")}}}, "not understood: /" + trackedFile},
		"an empty second file":     {counting{count: -1, MapFS: fstest.MapFS{trackedStat: {}}}, "not understood: /" + trackedStat},
		"a second file with a gap": {counting{count: -1, MapFS: fstest.MapFS{trackedStat: {Data: []byte("entries\n")}}}, "not understood: /" + trackedStat},
		"a second file of others":  {counting{count: -1, MapFS: fstest.MapFS{trackedStat: {Data: []byte("found\n00000001\n")}}}, "not understood: /" + trackedStat},
		"too many":                 {counting{count: -1, MapFS: fstest.MapFS{trackedStat: {Data: []byte("entries\n1ffffffff\n")}}}, "not understood: /" + trackedStat},
	} {
		sys := someSystem()
		sys.connections = x.files.connections
		if x.files.MapFS == nil {
			x.files.MapFS = fstest.MapFS{}
		}
		e := read(t.Context(), &x.files, sys)
		got := slices.DeleteFunc(slices.Clone(e.NotVisible), func(s string) bool { return !strings.HasPrefix(s, "os.conntrack: ") })
		if e.OS.Conntrack != nil {
			got = append(got, "os.conntrack: "+fmt.Sprint(*e.OS.Conntrack))
		}
		if len(got) != 1 || got[0] != "os.conntrack: "+x.want {
			t.Errorf("%s: %q; want %s", name, got, x.want)
		}
		if tried := x.files.grows != 0; tried && x.files.ended != 1 {
			t.Errorf("%s: connections were ended %d times", name, x.files.ended)
		}
		if bytes.Contains(document(t, e), []byte("SECRET")) {
			t.Errorf("%s: an error's text is in the document", name)
		}
	}
}

func TestASystemThatIsNotAskedSaysSo(t *testing.T) {
	t.Parallel()
	sys := someSystem()
	sys.os, sys.connections = "darwin", nil
	e := read(t.Context(), fstest.MapFS{}, sys)
	if e.OS.Conntrack != nil || !slices.Contains(e.NotVisible, "os.conntrack: only Linux is asked") {
		t.Errorf("%v, %q", e.OS.Conntrack, e.NotVisible)
	}
}

func FuzzTracked(f *testing.F) {
	f.Add("entries  clashres found\n00000010  00000000 00000000\n00000010  00000000 00000000\n")
	f.Add("entries\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseTracked(text); n < 0 || err != nil && n != 0 {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	})
}
