// Package http1 is an HTTP/1.1 server loop (RFC 9112) for handlers that take a whole request and give a whole reply: one
// goroutine a connection, one write a reply, and nothing allocated per request once a connection's buffers have grown. It
// bounds every size and every time, and refuses what two parsers could read as two different requests. It does no routing,
// no TLS of its own, no HTTP/2 and no streaming.
package http1
