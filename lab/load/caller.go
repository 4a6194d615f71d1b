package load

import (
	"context"
	"io"

	"toll/lab/record"
)

// A Caller performs one operation per Call, for one VU, over that VU's own connection. It returns nil only when the reply
// was complete, was a success by the protocol's own error fields, and carried the id and the content asked for; else a
// *record.Failure. It need not be safe for concurrent use. A Caller that is an io.Closer is closed when its VU ends.
type Caller interface {
	Call(ctx context.Context, m record.Mark) error
}

// A Preparer is a Caller that needs fresh state before each Call; Prepare is never in the window.
type Preparer interface {
	Prepare(ctx context.Context) error
}

// A Target makes Callers: Open connects one VU. It is safe for concurrent use: an open load connects when it needs to.
type Target interface {
	Open(ctx context.Context) (Caller, error)
}

// TargetFunc is a function that is a Target.
type TargetFunc func(ctx context.Context) (Caller, error)

// Open calls f.
func (f TargetFunc) Open(ctx context.Context) (Caller, error) { return f(ctx) }

// Close closes c if it can be closed.
func Close(c Caller) error {
	if cl, ok := c.(io.Closer); ok {
		return cl.Close()
	}
	return nil
}
