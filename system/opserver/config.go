package opserver

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Config says where and within which bounds a server answers. Its zero value listens on a free port of the loopback
// address.
type Config struct {
	Addr string // host:port; an empty host means 127.0.0.1, so that only a spelled-out address reaches further
	Unix string // path of a socket to listen on instead

	MaxBody  int64 // largest request body; 0 = 1 MiB
	MaxHead  int   // largest request head, nearly; 0 = 64 KiB
	MaxConns int   // connections at a time, the next are closed at once; 0 = 4096

	HeadTimeout  time.Duration // for a request's head; 0 = 10 s
	ReadTimeout  time.Duration // for a whole request; 0 = 30 s
	WriteTimeout time.Duration // for a reply; 0 = 30 s
	IdleTimeout  time.Duration // between requests; 0 = 2 min

	H2C bool // HTTP/2 without TLS beside HTTP/1.1, on net/http

	Reply []byte        // what the null target answers: a whole HTTP reply; empty = one that says {}
	Delay time.Duration // for which the null target keeps a core busy before it answers: a known cost
}

func (c Config) withDefaults() Config {
	orDuration := func(d *time.Duration, byDefault time.Duration) {
		if *d == 0 {
			*d = byDefault
		}
	}
	orDuration(&c.HeadTimeout, 10*time.Second)
	orDuration(&c.ReadTimeout, 30*time.Second)
	orDuration(&c.WriteTimeout, 30*time.Second)
	orDuration(&c.IdleTimeout, 2*time.Minute)
	if c.MaxBody == 0 {
		c.MaxBody = 1 << 20
	}
	if c.MaxHead == 0 {
		c.MaxHead = 64 << 10
	}
	if c.MaxConns == 0 {
		c.MaxConns = 4096
	}
	if len(c.Reply) == 0 {
		c.Reply = []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
	}
	return c
}

// check refuses bounds that mean nothing.
func (c Config) check() error {
	if c.Addr != "" && c.Unix != "" {
		return fmt.Errorf("both an address, %s, and a socket, %s", c.Addr, c.Unix)
	}
	least := min(c.MaxBody, int64(c.MaxHead), int64(c.MaxConns),
		int64(c.HeadTimeout), int64(c.ReadTimeout), int64(c.WriteTimeout), int64(c.IdleTimeout))
	if least < 0 {
		return fmt.Errorf("a bound below zero, %d", least)
	}
	return nil
}

// Listen opens the listener that cfg describes. A socket appears with mode 0600 in a folder that no other user can write
// to, is refused to other users' processes even so, and goes away when the listener is closed.
func Listen(cfg Config) (net.Listener, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	l, err := listen(cfg)
	if err != nil {
		return nil, err
	}
	return &bounded{Listener: l, taken: make(chan struct{}, cfg.MaxConns)}, nil
}

func listen(cfg Config) (net.Listener, error) {
	if cfg.Unix != "" {
		return listenUnix(cfg.Unix)
	}
	host, port := "", "0"
	if cfg.Addr != "" {
		var err error
		if host, port, err = net.SplitHostPort(cfg.Addr); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// newHTTP returns a net/http server with cfg's bounds. net/http counts the time for writing from the end of the head, so
// the time that the body may take comes on top: else a body that is too slow could not be told so.
func newHTTP(cfg Config, h http.Handler) *http.Server {
	var protocols *http.Protocols
	if cfg.H2C {
		protocols = new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Server{
		Protocols:         protocols,
		Handler:           h,
		MaxHeaderBytes:    cfg.MaxHead,
		ReadHeaderTimeout: cfg.HeadTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.ReadTimeout + cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
}
