package envelope

import (
	"context"
	"errors"
	"fmt"
)

// A Code says why a message was not answered. It is an error itself, so errors.Is(err, envelope.NotFound) asks for it.
type Code uint8

// The codes. Callers branch on them; their texts are stable identifiers.
const (
	NotFound    Code = iota + 1 // no agent has the name, or its epoch is another
	MailboxFull                 // the agent's mailbox had no place
	Crashed                     // the agent failed while the message waited or was handled
	Stopped                     // the agent was stopped or despawned meanwhile
	Deadline                    // the caller's time was over
	Suspended                   // the agent takes no messages until it is resumed
	Cancelled                   // the caller gave up
	Failed                      // the handler answered with an error; the agent lives on
	Unreachable                 // what carries messages between processes could not deliver this one
)

// Codes returns all of them.
func Codes() []Code {
	return []Code{NotFound, MailboxFull, Crashed, Stopped, Deadline, Suspended, Cancelled, Failed, Unreachable}
}

// String returns the code's identifier.
func (c Code) String() string {
	switch c {
	case NotFound:
		return "not_found"
	case MailboxFull:
		return "mailbox_full"
	case Crashed:
		return "agent_crashed"
	case Stopped:
		return "stopped"
	case Deadline:
		return "deadline"
	case Suspended:
		return "suspended"
	case Cancelled:
		return "cancelled"
	case Failed:
		return "failed"
	case Unreachable:
		return "unreachable"
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Error returns the code's identifier.
func (c Code) Error() string { return c.String() }

// Is makes Deadline and Cancelled the errors of package context as well.
func (c Code) Is(target error) bool {
	return c == Deadline && target == context.DeadlineExceeded || c == Cancelled && target == context.Canceled
}

// ParseCode returns the code of an identifier.
func ParseCode(text string) (Code, error) {
	for _, c := range Codes() {
		if c.String() == text {
			return c, nil
		}
	}
	return 0, fmt.Errorf("envelope: failure code %.40q is none of %v", text, Codes())
}

// FromContext returns the code of a context that has ended.
func FromContext(ctx context.Context) Code {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Deadline
	}
	return Cancelled
}

// A Failure is a code with the agent it is about and the detail. errors.Is finds its code.
type Failure struct {
	Code   Code
	Agent  string
	Detail string
}

// Error returns agent, code and detail.
func (f *Failure) Error() string {
	text := f.Code.String()
	if f.Agent != "" {
		text = "agent " + f.Agent + ": " + text
	}
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}

// Unwrap returns the code.
func (f *Failure) Unwrap() error { return f.Code }

// CodeOf returns the code that err carries, and false when it carries none.
func CodeOf(err error) (Code, bool) {
	var c Code
	return c, errors.As(err, &c)
}

// FailureOf returns err as a failure: its own code and agent if it has them, else that the handler of agent failed.
func FailureOf(err error, agent string) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	c, ok := CodeOf(err)
	switch {
	case ok && err == error(c):
		return &Failure{Code: c, Agent: agent}
	case ok:
	case errors.Is(err, context.DeadlineExceeded):
		c = Deadline
	case errors.Is(err, context.Canceled):
		c = Cancelled
	default:
		c = Failed
	}
	return &Failure{Code: c, Agent: agent, Detail: err.Error()}
}

// FailureReply returns the answer to m that says why it has no other. Its payload holds the key "error", as civitas'
// gateway expects of a refusal, and "code".
func FailureReply(m *Message, err error) *Message {
	f := FailureOf(err, m.Recipient)
	r := m.Reply(map[string]any{"error": f.Error(), "code": f.Code.String(), "agent": f.Agent, "detail": f.Detail})
	r.Type = FailureType
	return r
}

// Err returns the failure that a reply carries, and nil when it is none. A failure with an unknown code is Failed.
func (m *Message) Err() error {
	if m.Type != FailureType {
		return nil
	}
	p, _ := m.Payload.(map[string]any)
	text := func(key string) string { s, _ := p[key].(string); return s }
	f := &Failure{Code: Failed, Agent: text("agent"), Detail: text("detail")}
	if c, err := ParseCode(text("code")); err == nil {
		f.Code = c
	} else if f.Detail == "" {
		f.Detail = text("error")
	}
	return f
}
