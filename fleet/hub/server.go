package hub

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Server is an embedded NATS server with JetStream.
type Server struct{ server *server.Server }

// ServerConfig says where a server listens and whom it lets in.
type ServerConfig struct {
	Addr  string // host:port; an empty host is 127.0.0.1, an empty or zero port a free one
	Store string // folder of its streams
	Token string // what clients must know, unless NKeys or TLS say who they are
	NKeys []string
	TLS   *tls.Config // nil: in the clear
}

// StartServer starts one in this process. It can be connected to when StartServer returns.
func StartServer(c ServerConfig) (*Server, error) {
	host, port := "127.0.0.1", server.RANDOM_PORT
	if c.Addr != "" {
		h, p, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return nil, fmt.Errorf("listening at %s: %w", c.Addr, err)
		}
		if h != "" {
			host = h
		}
		n, err := strconv.Atoi(p)
		if err != nil {
			return nil, fmt.Errorf("listening at %s: port %q is not a number", c.Addr, p)
		}
		if n != 0 {
			port = n
		}
	}
	o := &server.Options{
		Host: host, Port: port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: c.Store, MaxPayload: maxPayload, WriteDeadline: 10 * time.Second,
		PingInterval: 5 * time.Second, MaxPingsOut: 2, DisableShortFirstPing: true, AuthTimeout: 5, TLSTimeout: 5,
	}
	// A worker's own file is the truth: what a power cut takes from the stream is asked for again. So it need not be on disk
	// before it is confirmed.
	switch {
	case len(c.NKeys) > 0:
		for _, k := range c.NKeys {
			o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: k})
		}
	default:
		o.Authorization = c.Token
	}
	if c.TLS != nil {
		o.TLSConfig, o.TLS, o.TLSVerify = c.TLS, true, c.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("the NATS server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, errors.New("the NATS server does not listen after 10s; is the address taken?")
	}
	return &Server{s}, nil
}

// maxPayload is what the largest message takes.
const maxPayload = 1<<20 + 4096

// Addr is where it listens.
func (s *Server) Addr() string { return s.server.Addr().String() }

// Close stops the server and waits until it has.
func (s *Server) Close() error {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}
