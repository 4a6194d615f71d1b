// Package zap is the ZAP message format and two ways to frame it on a connection: ZAP-HTTP (HTTP's request and reply in a
// frame, one exchange at a time) and ZAP-RPC (calls by number, many at a time, over package mux). A [Codec] turns a Go
// struct into a message and back; a [Builder] and an [Object] do so field by field. It does not dial, keep pools of
// connections, route requests or speak the promises and streams of ZAP-RPC.
//
// The format has no schema, no field tags and no types on the wire: an object is a fixed section, each field at an offset
// both sides know, followed by what its slots point to. Reading is strict: an offset or a length that leaves the message is
// an error. The format's own readers take zero for it, which makes a truncated or a forged message look like one that says
// nothing; [ParseLenient] and Codec.Lenient do as they do, for peers that rely on it.
package zap
