// Package gateway puts agents behind HTTP: routes that call, cast or stream, with limits that are on by default, one
// deadline from the request into the agent, and mutual TLS whose identities are read once per connection. Requests over
// HTTP/1.1 are answered by the loop of wire/http1, HTTP/2 and WebSocket by net/http on the same port.
package gateway
