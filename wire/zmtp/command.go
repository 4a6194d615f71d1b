package zmtp

import (
	"encoding/binary"
	"fmt"
)

// A command's body is its name, length first, and data.
func appendCommand(dst []byte, name string, data ...[]byte) []byte {
	n := 1 + len(name)
	for _, d := range data {
		n += len(d)
	}
	dst = appendHeader(dst, flagCommand, n)
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	for _, d := range data {
		dst = append(dst, d...)
	}
	return dst
}

func parseCommand(body []byte) (name, data []byte, err error) {
	if len(body) == 0 || body[0] == 0 || len(body) < 1+int(body[0]) {
		return nil, nil, fmt.Errorf("%w: command of %d bytes has no whole name", ErrProtocol, len(body))
	}
	n := 1 + int(body[0])
	return body[1:n], body[n:], nil
}

// metadata is what a peer says of itself in READY and INITIATE. Names are case-insensitive; others than these are allowed.
type metadata struct {
	socket   string
	identity string
}

func (m metadata) append(dst []byte) []byte {
	dst = appendProperty(dst, "Socket-Type", m.socket)
	if m.identity != "" {
		dst = appendProperty(dst, "Identity", m.identity)
	}
	return dst
}

func appendProperty(dst []byte, name, value string) []byte {
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

func parseMetadata(data []byte) (m metadata, err error) {
	for len(data) > 0 {
		name, rest, ok := cut8(data)
		if !ok || len(name) == 0 || len(rest) < 4 {
			return m, fmt.Errorf("%w: metadata ends within a property's name", ErrProtocol)
		}
		size := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; uint64(size) > uint64(len(rest)) {
			return m, fmt.Errorf("%w: property %.40q declares %d bytes, %d are there", ErrProtocol, name, size, len(rest))
		}
		switch lower(name) {
		case "socket-type":
			m.socket = string(rest[:size])
		case "identity":
			m.identity = string(rest[:size])
		}
		data = rest[size:]
	}
	if len(m.identity) > maxIdentity || m.identity != "" && m.identity[0] == 0 {
		return m, fmt.Errorf("%w: identity of %d bytes; want at most %d, the first not zero", ErrProtocol, len(m.identity), maxIdentity)
	}
	return m, nil
}

const maxIdentity = 255

func lower(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		out[i] = c
	}
	return string(out)
}

// cut8 splits off a text whose length is its first byte.
func cut8(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], true
}

// parseHello reads PLAIN's HELLO: name and password.
func parseHello(data []byte) (user, password string, err error) {
	u, rest, ok := cut8(data)
	if !ok {
		return "", "", fmt.Errorf("%w: HELLO ends within the user's name", ErrProtocol)
	}
	p, rest, ok := cut8(rest)
	if !ok || len(rest) > 0 {
		return "", "", fmt.Errorf("%w: HELLO does not end with the password", ErrProtocol)
	}
	return string(u), string(p), nil
}
