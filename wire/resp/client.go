package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Bounds of a client.
const (
	maxIdle   = 64
	doTimeout = 10 * time.Second // of one exchange whose context has no deadline
)

// A Client sends commands to one server, over connections that it keeps. It is safe for concurrent use. The zero Client is
// not usable; see New.
type Client struct {
	addr string
	idle chan *conn
}

type conn struct {
	nc  net.Conn
	in  *bufio.Reader
	out []byte
}

// New makes a client of the server at host:port. It connects when it needs to.
func New(addr string) *Client { return &Client{addr, make(chan *conn, maxIdle)} }

// Do sends commands as one piece and returns their replies in order. An error of the server's to one of them is an Error,
// and the other replies are there all the same; any other error means that nothing is known of what was done.
func (c *Client) Do(ctx context.Context, commands ...[]string) ([]Value, error) {
	one, err := c.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", c.addr, err)
	}
	out, err := one.do(ctx, commands)
	if _, said := errors.AsType[Error](err); err != nil && !said {
		one.nc.Close()
		return nil, fmt.Errorf("redis at %s: %w", c.addr, err)
	}
	select {
	case c.idle <- one:
	default:
		one.nc.Close()
	}
	if err != nil {
		return out, fmt.Errorf("redis at %s: %w", c.addr, err)
	}
	return out, nil
}

func (c *Client) take(ctx context.Context) (*conn, error) {
	select {
	case one := <-c.idle:
		return one, nil
	default:
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	return &conn{nc: nc, in: bufio.NewReader(nc)}, nil
}

func (c *conn) do(ctx context.Context, commands [][]string) ([]Value, error) {
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(doTimeout)
	}
	if err := c.nc.SetDeadline(until); err != nil {
		return nil, err
	}
	c.out = c.out[:0]
	for _, words := range commands {
		c.out = AppendCommand(c.out, words...)
	}
	if _, err := c.nc.Write(c.out); err != nil {
		return nil, err
	}
	out := make([]Value, 0, len(commands))
	var failed error
	for range commands {
		v, err := Read(c.in)
		if _, said := errors.AsType[Error](err); said {
			failed = errors.Join(failed, err)
		} else if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, failed
}

// Close closes the connections that are not in use.
func (c *Client) Close() error {
	var errs []error
	for {
		select {
		case one := <-c.idle:
			errs = append(errs, one.nc.Close())
		default:
			return errors.Join(errs...)
		}
	}
}
