package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"toll/system/agent"
	"toll/system/gateway"
	"toll/system/tools"
	"toll/wire/envelope"
)

// Tools says which published set of tools is served in place of a system's own operations, and where what stands behind
// them listens.
type Tools struct {
	Set       string // one of ToolSets; empty for none
	Catalogue string // http://host:port
	Redis     string // host:port
}

// ShopTools is the set that needs a catalogue and a Redis server.
const ShopTools = tools.V2

// ToolSets lists the sets by name.
func ToolSets() []string { return tools.Sets() }

func (t Tools) open() ([]tools.Tool, error) {
	return tools.Set(t.Set, tools.Backends{Catalogue: t.Catalogue, Redis: t.Redis})
}

// buildCatalogue makes the catalogue, and fills the Redis server beside it.
func buildCatalogue(ctx context.Context, cfg Config) (server, string, error) {
	if cfg.Tools.Redis != "" {
		if err := tools.Seed(ctx, cfg.Tools.Redis); err != nil {
			return nil, "", err
		}
	}
	return tools.NewCatalogue(), "http", nil
}

// poolSize is how many agents answer for a tool that waits: an agent handles one message at a time.
const poolSize = 128

// A poolAsker spreads the messages for one name over several agents.
type poolAsker struct {
	asker
	pools map[string]*pool
}

type pool struct {
	names []string
	next  atomic.Uint64
}

// Call sends m to the next agent of its recipient's pool.
func (a poolAsker) Call(ctx context.Context, m *envelope.Message) (any, error) {
	a.pick(m)
	return a.asker.Call(ctx, m)
}

// Lend is Call for a caller who can do without its goroutine.
func (a poolAsker) Lend(ctx context.Context, m *envelope.Message, free func(v any, err error)) (v any, err error, kept bool) {
	a.pick(m)
	return a.asker.Lend(ctx, m, free)
}

func (a poolAsker) pick(m *envelope.Message) {
	if p := a.pools[m.Recipient]; p != nil {
		m.Recipient = p.names[p.next.Add(1)%uint64(len(p.names))]
	}
}

// buildToolGateway makes a gateway before agents that answer for a set's tools: a path each, and the OpenAPI document as
// their list.
func buildToolGateway(ctx context.Context, cfg Config, scheme string) (server, string, error) {
	set, err := cfg.Tools.open()
	if err != nil {
		return nil, "", err
	}
	rt := agent.New(agent.Config{})
	pools := make(map[string]*pool)
	var routes []gateway.Route
	for _, t := range set {
		h := agent.HandlerFunc(func(c *agent.Context, m *envelope.Message) (any, error) {
			payload, _ := m.Payload.(map[string]any)
			return t.Call(c.Context(), payload)
		})
		n := 1
		if t.Waits {
			n = poolSize
		}
		p := new(pool)
		for i := range n {
			name := fmt.Sprintf("%s-%d", t.Name, i+1)
			if _, err := rt.Spawn(ctx, name, h, agent.Spec{}); err != nil {
				return nil, "", errors.Join(err, rt.Close(ctx))
			}
			p.names = append(p.names, name)
		}
		pools[t.Name] = p
		routes = append(routes, gateway.Route{Method: http.MethodPost, Path: "/v1/" + t.Name, Agent: t.Name})
	}
	g, err := gateway.New(gateway.Config{
		Routes: routes, Asker: poolAsker{asker{rt}, pools}, MaxBody: int(cfg.MaxBody), TLS: cfg.Gateway, NetHTTP: cfg.Front == "nethttp",
	})
	if err != nil {
		return nil, "", errors.Join(err, rt.Close(ctx))
	}
	return &gatewayServer{g, nil, rt.Close}, scheme, nil
}
