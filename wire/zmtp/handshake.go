package zmtp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// A Type is a socket's type, spelt as on the wire.
type Type string

// The types of sockets.
const (
	Dealer Type = "DEALER"
	Router Type = "ROUTER"
	Pub    Type = "PUB"
	Sub    Type = "SUB"
	XPub   Type = "XPUB"
	XSub   Type = "XSUB"
)

// speaksWith lists the types that a type may be connected with.
func (t Type) speaksWith() []string {
	switch t {
	case Dealer:
		return []string{"REP", "DEALER", "ROUTER"}
	case Router:
		return []string{"REQ", "DEALER", "ROUTER"}
	case Pub, XPub:
		return []string{"SUB", "XSUB"}
	case Sub, XSub:
		return []string{"PUB", "XPUB"}
	}
	return nil
}

// Plain is the credential of the mechanism PLAIN. It travels in the clear: use it over TLS or not at all.
type Plain struct {
	User, Password string                            // what a connecting socket shows
	Accept         func(user, password string) error // asked by a listening socket; its error's text goes to the peer
}

// ErrRefused is for a peer that answered the handshake with an error; it holds what the peer said.
var ErrRefused = errors.New("zmtp: refused by the peer")

// handshake agrees with the peer on nc and returns what it says of itself. listening is our role.
func (c *Config) handshake(nc net.Conn, in *frameReader, listening bool) (greeting, metadata, error) {
	if err := nc.SetDeadline(time.Now().Add(c.HandshakeTimeout)); err != nil {
		return greeting{}, metadata{}, err
	}
	mechanism := "NULL"
	if c.Plain != nil {
		mechanism = "PLAIN"
	}
	if _, err := nc.Write(appendGreeting(nil, mechanism, listening && c.Plain != nil)); err != nil {
		return greeting{}, metadata{}, fmt.Errorf("sending the greeting: %w", err)
	}
	g, err := readGreeting(nc)
	if err != nil {
		return g, metadata{}, err
	}
	if g.mechanism != mechanism {
		return g, metadata{}, fmt.Errorf("%w: the peer's mechanism is %.20q, ours %s", ErrProtocol, g.mechanism, mechanism)
	}
	h := &handshaking{Config: c, nc: nc, in: in}
	var m metadata
	switch {
	case c.Plain == nil:
		m, err = h.null()
	case listening:
		m, err = h.plainServer()
	default:
		m, err = h.plainClient()
	}
	if err == nil && !slices.Contains(c.Type.speaksWith(), m.socket) {
		err = fmt.Errorf("%w: a %s socket can't be connected with a %.20q socket", ErrProtocol, c.Type, m.socket)
		h.refuse(err)
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	return g, m, err
}

// readGreeting reads a peer's greeting; one that does not speak ZMTP is told from its first ten bytes.
func readGreeting(nc net.Conn) (greeting, error) {
	var g [greetingSize]byte
	for at, end := 0, signatureSize; at < greetingSize; at, end = end, greetingSize {
		if _, err := io.ReadFull(nc, g[at:end]); err != nil {
			return greeting{}, fmt.Errorf("reading the greeting: %w", err)
		}
		if err := checkSignature(g[:]); err != nil {
			return greeting{}, err
		}
	}
	return parseGreeting(g[:])
}

// handshaking is a handshake behind the greeting.
type handshaking struct {
	*Config
	nc net.Conn
	in *frameReader
}

func (h *handshaking) send(name string, data ...[]byte) error {
	if _, err := h.nc.Write(appendCommand(nil, name, data...)); err != nil {
		return fmt.Errorf("sending %s: %w", name, err)
	}
	return nil
}

// receive reads the command want.
func (h *handshaking) receive(want string) ([]byte, error) {
	flags, body, err := h.in.next()
	if err != nil {
		return nil, fmt.Errorf("waiting for %s: %w", want, err)
	}
	if flags&flagCommand == 0 {
		return nil, fmt.Errorf("%w: a message where %s was due", ErrProtocol, want)
	}
	name, data, err := parseCommand(body)
	if err != nil {
		return nil, err
	}
	switch {
	case string(name) == want:
		return data, nil
	case string(name) == "ERROR":
		reason, _, _ := cut8(data)
		return nil, fmt.Errorf("%w: %.255q", ErrRefused, reason)
	}
	return nil, fmt.Errorf("%w: command %.20q where %s was due", ErrProtocol, name, want)
}

// refuse tells the peer why; whether it gets to know does not matter any more.
func (h *handshaking) refuse(err error) {
	reason := err.Error()
	reason = reason[:min(len(reason), 255)]
	h.send("ERROR", append([]byte{byte(len(reason))}, reason...))
}

func (h *handshaking) own() []byte {
	return metadata{socket: string(h.Type), identity: h.Identity}.append(nil)
}

func (h *handshaking) metadataOf(command string) (metadata, error) {
	data, err := h.receive(command)
	if err != nil {
		return metadata{}, err
	}
	return parseMetadata(data)
}

func (h *handshaking) null() (metadata, error) {
	if err := h.send("READY", h.own()); err != nil {
		return metadata{}, err
	}
	return h.metadataOf("READY")
}

func (h *handshaking) plainClient() (metadata, error) {
	hello := append([]byte{byte(len(h.Plain.User))}, h.Plain.User...)
	hello = append(append(hello, byte(len(h.Plain.Password))), h.Plain.Password...)
	if err := h.send("HELLO", hello); err != nil {
		return metadata{}, err
	}
	if _, err := h.receive("WELCOME"); err != nil {
		return metadata{}, err
	}
	if err := h.send("INITIATE", h.own()); err != nil {
		return metadata{}, err
	}
	return h.metadataOf("READY")
}

func (h *handshaking) plainServer() (metadata, error) {
	data, err := h.receive("HELLO")
	if err != nil {
		return metadata{}, err
	}
	user, password, err := parseHello(data)
	if err != nil {
		return metadata{}, err
	}
	if err := h.Plain.Accept(user, password); err != nil {
		h.refuse(err)
		return metadata{}, fmt.Errorf("user %.40q: %w", user, err)
	}
	if err := h.send("WELCOME"); err != nil {
		return metadata{}, err
	}
	m, err := h.metadataOf("INITIATE")
	if err != nil {
		return m, err
	}
	return m, h.send("READY", h.own())
}
