package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// DurableStream holds durable messages until they have been handled, DeadStream those that never were.
const (
	DurableStream = "toll_durable"
	DeadStream    = "toll_dead"

	durableSubject = "toll.durable."
	deadSubject    = "toll.dead."
)

// DurableConfig bounds durable messages; each zero value means its default.
type DurableConfig struct {
	Attempts int           // deliveries before a message is a dead letter; 5
	Wait     time.Duration // for a handler, and before a message is delivered again; 5 s
	MaxAge   time.Duration // of a message that nobody takes; 24 h
	MaxBytes int64         // of all messages that wait; 256 MiB
	Window   time.Duration // in which a message that is published twice is known; 2 min
}

func (c DurableConfig) withDefaults() DurableConfig {
	if c.Attempts <= 0 {
		c.Attempts = 5
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 256 << 20
	}
	for _, d := range []struct {
		to *time.Duration
		v  time.Duration
	}{{&c.Wait, 5 * time.Second}, {&c.MaxAge, 24 * time.Hour}, {&c.Window, 2 * time.Minute}} {
		if *d.to <= 0 {
			*d.to = d.v
		}
	}
	return c
}

// Durable carries tells through JetStream: at least once. A message has a key, by which the stream takes it once and a
// responder runs it once for as long as it remembers; after too many attempts it is a dead letter.
type Durable struct {
	nats *NATS
	js   jetstream.JetStream
	cfg  DurableConfig
}

// NewDurable opens the streams, and makes them when they are not there.
func (n *NATS) NewDurable(ctx context.Context, cfg DurableConfig) (*Durable, error) {
	js, err := jetstream.New(n.nc)
	if err != nil {
		return nil, err
	}
	d := &Durable{nats: n, js: js, cfg: cfg.withDefaults()}
	for name, subjects := range map[string]string{DurableStream: durableSubject + "*", DeadStream: deadSubject + "*"} {
		sc := jetstream.StreamConfig{
			Name: name, Subjects: []string{subjects}, MaxAge: d.cfg.MaxAge, MaxBytes: d.cfg.MaxBytes, Duplicates: d.cfg.Window,
			Discard: jetstream.DiscardNew, MaxMsgSize: int32(n.max),
		}
		if name == DurableStream {
			sc.Retention = jetstream.WorkQueuePolicy
		} else {
			sc.Discard = jetstream.DiscardOld
		}
		if _, err := js.CreateOrUpdateStream(ctx, sc); err != nil {
			return nil, fmt.Errorf("bus: stream %s: %w", name, err)
		}
	}
	return d, nil
}

// Tell returns when the stream has the request. Its key is required; it is what makes a second Tell of it no second one.
func (d *Durable) Tell(ctx context.Context, r *frame.Request) error {
	if r.Key == (frame.Key{}) {
		return &envelope.Failure{Code: envelope.Failed, Agent: r.To, Detail: "a durable message needs a key"}
	}
	if err := r.Check(); err != nil {
		return &envelope.Failure{Code: envelope.Failed, Agent: r.To, Detail: err.Error()}
	}
	q := *r
	q.Kind, q.Deadline = frame.Tell, 0
	b := q.Append(nil, 0)
	if len(b) > d.nats.max {
		return &envelope.Failure{Code: envelope.Failed, Agent: r.To, Detail: fmt.Sprintf("frame of %d bytes, at most %d are carried", len(b), d.nats.max)}
	}
	_, err := d.js.Publish(ctx, durableSubject+key(r.To), b, jetstream.WithMsgID(messageID(r.Key)))
	if err != nil {
		code := envelope.Unreachable
		var api *jetstream.APIError
		switch {
		case ctx.Err() != nil:
			code = envelope.FromContext(ctx)
		case errors.As(err, &api) && api.ErrorCode == storeFailed:
			code = envelope.MailboxFull
		}
		return &envelope.Failure{Code: code, Agent: r.To, Detail: err.Error()}
	}
	return nil
}

// storeFailed is the server's code for a stream that has as many bytes as it may have.
const storeFailed = 10077

func messageID(k frame.Key) string {
	return strconv.FormatUint(k.Sender, 36) + "." + strconv.FormatUint(k.Number, 36)
}

// Consume has r run the durable messages for a name, one after another, until ctx ends or the returned stop is called; stop
// waits for the one that is being run.
func (d *Durable) Consume(ctx context.Context, name string, r *Responder) (stop func(), err error) {
	c, err := d.js.CreateOrUpdateConsumer(ctx, DurableStream, jetstream.ConsumerConfig{
		Durable: "name_" + key(name), FilterSubject: durableSubject + key(name), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: d.cfg.Wait, MaxAckPending: 1, MaxDeliver: -1, // we count ourselves, so that the last is a dead letter and not forgotten
	})
	if err != nil {
		return nil, fmt.Errorf("bus: consumer of %s: %w", name, err)
	}
	it, err := c.Messages(jetstream.PullMaxMessages(1))
	if err != nil {
		return nil, fmt.Errorf("bus: consuming %s: %w", name, err)
	}
	done := make(chan struct{})
	end := context.AfterFunc(ctx, it.Stop)
	go func() {
		defer close(done)
		for {
			m, err := it.Next()
			if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				return
			}
			if err == nil {
				d.run(m, r)
			}
		}
	}()
	return func() {
		end()
		it.Stop()
		<-done
	}, nil
}

// run has a message handled. What fails is delivered again, after a time that grows, or buried.
func (d *Durable) run(m jetstream.Msg, r *Responder) {
	_, failure := r.tell(m.Data())
	if failure == nil {
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Wait)
		defer cancel()
		m.DoubleAck(ctx) // one that is lost means that the message comes again and is known by its key
		return
	}
	attempt := uint64(1)
	if meta, err := m.Metadata(); err == nil {
		attempt = meta.NumDelivered
	}
	if errors.Is(failure, frame.ErrMalformed) || attempt >= uint64(d.cfg.Attempts) {
		d.bury(m, failure)
		return
	}
	m.NakWithDelay(min(d.cfg.Wait, 10*time.Millisecond<<min(attempt, 16)))
}

// bury makes a message a dead letter. Only when that is kept is it taken from the stream.
func (d *Durable) bury(m jetstream.Msg, failure error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Wait)
	defer cancel()
	name := m.Subject()[len(durableSubject):]
	id := m.Headers().Get(jetstream.MsgIDHeader)
	if _, err := d.js.Publish(ctx, deadSubject+name, m.Data(), jetstream.WithMsgID(id)); err != nil {
		m.Nak()
		return
	}
	m.TermWithReason(fmt.Sprintf("%.200s", failure))
}

// A DeadLetter is a durable message that was never handled.
type DeadLetter struct {
	To, From, Op string
	Key          frame.Key
	Body         []byte
}

// DeadLetters returns those of a name, the oldest first, at most so many.
func (d *Durable) DeadLetters(ctx context.Context, name string, most int) ([]DeadLetter, error) {
	s, err := d.js.Stream(ctx, DeadStream)
	if err != nil {
		return nil, err
	}
	var out []DeadLetter
	for seq := uint64(1); len(out) < most; {
		m, err := s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(deadSubject+key(name)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return out, err
		}
		var r frame.Received
		if err := r.Parse(m.Data); err == nil {
			out = append(out, DeadLetter{To: string(r.To), From: string(r.From), Op: string(r.Op), Key: r.Key, Body: r.Body})
		}
		seq = m.Sequence + 1
	}
	return out, nil
}
