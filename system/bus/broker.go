package bus

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Broker is an embedded NATS server.
type Broker struct{ server *server.Server }

// BrokerConfig says where a broker listens; the zero value is a free port of the loopback address without JetStream.
type BrokerConfig struct {
	Addr  string // host:port; an empty host is 127.0.0.1
	Store string // folder of JetStream, which is on when it is given; each message is on disk before it is acknowledged
	Token string // required of clients when given
	Max   int    // bytes of a message; that of Config
}

// StartBroker starts a NATS server in this process. It can be connected to when StartBroker returns.
func StartBroker(c BrokerConfig) (*Broker, error) {
	host, port := "127.0.0.1", server.RANDOM_PORT
	if c.Addr != "" {
		h, p, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return nil, fmt.Errorf("broker: %w", err)
		}
		if port, err = strconv.Atoi(p); err != nil {
			return nil, fmt.Errorf("broker: port %q: %w", p, err)
		}
		if port == 0 {
			port = server.RANDOM_PORT
		}
		if h != "" {
			host = h
		}
	}
	s, err := server.NewServer(&server.Options{
		Host: host, Port: port, NoSigs: true, NoLog: true, Authorization: c.Token, JetStream: c.Store != "", StoreDir: c.Store, SyncAlways: true,
		MaxPayload: int32(Config{MaxFrame: c.Max}.withDefaults().MaxFrame), WriteDeadline: 10 * time.Second, DisableShortFirstPing: true,
	})
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("broker: it does not listen after 10s; is the address taken?")
	}
	return &Broker{s}, nil
}

// URL is where clients connect.
func (b *Broker) URL() string { return b.server.ClientURL() }

// Close stops the server and waits until it has.
func (b *Broker) Close() error {
	b.server.Shutdown()
	b.server.WaitForShutdown()
	return nil
}
