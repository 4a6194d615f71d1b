package receipt

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"toll/wire/jcs"
	"toll/wire/mux"
)

// A Client asks a gateway over its unix socket. It is safe for concurrent use: calls share the connection.
type Client struct{ conn *mux.Conn }

// Dial connects to a gateway's socket.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return &Client{mux.New(nc, framing{maxFrame}, mux.Config{InFlight: 1024})}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Sign asks for a receipt. A refusal of the gateway is a *[Refusal]; any other error says nothing about whether the receipt
// exists: ask again.
func (c *Client) Sign(ctx context.Context, a *Arrival) (Receipt, error) {
	return c.ask(ctx, opSign, a, http.StatusCreated)
}

// Accept asks for the promise of a receipt.
func (c *Client) Accept(ctx context.Context, a *Arrival) error {
	_, err := c.ask(ctx, opAccept, a, http.StatusAccepted)
	return err
}

func (c *Client) ask(ctx context.Context, op byte, a *Arrival, want int) ([]byte, error) {
	body, err := AppendArrival(nil, a)
	if err != nil {
		return nil, err
	}
	x := &exchange{op: op, body: body}
	if err := c.conn.Call(ctx, x); err != nil {
		return nil, err
	}
	if x.status == want {
		return x.reply, nil
	}
	var e struct {
		Error struct {
			Code, Pointer, Text string
			Offset              *int
		}
	}
	if err := json.Unmarshal(x.reply, &e); err != nil {
		return nil, fmt.Errorf("the gateway answered %d: %.200q", x.status, x.reply)
	}
	r := &Refusal{Code: e.Error.Code, Pointer: e.Error.Pointer, Offset: -1, Text: e.Error.Text}
	if e.Error.Offset != nil {
		r.Offset = *e.Error.Offset
	}
	return nil, r
}

// AppendArrival appends the canonical form of an arrival, as a gateway takes it.
func AppendArrival(dst []byte, a *Arrival) ([]byte, error) {
	o := jcs.Begin(dst)
	o.String("namespace", a.Namespace)
	o.Open("policy")
	o.String("id", a.PolicyID)
	o.Int("version", a.PolicyVersion)
	o.Close()
	o.String("request_hash", a.RequestHash)
	o.String("request_id", a.RequestID)
	o.String("tenant", a.Tenant)
	return o.End()
}
