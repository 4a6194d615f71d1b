package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"toll/lab/record"
)

// ready starts a session where one is needed and none is there.
func (c *mcpCall) ready(ctx context.Context) error {
	if !c.stateful || c.session != "" {
		return nil
	}
	c.revision = mcpStateful
	reply, err := c.post.exchange(ctx, http.MethodPost, mcpHead{}, []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+
		mcpStateful+`","capabilities":{},"clientInfo":{"name":"`+userAgent+`","version":"1"}}}`))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if err := checkStatus(reply.status, reply.body); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if c.revision, err = agreed(reply); err != nil {
		return record.Fail(record.BadReply, fmt.Errorf("initialize: %w", err))
	}
	session, err := sessionID(reply.session)
	if err != nil {
		return record.Fail(record.BadReply, fmt.Errorf("initialize: %w", err))
	}
	reply, err = c.post.exchange(ctx, http.MethodPost, mcpHead{revision: c.revision, session: session},
		[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	if err := checkStatus(reply.status, reply.body); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	c.session = session
	return nil
}

// agreed returns the revision that a server chose in its reply to initialize.
func agreed(reply mcpReply) (string, error) {
	message := reply.body
	if reply.media == mediaEvents {
		var e eventScanner
		e.scan(reply.body)
		data, ok := e.next()
		if !ok {
			return "", fmt.Errorf("an event stream without a reply: %q", excerpt(reply.body))
		}
		message = data
	}
	var r struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      *int64          `json:"id"`
		Error   json.RawMessage `json:"error"`
		Result  struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	if err := json.Unmarshal(message, &r); err != nil {
		return "", err
	}
	if r.JSONRPC != "2.0" || r.ID == nil || *r.ID != 0 || len(r.Error) > 0 && string(r.Error) != "null" {
		return "", fmt.Errorf("no successful reply to it: %q", excerpt(message))
	}
	// Those with sessions over this transport. The newest is asked for; an older server answers with its own.
	switch v := r.Result.ProtocolVersion; v {
	case mcpStateful, "2025-06-18", "2025-03-26":
		return v, nil
	default:
		return "", fmt.Errorf("it chose revision %q, which this client does not speak with sessions", v)
	}
}

// end deletes the session, if there is one that must not be left. A server need not allow that (405).
func (c *mcpCall) end(ctx context.Context) {
	if c.session != "" && !c.forget {
		// What it answers changes nothing: the session is not used again.
		c.post.exchange(ctx, http.MethodDelete, mcpHead{revision: c.revision, session: c.session}, nil)
	}
	c.session = ""
}
