package suite

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A work is what a case of the benchmark transport asks of a contender: one call of one operation.
type work struct {
	name  string
	note  int  // bytes of the note
	cold  bool // every call connects anew and, over MCP with sessions, begins a session
	blob  int  // when > 0, a result of so many bytes
	tools int  // when > 0, a list of so many tools
	churn bool // every call begins a session and leaves it behind
	empty bool // the published table's empty read
}

// emptyRead is the case that the published transport table measured: a read without input that gives an empty list.
const emptyRead = "read/empty"

// abandoned is the case in which every call begins a session, calls once and leaves it behind, and churnIdle after how long
// the servers are told to forget such a session. It is longer than a round's calls take.
const (
	abandoned = "session/abandoned"
	churnIdle = 6 * time.Second
)

// transportWork reads a case of the benchmark transport.
func transportWork(name string) (work, error) {
	w := work{name: name}
	kind, size, _ := strings.Cut(name, "/")
	var err error
	switch kind {
	case "call", "cold":
		w.cold = kind == "cold"
		w.note, err = sizeOf(size, 64<<10)
	case "result":
		if w.blob, err = sizeOf(size, 1<<20); err == nil && w.blob == 0 {
			err = fmt.Errorf("size 0")
		}
	case "tools_list":
		if w.tools, err = strconv.Atoi(size); err == nil && (w.tools < 1 || w.tools > maxTools) {
			err = fmt.Errorf("%d tools: want 1 to %d", w.tools, maxTools)
		}
	case "session":
		if w.churn = name == abandoned; !w.churn {
			err = fmt.Errorf("it is none of them")
		}
	default:
		if w.empty = name == emptyRead; !w.empty {
			err = fmt.Errorf("it is none of them")
		}
	}
	if err != nil {
		return w, fmt.Errorf("case %q: %w; expected one such as call/32B, call/4KiB, cold/32B, result/1MiB or tools_list/50", name, err)
	}
	return w, nil
}

const maxTools = 1000

// sizeOf parses a size such as 32B, 4KiB or 1MiB.
func sizeOf(text string, most int) (int, error) {
	for _, u := range []struct {
		suffix string
		bytes  int
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"B", 1}} {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n <= most/u.bytes {
			return n * u.bytes, nil
		}
		break
	}
	return 0, fmt.Errorf("size %q: want one such as 32B or 4KiB, up to %d KiB", text, most>>10)
}
