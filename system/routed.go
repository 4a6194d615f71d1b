package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"toll/system/gateway"
)

// A routed gateway stands before the agents of a topology.
type routed struct {
	*gateway.Gateway
	agents *agents
}

// buildRouted reads both files and starts the agents.
func buildRouted(ctx context.Context, cfg Config) (*routed, error) {
	data, err := os.ReadFile(cfg.Routes)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	c, err := gateway.ParseFile(cfg.Routes, data)
	if err != nil {
		return nil, err
	}
	readWhileWorking(cfg, c.Routes)
	a, err := buildAgents(ctx, cfg.Agents)
	if err != nil {
		return nil, err
	}
	c.Asker, c.TLS, c.NetHTTP = asker{a.rt}, cfg.Gateway, cfg.Front == "nethttp"
	if cfg.MaxBody > 0 {
		c.MaxBody = int(cfg.MaxBody)
	}
	g, err := gateway.New(c)
	if err != nil {
		return nil, errors.Join(err, a.Shutdown(ctx))
	}
	return &routed{g, a}, nil
}

// Serve answers on l until Shutdown, and then returns nil. When the root supervisor gives up it returns why.
func (s *routed) Serve(l net.Listener) error {
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.agents.root.Done():
			l.Close()
		case <-over:
		}
	}()
	err := s.Gateway.Serve(l)
	select {
	case <-s.agents.root.Done():
		if err != nil { // the gateway was not told to stop
			return s.agents.root.Wait()
		}
	default:
	}
	return err
}

// Shutdown drains the gateway, then stops the agents.
func (s *routed) Shutdown(ctx context.Context) error {
	return errors.Join(s.Gateway.Shutdown(ctx), s.agents.Shutdown(ctx))
}
