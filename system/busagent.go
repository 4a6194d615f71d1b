package system

import (
	"context"
	"time"

	"toll/system/agent"
	"toll/system/bus"
	"toll/wire/envelope"
)

// An echoAgent is an agent that answers with what it is asked. It never blocks, so an ask that finds it idle runs on the
// goroutine that brings it, still one message at a time.
type echoAgent struct {
	runtime *agent.Runtime
	ref     agent.Ref
}

func newEchoAgent(ctx context.Context) (*echoAgent, error) {
	rt := agent.New(agent.Config{})
	h := agent.HandlerFunc(func(_ *agent.Context, m *envelope.Message) (any, error) { return m.Payload, nil })
	ref, err := rt.Spawn(ctx, busNode, h, agent.Spec{Inline: true})
	return &echoAgent{rt, ref}, err
}

// ask passes a frame's body through the agent's mailbox. What has expired does not come here, and the agent does not block,
// so the ask needs no deadline; with one, the agent could hold the frame's memory after it.
func (a *echoAgent) ask(dst []byte, r *bus.Request) ([]byte, error) {
	m := envelope.Message{Type: "ping", Sender: "client", Recipient: busNode, Payload: r.Body}
	v, err := a.ref.Ask(context.Background(), &m)
	if err != nil {
		return dst, err
	}
	return append(dst, v.([]byte)...), nil
}

func (a *echoAgent) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return a.runtime.Close(ctx)
}

// handlerOf returns what a listening worker answers with, and what ends it. Neither handler waits for anything but an agent
// that does not wait.
func handlerOf(ctx context.Context, carrier string) (bus.Handler, func() error, error) {
	if carrier != DirectMailbox {
		return echo, func() error { return nil }, nil
	}
	a, err := newEchoAgent(ctx)
	if err != nil {
		return nil, nil, err
	}
	return a.ask, a.close, nil
}

// openInproc makes callers that ask an agent of their own process: no frames, no copies.
func (b *BusClient) openInproc(ctx context.Context) (func() caller, error) {
	a, err := newEchoAgent(ctx)
	if err != nil {
		return nil, err
	}
	b.closing(a.close)
	return func() caller {
		m := envelope.Message{Type: "ping", Sender: "client", Recipient: busNode}
		var last []byte
		return func(ctx context.Context, body []byte) ([]byte, error) {
			if len(last) != len(body) || &last[0] != &body[0] { // a slice in an interface is an allocation
				last, m.Payload = body, body
			}
			v, err := a.ref.Ask(ctx, &m)
			if err != nil {
				return nil, err
			}
			return v.([]byte), nil
		}
	}, nil
}
