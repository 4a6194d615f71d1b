// Package mux shares one connection among many callers. Each call has a slot with a generation, so that a reply that comes
// too late reaches nobody; requests that are made while another is being written leave with it in one write; and a caller
// that waits reads the connection itself when nobody else does, so that a call alone costs a write and a read and no
// hand-over to another goroutine. What a frame looks like is up to a [Framing]. It does not dial, connect again or repeat a
// call: when the connection dies, every call on it fails with the reason.
package mux
