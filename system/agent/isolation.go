package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"toll/wire/envelope"
)

// Isolation is where a class' agents run. The handler that it makes stands for an agent somewhere else.
type Isolation interface {
	Handler(class string, config map[string]any) (Handler, error)
}

// A releaser is a handler that holds something outside the process: it is called once the process has gone, also when it was
// never ready.
type releaser interface{ release() }

func release(h Handler) {
	if r, ok := h.(releaser); ok {
		r.release()
	}
}

// What parent and worker send each other over a pipe: frames of a length in four bytes, most significant first, and a message
// in MessagePack. The parent asks, the worker answers, one at a time.
const (
	spawnType   = envelope.SpawnPrefix + "spawn"
	despawnType = envelope.SpawnPrefix + "despawn"
)

// errFrame says that a pipe carries something else than frames.
var errFrame = errors.New("a frame is longer than a message may be")

func writeFrame(w io.Writer, buf []byte, m *envelope.Message) ([]byte, error) {
	buf, err := m.AppendMsgpack(append(buf[:0], 0, 0, 0, 0))
	if err == nil && len(buf)-4 > envelope.DefaultBytes {
		err = fmt.Errorf("message of %d bytes, more than %d", len(buf)-4, envelope.DefaultBytes)
	}
	if err != nil { // nothing was written: the pipe is as good as before
		return buf, &envelope.Failure{Code: envelope.Failed, Agent: m.Recipient, Detail: err.Error()}
	}
	binary.BigEndian.PutUint32(buf, uint32(len(buf)-4))
	_, err = w.Write(buf)
	return buf, err
}

func readFrame(r io.Reader, buf []byte) (*envelope.Message, []byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, buf, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > envelope.DefaultBytes {
		return nil, buf, errFrame
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, buf, err
	}
	m, err := envelope.DecodeMsgpack(buf, envelope.Limits{})
	return m, buf, err
}

// ServeWorker is the worker's side: it hosts the one agent that the parent spawns over in, answers on out, and returns when
// in ends. A frame that can't be read ends it too: behind it nothing can be believed.
func ServeWorker(ctx context.Context, in io.Reader, out io.Writer, classes map[string]Class) error {
	rt := New(Config{})
	defer rt.Close(context.WithoutCancel(ctx))
	d, err := rt.SuperviseDynamic(DynamicSpec{Name: "worker", Classes: classes, MaxChildren: 1, Restart: Temporary})
	if err != nil {
		return err
	}
	var inBuf, outBuf []byte
	for {
		var m *envelope.Message
		m, inBuf, err = readFrame(in, inBuf)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("worker: reading a frame: %w", err)
		}
		reply := workerAnswer(ctx, d, m)
		if outBuf, err = writeFrame(out, outBuf, reply); err != nil {
			// What could not be written is the answer's payload; a failure always can.
			if outBuf, err = writeFrame(out, outBuf, envelope.FailureReply(m, err)); err != nil {
				return fmt.Errorf("worker: writing an answer: %w", err)
			}
		}
	}
}

func workerAnswer(ctx context.Context, d *Dynamic, m *envelope.Message) *envelope.Message {
	var v any
	var err error
	switch m.Type {
	case spawnType:
		p, _ := m.Payload.(map[string]any)
		class, _ := p["class"].(string)
		config, _ := p["config"].(map[string]any)
		_, err = d.Spawn(ctx, &SpawnRequest{Class: class, Name: m.Recipient, Config: config})
	case despawnType:
		err = d.Stop(ctx, m.Recipient, All)
	default:
		v, err = d.rt.Call(ctx, m)
	}
	if err != nil {
		return envelope.FailureReply(m, err)
	}
	return m.Reply(v)
}
