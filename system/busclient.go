package system

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"toll/system/bus"
	"toll/wire/engine"
)

// A BusClient is the calling process of the bus benchmark: an engine whose cases are round trips to a worker. Close ends its
// connections.
type BusClient struct {
	carrier string
	at      string        // where the worker or the broker is; empty for inproc
	token   string        // what it shows; empty for none
	secure  *tls.Config   // of the direct carriers; nil for none
	own     bool          // a connection for each caller instead of one for all
	more    func() caller // makes another on the connection that was made last
	callers []caller
	closers []func() error

	publisher *nats.Conn // of the cases without a reply
}

// A caller makes one round trip: it sends body and returns what came back, valid until the next.
type caller func(ctx context.Context, body []byte) ([]byte, error)

// NewBusClient makes a client that shows a token, none when it is empty; own gives each caller a connection of its own.
func NewBusClient(carrier, at, token string, own bool) *BusClient {
	return &BusClient{carrier: carrier, at: at, token: token, own: own || carrier == SocketFloor}
}

// Secure has direct connections be encrypted; nil leaves them in the clear.
func (b *BusClient) Secure(c *tls.Config) { b.secure = c }

// callTimeout bounds a stretch's calls, and with them each of its calls.
const callTimeout = 30 * time.Second

// Bench sets a stretch up: rtt/128B and rtt/4KiB send so much and want the same back.
func (b *BusClient) Bench(ctx context.Context, q engine.Question) (engine.Work, error) {
	if size, ok := strings.CutPrefix(q.Case, oneWay); ok {
		return b.publishes(ctx, q, size)
	}
	size, err := busSize(q.Case)
	if err != nil {
		return engine.Work{}, err
	}
	// Each caller's context lives as long as the stretch, as that of an agent's task does.
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	for len(b.callers) < q.Callers {
		c, err := b.open(ctx)
		if err != nil {
			cancel()
			return engine.Work{}, fmt.Errorf("%s: caller %d: %w", b.carrier, len(b.callers)+1, err)
		}
		b.callers = append(b.callers, c)
	}
	bodies := make([][]byte, q.Callers)
	for i := range bodies {
		bodies[i] = make([]byte, size)
		for j := range bodies[i] {
			bodies[i][j] = byte(i + j)
		}
	}
	return engine.Work{
		Call: func(_ context.Context, caller, i int, _ *engine.Parts) error {
			body := bodies[caller]
			binary.LittleEndian.PutUint64(body, uint64(i)<<16|uint64(caller))
			got, err := b.callers[caller](ctx, body)
			if err != nil {
				return err
			}
			if !bytes.Equal(got, body) {
				return wrong(got, body)
			}
			return nil
		},
		Close: func() error { cancel(); return nil },
	}, nil
}

// wrong says what is wrong with a reply: a late one to another call carries that one's number.
func wrong(got, want []byte) error {
	if len(got) >= 8 && !bytes.Equal(got[:8], want[:8]) {
		return &engine.Failure{Kind: "wrong_id", Err: fmt.Errorf("a reply to call %x instead of %x", got[:8], want[:8])}
	}
	return &engine.Failure{Kind: "wrong_content", Err: fmt.Errorf("%d bytes, not the %d that were sent", len(got), len(want))}
}

func busSize(name string) (int, error) {
	switch name {
	case "rtt/128B":
		return 128, nil
	case "rtt/4KiB":
		return 4 << 10, nil
	}
	return 0, fmt.Errorf("case %q is none of the benchmark bus; want rtt/128B, rtt/4KiB or one-way/128B", name)
}

// Close ends the connections.
func (b *BusClient) Close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	return errors.Join(errs...)
}

func (b *BusClient) closing(f func() error) { b.closers = append(b.closers, f) }

// open makes one caller more, on a connection of its own or on that of the first.
func (b *BusClient) open(ctx context.Context) (caller, error) {
	if b.more != nil && !b.own {
		return b.more(), nil
	}
	var err error
	switch b.carrier {
	case SocketFloor:
		b.more, err = b.openFloor(ctx)
	case NATSGo:
		b.more, err = b.openNATSGo()
	case Inproc:
		b.more, err = b.openInproc(ctx)
	default:
		b.more, err = b.openLink(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b.more(), nil
}

// openLink connects as agents' processes do. What it returns makes callers that share the connection.
func (b *BusClient) openLink(ctx context.Context) (func() caller, error) {
	l, err := b.Link(ctx)
	return func() caller { return onLink(l) }, err
}

// onLink makes a caller that uses its call's memory again and again.
func onLink(l bus.Link) caller {
	c := bus.NewCall(busNode, "client", "ping")
	return func(ctx context.Context, body []byte) ([]byte, error) {
		c.Body = body
		err := l.Call(ctx, c)
		return c.Answer, err
	}
}

// Link returns a connection to the worker of its own, of a carrier that has links.
func (b *BusClient) Link(ctx context.Context) (bus.Link, error) {
	l, err := b.link(ctx)
	if err == nil {
		b.closing(l.Close)
	}
	return l, err
}

func (b *BusClient) link(ctx context.Context) (bus.Link, error) {
	switch b.carrier {
	case Direct, DirectMailbox:
		if strings.HasPrefix(b.at, "tls://") && b.secure == nil {
			return nil, fmt.Errorf("connecting to %s: who signs its certificate is not known; name a file of authorities", b.at)
		}
		return bus.DialDirect(ctx, strings.Replace(b.at, "tls://", "tcp://", 1), b.secure, busConfig(b.token))
	case Routed:
		return bus.DialDirect(ctx, b.at, nil, busConfig(b.token))
	case ZMTP:
		return bus.DialZMTP(ctx, b.at, nil, busConfig(b.token))
	case NATS:
		n, err := bus.DialNATS(ctx, bus.NATSConfig{URL: natsURL(b.at)}, busConfig(b.token))
		if err != nil {
			return nil, err
		}
		b.closing(n.Close)
		return n.Link(ctx, busNode)
	case ZMTPProxy:
		in, out, err := proxyAddrs(b.at)
		if err != nil {
			return nil, err
		}
		p, err := bus.DialPubSub(ctx, in, out, nil, busConfig(b.token))
		if err != nil {
			return nil, err
		}
		b.closing(p.Close)
		return p.Link(ctx, busNode, busConfig(b.token))
	}
	return nil, fmt.Errorf("carrier %q: want one of %s", b.carrier, strings.Join(Carriers(), ", "))
}

// openFloor makes callers that write to a socket and read as much back: nothing can be faster on it.
func (b *BusClient) openFloor(ctx context.Context) (func() caller, error) {
	network, addr := "tcp", strings.TrimPrefix(b.at, "tcp://")
	if path, ok := strings.CutPrefix(b.at, "unix:"); ok {
		network, addr = "unix", path
	}
	nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	b.closing(nc.Close)
	var buf []byte
	return func() caller {
		return func(_ context.Context, body []byte) ([]byte, error) {
			if len(buf) != len(body) {
				buf = make([]byte, len(body))
			}
			if _, err := nc.Write(body); err != nil {
				return nil, err
			}
			_, err := io.ReadFull(nc, buf)
			return buf, err
		}
	}, nil
}

// openNATSGo makes callers that use NATS' own client and nothing of ours.
func (b *BusClient) openNATSGo() (func() caller, error) {
	nc, err := nats.Connect(natsURL(b.at), natsToken(b.token)...)
	if err != nil {
		return nil, err
	}
	b.closing(func() error { nc.Close(); return nil })
	return func() caller {
		return func(ctx context.Context, body []byte) ([]byte, error) {
			m, err := nc.RequestWithContext(ctx, "bench."+busNode, body)
			if err != nil {
				return nil, err
			}
			return m.Data, nil
		}
	}, nil
}
