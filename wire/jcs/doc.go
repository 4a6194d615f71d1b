// Package jcs writes the canonical form of JSON (RFC 8785). It has a typed appender for objects whose shape is known, which
// allocates nothing, and a strict canonicalizer for any document: what two parsers could read as two different documents
// (duplicate names, lone surrogates, malformed UTF-8, numbers beyond a float64) is an error with a code and a byte offset,
// never a guess. It has no opinion on content: an integer above 2^53 is legal here and rounds, as the RFC says; refusing it is
// a schema's business.
package jcs
