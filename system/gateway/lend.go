package gateway

import (
	"context"
	"time"

	"toll/wire/envelope"
	"toll/wire/http1"
)

// A loan is a call whose agent may run on the connection's goroutine.
type loan struct {
	limited
	in     entered
	header []byte // of the response so far
}

// lend has the agent answer m, on this goroutine if it is idle. When the call's time is over first, or the agent's answer is there
// before it has done, the connection goes on without this goroutine.
func (in entered) lend(ctx context.Context, m *envelope.Message, reply *http1.Reply, rs *response) error {
	l := &loan{limited: limited{Context: ctx, at: time.Now().Add(in.r.Timeout), reply: reply}, in: in, header: rs.header}
	reply.Abandon() // the agent may end this goroutine
	lent := true
	defer func() {
		if !lent {
			return
		}
		if r := recover(); r != nil { // of the lender: an agent's is its own affair
			in.leave()
			panic(r)
		}
	}()
	v, err, kept := in.g.lender.Lend(l, m, l.free)
	lent = false
	if !kept {
		rs.gone = true
		return nil
	}
	reply.Keep()
	l.end()
	in.leave()
	if err != nil {
		return err
	}
	return write(v, rs)
}

// free answers in place of the goroutine that was lent, and goes on with its connection.
func (l *loan) free(v any, err error) {
	l.end()
	l.in.leave()
	l.reply.Resume(func(out *http1.Reply) {
		rs := response{header: append(out.Header, l.header...), body: out.Body}
		rs.begin()
		if err == nil {
			err = write(v, &rs)
		}
		if err != nil {
			l.in.g.explain(err, &rs)
		}
		rs.send(l.in.g, out)
	})
}
