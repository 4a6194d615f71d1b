package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/coder/websocket"

	"toll/wire/envelope"
	"toll/wire/plain"
)

// A streaming is a stream that was admitted and has not begun.
type streaming struct {
	route   *route
	message *envelope.Message
	leave   func()
}

// events writes the agent's parts as server-sent events: each a frame with its number, the last one named end or error.
func (g *Gateway) events(ctx context.Context, st *streaming, w io.Writer) {
	defer st.leave()
	ctx, idle, stop := until(ctx, g.cfg)
	defer stop()
	defer context.AfterFunc(g.ending, stop)()
	seq := 0
	var frame []byte
	err := g.cfg.Asker.Stream(ctx, st.message, func(v any) error {
		idle()
		frame = append(strconv.AppendInt(append(frame[:0], "id: "...), int64(seq), 10), "\ndata: "...)
		var err error
		if frame, err = plain.Append(frame, v); err != nil {
			return fmt.Errorf("part %d is no JSON: %w", seq, err)
		}
		frame = append(frame, "\n\n"...)
		seq++
		_, err = w.Write(frame)
		return err
	})
	name, data := "end", []byte("{}")
	if err != nil {
		name, data = "error", problemOf(err).body()
	}
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
}

// socket answers a WebSocket: the agent's parts become text frames, and each frame of the client is told to the agent under
// the session's correlation id.
func (g *Gateway) socket(w http.ResponseWriter, r *http.Request, st *streaming) {
	defer st.leave()
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(int64(g.cfg.MaxBody))
	ctx, idle, stop := until(r.Context(), g.cfg)
	defer stop()
	defer context.AfterFunc(g.ending, stop)()
	st.message.CorrelationID = newSpan()
	told := make(chan error, 1)
	go func() {
		told <- g.listen(r.Context(), ws, st, idle)
		stop()
	}()
	err = g.cfg.Asker.Stream(ctx, st.message, func(v any) error {
		idle()
		data, err := plain.Append(nil, v)
		if err != nil {
			return err
		}
		// Not under ctx: a connection does not survive a write whose context ends, and it is to be closed with a reason.
		ctx, cancel := context.WithTimeout(r.Context(), writeTimeout)
		defer cancel()
		return ws.Write(ctx, websocket.MessageText, data)
	})
	select {
	case why := <-told:
		err = cmp.Or(why, err)
	default:
	}
	code, reason := websocket.StatusNormalClosure, ""
	if err != nil {
		code, reason = closeCode(err), problemOf(err).text
	}
	ws.Close(code, reason[:min(len(reason), 120)])
}

// listen tells the agent what the client sends.
func (g *Gateway) listen(ctx context.Context, ws *websocket.Conn, st *streaming, idle func()) error {
	for {
		kind, data, err := ws.Read(ctx)
		if err != nil {
			return nil // the client's end, or ours
		}
		idle()
		payload, err := object(data)
		if kind != websocket.MessageText || err != nil {
			return &problem{status: http.StatusBadRequest, text: "a frame that is no JSON object"}
		}
		m := *st.message
		m.Payload, m.ID = payload, ""
		if err := g.cfg.Asker.Tell(ctx, &m); err != nil {
			return err
		}
	}
}

// closeCode is what RFC 6455 §7.4.1 has for a problem; 4404 is a missing agent.
func closeCode(err error) websocket.StatusCode {
	switch problemOf(err).status {
	case http.StatusBadRequest:
		return websocket.StatusUnsupportedData
	case http.StatusNotFound:
		return 4404
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return websocket.StatusTryAgainLater
	case http.StatusGatewayTimeout:
		return websocket.StatusGoingAway
	}
	return websocket.StatusInternalError
}
