// Package zmtp speaks ZMTP 3.1 (ZeroMQ's RFC 37) over connections: the sockets DEALER, ROUTER, PUB, SUB, XPUB and XSUB with
// the mechanisms NULL and PLAIN, and a proxy between two of them. It works with libzmq on the other side. A frame's declared
// length is checked before anything is made to hold it, what waits to be written is bounded in bytes, and a peer that breaks
// the protocol, stalls in the handshake or stops to answer heartbeats costs its own connection and nothing else. It has no
// CURVE (use TLS on the connection), no REQ, REP, PUSH or PULL, and no in-process or multicast transport.
package zmtp
