package system

import (
	"encoding/json"
	"fmt"
	"strings"

	"toll/system/opserver"
)

// SocketMessage is the size of what the front socket reads and writes back, bytes: that of a small request and its head.
const SocketMessage = 160

// A socket calls a handler for each message that comes over a bare socket: no HTTP, no JSON, no agent. What a call takes beside
// the handler is then the sockets' and the kernel's.
type socket struct {
	*opserver.Floor
	*tally
}

// A forever waits as long as it takes: nothing tells a handler here that its caller has gone.
type forever struct{}

func (forever) Expired() bool { return false }

// newSocket makes one that calls as cfg.Call says: an operation, a space, and its payload in JSON.
func newSocket(cfg Config, t *tally, oc opserver.Config) (*socket, error) {
	name, text, _ := strings.Cut(cfg.Call, " ")
	h, ok := handlers()[name]
	if !ok {
		return nil, fmt.Errorf("call %q: expected an operation, a space and its payload, such as fibonacci {\"n\":20}", cfg.Call)
	}
	payload := make(map[string]any)
	if err := json.Unmarshal([]byte(text), &payload); err != nil {
		return nil, fmt.Errorf("call %q: its payload: %w", cfg.Call, err)
	}
	work := func() error {
		_, err := t.time(h.answer, payload, forever{})
		return err
	}
	if err := work(); err != nil { // not at the first message: nobody could tell why it ends
		return nil, fmt.Errorf("call %q: %w", cfg.Call, err)
	}
	return &socket{opserver.NewWork(oc, SocketMessage, work), t}, nil
}
