package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// An Access is how a NATS server is reached.
type Access struct {
	URL  string // nats://[token@]host:port, several with commas between
	Seed string // file with the seed of an nkey; empty for none
	TLS  *tls.Config

	Server *Server // in this process: it is spoken to without a socket; nil for none
}

// A line is a connection to a NATS server.
type line struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// How often the other side of a line is asked whether it is there: of one that nothing may come over for a while; of one that is
// looked after otherwise, or lies within this process.
const (
	pingQuiet  = 3 * time.Second
	pingRarely = 2 * time.Minute
)

// dial connects; the server must answer within so long. Later it is tried again for as long as the line is open.
func dial(ctx context.Context, a Access, name string, first, pings time.Duration) (*line, error) {
	options := []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.PingInterval(pings), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.ReconnectBufSize(-1), // what can't be sent is not kept: it would be old when it can
		nats.NoEcho(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // what a slow reader lost is told again
	}
	if a.TLS != nil && a.Server == nil { // within a process nothing is encrypted
		options = append(options, nats.Secure(a.TLS))
	}
	if a.Seed != "" {
		o, err := nats.NkeyOptionFromSeed(a.Seed)
		if err != nil {
			return nil, fmt.Errorf("the nkey in %s: %w", a.Seed, err)
		}
		options = append(options, o)
	}
	if a.Server != nil {
		options = append(options, nats.InProcessServer(a.Server.server))
	}
	until := time.Now().Add(first)
	for {
		nc, err := nats.Connect(a.URL, options...)
		if err == nil {
			js, err := jetstream.New(nc)
			if err != nil {
				nc.Close()
				return nil, err
			}
			return &line{nc, js}, nil
		}
		if why := refused(a, err); why != "" {
			return nil, fmt.Errorf("connecting to NATS: %s: %w", why, err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("connecting to NATS: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connecting to NATS: %w", ctx.Err())
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// probe finds out whether the server is still at the other end, and connects anew when it does not answer in time.
func (l *line) probe() {
	if err := l.nc.FlushTimeout(probeFor); errors.Is(err, nats.ErrTimeout) {
		l.nc.ForceReconnect() // which fails when the line is closed, and then nobody needs it
	}
}

// A line over which nothing came for so long is probed, and given up when there is no answer within so long.
const (
	probeAfter = 4 * time.Second
	probeFor   = 3 * time.Second
)

// refused says why the two sides don't take each other; empty where it may help to try again.
func refused(a Access, err error) string {
	var alert tls.AlertError
	switch unknown := new(tls.CertificateVerificationError); {
	case errors.Is(err, nats.ErrAuthorization) && a.Seed != "":
		return "the server does not let this nkey in; its public key must be in the coordinator's --nkeys"
	case errors.Is(err, nats.ErrAuthorization):
		return "the server does not let us in: wrong token, or it wants an nkey (--nkey)"
	case errors.As(err, &unknown):
		return "the server's certificate is not of an authority that we know (--nats-ca), or of another host"
	case a.TLS == nil || len(a.TLS.Certificates) == 0:
		if errors.As(err, &alert) || errors.Is(err, nats.ErrTLS) || remoteAlert(err) {
			return "the server wants a certificate of ours (--nats-cert, --nats-key)"
		}
	case errors.As(err, &alert) || errors.Is(err, nats.ErrTLS) || remoteAlert(err):
		return "the server does not take our certificate; its authority must be in the server's --nats-ca"
	}
	return ""
}

// remoteAlert reports whether the other side ended the handshake, which crypto/tls says as an error of the connection.
func remoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// The subjects. Before a worker knows its run, it is spoken to by its own name, and asks any run or the one it was told of.
const subjects = "toll.v1."

func helloSubject(run string) string {
	if run == "" {
		run = "any"
	}
	return subjects + "hello." + run
}
func upSubject(run string) string  { return subjects + run + ".up" }
func allSubject(run string) string { return subjects + run + ".all" }
func toSubject(id string) string   { return subjects + "to." + id }
func sliceSubject(run, id string, n int) string {
	return fmt.Sprintf("%s%s.slice.%s.%d", subjects, run, id, n)
}

// streamName is the stream of a run's slices; bucketName the bucket that holds what coordinators save.
func streamName(run string) string { return "toll-" + run }

const bucketName = "toll-runs"

// CheckName returns what is wrong with a run's or a worker's name.
func CheckName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("name %q: expected 1 to 64 letters, digits, - and _", name)
	}
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return fmt.Errorf("name %q: expected 1 to 64 letters, digits, - and _", name)
		}
	}
	return nil
}

// NewKey draws an nkey: the seed, which its owner keeps, and the public key, by which the server knows it.
func NewKey() (seed, public string, err error) {
	k, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	s, err := k.Seed()
	if err != nil {
		return "", "", err
	}
	public, err = k.PublicKey()
	return string(s), public, err
}

// CheckKey reports whether a text is a user's public nkey.
func CheckKey(public string) bool { return nkeys.IsValidPublicUserKey(public) }

// A monotonic clock begins with its first reading.
type monotonic struct{ base time.Time }

func newMonotonic() monotonic              { return monotonic{time.Now()} }
func (m monotonic) now() time.Duration     { return time.Since(m.base) }
func (m monotonic) wall() time.Duration    { return time.Now().Round(0).Sub(m.base.Round(0)) }
func (m monotonic) stepped() time.Duration { return m.wall() - m.now() }
