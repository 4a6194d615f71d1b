// Package zap is the ZAP message format and two ways to frame it on a connection: ZAP-HTTP (HTTP's request and reply in a
// frame, one exchange at a time) and ZAP-RPC (calls by number, many at a time). A [Codec] turns a Go struct into a message
// and back.
//
// The format has no schema, no field tags and no types on the wire: an object is a fixed section, each field at an offset
// both sides know, followed by what its slots point to. Reading is strict: an offset or a length that leaves the message is
// an error, where other readers take zero for it and hide a truncation.
package zap
