package mcp

import (
	"encoding/json"
	"fmt"
)

// A revision is one of the protocol's, in their order.
type revision uint8

const (
	rev20241105 revision = iota + 1
	rev20250326
	rev20250618
	rev20251125
	rev20260728
)

// revisions returns the names of all, the latest first.
func revisions() []string {
	return []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// revisionOf returns the named revision, 0 if there is none.
func revisionOf(name []byte) revision {
	switch string(name) {
	case "2026-07-28":
		return rev20260728
	case "2025-11-25":
		return rev20251125
	case "2025-06-18":
		return rev20250618
	case "2025-03-26":
		return rev20250326
	case "2024-11-05":
		return rev20241105
	}
	return 0
}

// String returns the revision's date.
func (r revision) String() string {
	if r < rev20241105 || r > rev20260728 {
		return fmt.Sprintf("revision(%d)", uint8(r))
	}
	return revisions()[rev20260728-r]
}

// modern reports whether requests carry what they need in _meta, so that there is no handshake and no session.
func (r revision) modern() bool { return r >= rev20260728 }

// batches reports whether a message may be an array of messages.
func (r revision) batches() bool { return r <= rev20250326 }

// structured reports whether a tool's result may be structured.
func (r revision) structured() bool { return r >= rev20250618 }

// negotiate answers the version that an initialize request wants: that one, or the latest that has such a request.
func negotiate(wanted []byte) revision {
	if r := revisionOf(wanted); r != 0 && !r.modern() {
		return r
	}
	return rev20251125
}

func unsupportedVersion(requested []byte) *Error {
	data, err := json.Marshal(map[string]any{"supported": revisions(), "requested": clip(requested)})
	if err != nil {
		panic("the revisions as JSON: " + err.Error())
	}
	return &Error{Code: CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: data, status: 400}
}
