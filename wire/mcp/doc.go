// Package mcp is a server of the Model Context Protocol over streamable HTTP and over a byte stream such as stdio, for the
// revisions 2026-07-28 (stateless) and 2025-11-25, 2025-06-18, 2025-03-26 and 2024-11-05 (by an initialize handshake).
//
// The server belongs to no HTTP server: Answer takes a request's head and body and fills in a reply, and whoever owns the
// connection says how a stream of events begins. Handler is that for net/http. A call of a tool that answers at once is
// decoded by one pass over its bytes and its reply is appended to memory that the caller keeps, so nothing is allocated.
//
// Not offered: resumable streams (Last-Event-ID), the deprecated HTTP+SSE transport of 2024-11-05, authorization, and
// tasks, which are an extension.
package mcp
