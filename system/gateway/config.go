package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"toll/wire/envelope"
)

// An Asker reaches agents by name. A failure of its methods carries an envelope.Code.
type Asker interface {
	// Call sends m and waits for the agent's answer until ctx ends.
	Call(ctx context.Context, m *envelope.Message) (any, error)
	// Tell sends m and waits only until it is in the agent's mailbox.
	Tell(ctx context.Context, m *envelope.Message) error
	// Stream sends m and calls emit with each part of the answer, in order, until the agent ends it, emit fails or ctx ends.
	Stream(ctx context.Context, m *envelope.Message, emit func(v any) error) error
}

// A Lender is an Asker whose agents can run on their caller's goroutine. Its Lend is Call, but that it may return kept false:
// free has been called, or will be, on another goroutine with the answer, and the caller's goroutine has nothing more to do.
// When ctx ends free is called whatever the agent does.
type Lender interface {
	Lend(ctx context.Context, m *envelope.Message, free func(v any, err error)) (v any, err error, kept bool)
}

// Modes of a route.
const (
	Call   = "call"   // waits for the agent's reply
	Cast   = "cast"   // answers 202 once the message is in the mailbox
	Stream = "stream" // server-sent events, or a WebSocket if the client asks for one
)

// A Route leads requests to an agent.
type Route struct {
	Method   string        // GET, POST, …
	Path     string        // such as /v1/agents/{name}; a {segment} becomes a key of the message's payload
	Agent    string        // the agent's name; may itself hold one {segment}
	Mode     string        // Call when empty
	Type     string        // of the message; the header X-Civitas-Type goes before it; http.request when empty
	Timeout  time.Duration // of a whole call; Config.Timeout when 0
	InFlight int           // requests that may be on their way at a time; Config.InFlight when 0

	// Within is how long a call may take, its wait for the agent included, while more calls come than are answered: those
	// that would take longer are refused at once. It must be longer than the agent needs. 0 lets InFlight of them wait.
	Within time.Duration
}

// Config bounds a gateway; each zero value means its default.
type Config struct {
	Routes []Route
	Asker  Asker

	MaxHead     int           // bytes of a request's head; 32 KiB
	MaxBody     int           // bytes of a body; 1 MiB
	InFlight    int           // requests on their way over all routes; 64 per core, at least 256
	Connections int           // open at a time; 10,000
	Timeout     time.Duration // of a call; 30 s
	HeadTimeout time.Duration // for a request's head, and for a TLS handshake; 10 s
	ReadTimeout time.Duration // for a whole request; 30 s
	IdleTimeout time.Duration // between requests; 2 min

	StreamIdle time.Duration // without a part of the answer; 5 min
	StreamMost time.Duration // of a whole stream; 1 h

	Rate  float64 // requests per second of one client; 0 does not limit
	Burst int     // that a client may make at once; 2 × Rate when 0

	TLS *TLS // nil serves in the clear

	// Proxies are networks whose Client-Cert header (RFC 9440) is believed. From anywhere else it is ignored.
	Proxies []netip.Prefix

	// NetHTTP answers HTTP/1.1 by net/http as well, instead of our loop.
	NetHTTP bool

	Name    string // in the OpenAPI document; "toll gateway" when empty
	Version string
}

func (c Config) withDefaults() Config {
	c.MaxHead = cmp.Or(c.MaxHead, 32<<10)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.InFlight = cmp.Or(c.InFlight, max(64*runtime.GOMAXPROCS(0), 256))
	c.Connections = cmp.Or(c.Connections, 10_000)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.HeadTimeout = cmp.Or(c.HeadTimeout, 10*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 30*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 2*time.Minute)
	c.StreamIdle = cmp.Or(c.StreamIdle, 5*time.Minute)
	c.StreamMost = cmp.Or(c.StreamMost, time.Hour)
	c.Burst = cmp.Or(c.Burst, max(int(2*c.Rate), 1))
	c.Name = cmp.Or(c.Name, "toll gateway")
	return c
}

func (c Config) check() error {
	switch {
	case c.Asker == nil:
		return errors.New("gateway: no asker")
	case len(c.Routes) == 0:
		return errors.New("gateway: no routes")
	case c.Rate < 0:
		return fmt.Errorf("gateway: rate %v; expected 0 or more", c.Rate)
	}
	return nil
}
