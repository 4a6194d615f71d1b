package mcp

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"sync"

	"toll/wire/plain"
)

// An exchange is one message being answered.
type exchange struct {
	s    *Server
	rev  revision
	sess *session // nil without one
	head *Head    // nil on a byte stream
	m    message
	out  outlet // nil: nothing can be said but the reply
}

// An outlet takes messages to the client ahead of a reply.
type outlet interface {
	// send sends one message. It is called by one goroutine at a time.
	send(msg []byte) error
}

// capabilities returns what the client says it can do.
func (x *exchange) capabilities() []byte {
	switch {
	case x.rev.modern():
		return x.m.params.meta.capabilities
	case x.sess != nil:
		return x.sess.capabilities()
	}
	return nil
}

// A Call is a request as a tool, a resource or a prompt sees it. It is good until that returns.
type Call struct {
	Arguments json.RawMessage // of a tool: an object

	x     *exchange
	state []byte // what the client brought back, verified

	mu   sync.Mutex
	last float64 // guarded by mu: the progress that was told
}

// newCall makes a call of its own copy of x: x is the next request's once this one is answered.
func newCall(x *exchange) (*Call, *Error) {
	own := *x
	x = &own
	c := &Call{x: x, last: math.Inf(-1), Arguments: x.m.params.arguments}
	if c.Arguments == nil {
		c.Arguments = json.RawMessage("{}")
	}
	if x.rev.modern() && x.m.params.state != nil {
		var ok bool
		if c.state, ok = x.s.openState(x.m.params.state, x.m.method, x.subject()); !ok {
			return nil, refusedParams("requestState is not of this server, not for this request or too old")
		}
	}
	return c, nil
}

// subject is what a request is about.
func (x *exchange) subject() []byte {
	if x.m.params.name != nil {
		return x.m.params.name
	}
	return x.m.params.uri
}

// Version returns the protocol's revision, such as 2026-07-28.
func (c *Call) Version() string { return c.x.rev.String() }

// Can reports whether the client declared a capability: sampling, elicitation or roots.
func (c *Call) Can(capability string) bool { return plain.Find(c.x.capabilities(), capability) != nil }

// ProgressToken returns the token that the client gave, a string or an integer; nil if it does not want to hear of progress.
func (c *Call) ProgressToken() json.RawMessage { return json.RawMessage(c.x.m.params.meta.progress) }

// Progress tells the client how far the call is, if it asked. Progress that does not grow is not told. Without a total, 0.
func (c *Call) Progress(progress, total float64, message string) error {
	token := c.x.m.params.meta.progress
	if token == nil || c.x.out == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !(progress > c.last) || math.IsInf(progress, 1) {
		return nil
	}
	c.last = progress
	msg := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), token...)
	msg = strconv.AppendFloat(append(msg, `,"progress":`...), progress, 'f', -1, 64)
	if total > 0 && !math.IsInf(total, 1) {
		msg = strconv.AppendFloat(append(msg, `,"total":`...), total, 'f', -1, 64)
	}
	if message != "" && c.x.rev >= rev20250326 {
		msg = plain.AppendText(append(msg, `,"message":`...), []byte(message))
	}
	return c.x.out.send(append(msg, "}}"...))
}

// levels returns the severities of RFC 5424, the least first.
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// levelOf returns a severity's place, -1 if there is none.
func levelOf(name []byte) int {
	for i, l := range levels() {
		if string(name) == l {
			return i
		}
	}
	return -1
}

// Log sends the client a log message, if it wants those of this level. data is anything that has a JSON form.
func (c *Call) Log(level, logger string, data any) error {
	at := levelOf([]byte(level))
	if at < 0 {
		return errors.New("log: no level " + level)
	}
	if c.x.out == nil || at < c.x.leastLevel() {
		return nil
	}
	raw, err := encode(struct {
		Level  string `json:"level"`
		Logger string `json:"logger,omitempty"`
		Data   any    `json:"data"`
	}{level, logger, data})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.x.out.send(notification("notifications/message", raw))
}

// leastLevel is the lowest level that the client wants: per request since 2026-07-28 and none if it does not say, before
// that per session and informational if it does not say.
func (x *exchange) leastLevel() int {
	switch {
	case x.rev.modern() && x.m.params.meta.level == nil:
		return len(levels())
	case x.rev.modern():
		return levelOf(x.m.params.meta.level)
	case x.sess != nil:
		return x.sess.leastLevel()
	}
	return levelOf([]byte("info"))
}

func notification(method string, params []byte) []byte {
	msg := append([]byte(`{"jsonrpc":"2.0","method":"`), method...)
	if params != nil {
		msg = append(append(msg, `","params":`...), params...)
		return append(msg, '}')
	}
	return append(msg, `"}`...)
}
