package system

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"toll/system/agent"
	"toll/system/bus"
	"toll/wire/envelope"
)

// An outpost is a runtime whose agents are reached, and whose messages go, over a NATS server with JetStream: the names of agents
// are kept in a bucket there.
type outpost struct {
	rt    *agent.Runtime
	node  *bus.Node
	name  string // of the node
	names *bus.KV
	nats  *bus.NATS
	serve *bus.NATSServer // nil where nothing is reached
}

// carried is a Local that is known after the node is.
type carried struct{ agent.Carrier }

// newOutpost connects to a server. Nothing can be reached before answer.
func newOutpost(ctx context.Context, at, token string) (*outpost, error) {
	var id [6]byte
	rand.Read(id[:])
	n, err := bus.DialNATS(ctx, bus.NATSConfig{URL: natsURL(at), Name: "toll agents"}, busConfig(token))
	if err != nil {
		return nil, fmt.Errorf("the agents' NATS server at %s: %w", at, err)
	}
	names, err := bus.NewKV(ctx, n, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the agents' names: %w; the server needs JetStream", err), n.Close())
	}
	local := new(carried)
	name := "agents-" + hex.EncodeToString(id[:])
	o := &outpost{name: name, names: names, nats: n}
	o.node = bus.NewNode(bus.NodeConfig{
		Name: name, Addr: name, Directory: names, Local: local, Config: busConfig(token),
		Dial: func(ctx context.Context, to bus.Owner) (bus.Link, error) { return n.Link(ctx, to.Addr) },
	})
	o.rt = agent.New(agent.Config{Carrier: o.node})
	local.Carrier = o.rt.Inbound()
	return o, nil
}

// answer makes the agents of the names reachable.
func (o *outpost) answer(ctx context.Context, names []string) (err error) {
	if o.serve, err = o.nats.Serve(ctx, o.name, o.node.Responder(), false); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := o.node.Register(ctx, name, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the names up and ends everything.
func (o *outpost) Close(ctx context.Context) error {
	err := o.node.Drain(ctx)
	if o.serve != nil {
		err = errors.Join(err, o.serve.Shutdown(ctx))
	}
	return errors.Join(err, o.node.Close(), o.names.Close(), o.rt.Close(ctx), o.nats.Close())
}

// startGatewayAgents starts the gateway's agents as a process of their own, which gateways find by their names.
func startGatewayAgents(ctx context.Context, cfg Config) (*Running, error) {
	if cfg.At == "" {
		return nil, errors.New("gateway-agents: it needs a NATS server to be found at")
	}
	o, err := newOutpost(ctx, cfg.At, cfg.Token)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, x := range handlers() {
		h := agent.HandlerFunc(func(c *agent.Context, m *envelope.Message) (any, error) {
			payload, _ := m.Payload.(map[string]any)
			if n, ok := number(payload, "n"); ok { // the bus' codec keeps integers apart
				payload["n"] = float64(n)
			}
			reply, err := x.answer(payload, c)
			if m, ok := reply.(map[string]any); ok {
				for k, v := range m {
					if list, ok := v.([]string); ok {
						m[k] = anyOf(list)
					}
				}
			}
			return reply, err
		})
		if _, err := o.rt.Spawn(ctx, name, h, agent.Spec{Inline: !x.long}); err != nil {
			return nil, errors.Join(err, o.Close(ctx))
		}
		names = append(names, name)
	}
	if err := o.answer(ctx, names); err != nil {
		return nil, errors.Join(fmt.Errorf("gateway-agents: %w", err), o.Close(ctx))
	}
	return running(cfg.At, newService(o.Close)), nil
}

// anyOf is a list as the bus' codec takes it.
func anyOf(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// A remoteAsker asks agents of other processes. An object without fields arrives from there as nothing.
type remoteAsker struct{ asker }

// Call asks, and answers with an object where nothing came.
func (a remoteAsker) Call(ctx context.Context, m *envelope.Message) (any, error) {
	v, err := a.asker.Call(ctx, m)
	if v == nil && err == nil {
		v = map[string]any{}
	}
	return v, err
}

// Lend asks: no agent of another process runs on a goroutine of this one.
func (a remoteAsker) Lend(ctx context.Context, m *envelope.Message, _ func(v any, err error)) (v any, err error, kept bool) {
	v, err = a.Call(ctx, m)
	return v, err, true
}
