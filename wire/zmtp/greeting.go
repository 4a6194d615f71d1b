package zmtp

import (
	"bytes"
	"fmt"
)

// The greeting, RFC 37 "Version Negotiation": signature, version, mechanism, role, filler.
const (
	greetingSize  = 64
	signatureSize = 10
	mechanismAt   = 12
	mechanismSize = 20
	asServerAt    = 32
)

func appendGreeting(dst []byte, mechanism string, server bool) []byte {
	var g [greetingSize]byte
	g[0], g[9] = 0xff, 0x7f
	g[10], g[11] = 3, 1
	copy(g[mechanismAt:mechanismAt+mechanismSize], mechanism)
	if server {
		g[asServerAt] = 1
	}
	return append(dst, g[:]...)
}

// greeting is what a peer said of itself.
type greeting struct {
	minor     byte
	mechanism string
	server    bool
}

// checkSignature tells a peer that does not speak ZMTP from its first bytes. The eight between are the length that ZMTP 1
// would read there, so they are anything.
func checkSignature(g []byte) error {
	if g[0] != 0xff || g[9]&1 != 1 {
		return fmt.Errorf("%w: signature % x, want ff … 7f", ErrProtocol, g[:signatureSize])
	}
	return nil
}

func parseGreeting(g []byte) (greeting, error) {
	if err := checkSignature(g); err != nil {
		return greeting{}, err
	}
	if g[10] < 3 {
		return greeting{}, fmt.Errorf("%w: version %d.%d, want 3.0 or later", ErrProtocol, g[10], g[11])
	}
	name, rest, _ := bytes.Cut(g[mechanismAt:mechanismAt+mechanismSize], []byte{0})
	if len(bytes.Trim(rest, "\x00")) > 0 {
		return greeting{}, fmt.Errorf("%w: mechanism %.20q is not padded with zeros", ErrProtocol, g[mechanismAt:mechanismAt+mechanismSize])
	}
	minor := g[11]
	if g[10] > 3 {
		minor = 1
	}
	return greeting{minor: minor, mechanism: string(name), server: g[asServerAt]&1 == 1}, nil
}
