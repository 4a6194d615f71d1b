// Package http1 is an HTTP/1.1 server loop (RFC 9112) for handlers that take a whole request and give a whole reply: one
// goroutine a connection, one write a reply, and nothing allocated per request once a connection's buffers have grown. It
// bounds every size and every time, and refuses what two parsers could read as two different requests. A reply may also be
// a stream of chunks, a handler that waits may watch for the client's end, and one that takes too long may be left behind. It does no routing, no TLS of its own and no
// HTTP/2.
package http1
