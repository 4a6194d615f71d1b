// Package plain reads and writes JSON (RFC 8259) without reflection. A Scanner walks a text without copying it; Object and
// Append turn texts into the values that agents exchange, and back. All of it agrees with encoding/json: Object leaves to its
// caller what it does not take on, and what Append writes is what json.Marshal writes.
package plain
