package bus

import (
	"sync"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// answers keeps what keyed requests were answered, so that one that is sent again is answered again and not run again. It
// forgets an answer twice the request's time after it came, and the oldest when there are too many.
type answers struct {
	most  int
	limit int64

	mu    sync.Mutex
	of    map[frame.Key]*known // guarded by mu
	order []*known             // guarded by mu: oldest first, forgotten ones included
	bytes int64                // guarded by mu
}

// A known is a keyed request that is being run, or was.
type known struct {
	key    frame.Key
	done   chan struct{} // closed when body and err are there
	until  time.Time
	body   []byte
	err    error
	frozen bool // answered: may be forgotten
}

func newAnswers(cfg Config) *answers {
	return &answers{most: cfg.Remember, limit: cfg.Known, of: make(map[frame.Key]*known)}
}

// unbounded is how long the answer to a request without a deadline is kept.
const unbounded = time.Minute

// claim returns what is known of a key, or makes the caller the one that is to run it.
func (a *answers) claim(key frame.Key, now, deadline time.Time) (k *known, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := a.of[key]; k != nil {
		return k, false
	}
	a.forget(now)
	if len(a.of) >= a.most {
		return nil, false
	}
	until := now.Add(unbounded)
	if !deadline.IsZero() {
		until = now.Add(2 * deadline.Sub(now))
	}
	k = &known{key: key, done: make(chan struct{}), until: until}
	a.of[key] = k
	a.order = append(a.order, k)
	return k, true
}

// forget drops what is over and, when there is too much, the oldest answers. mu is held.
func (a *answers) forget(now time.Time) {
	for len(a.order) > 0 {
		k := a.order[0]
		if !k.frozen || k.until.After(now) && len(a.of) < a.most && a.bytes <= a.limit {
			return
		}
		a.order[0] = nil
		a.order = a.order[1:]
		delete(a.of, k.key)
		a.bytes -= int64(len(k.body))
	}
}

func (a *answers) settle(k *known, body []byte, err error) {
	a.mu.Lock()
	k.body, k.err, k.frozen = body, err, true
	a.bytes += int64(len(body))
	a.mu.Unlock()
	close(k.done)
}

// disclaim forgets a request that was not run to its end, and tells those that wait for it.
func (a *answers) disclaim(k *known, err error) {
	a.settle(k, nil, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, k.key)
	for i, o := range a.order {
		if o == k {
			a.order = append(a.order[:i], a.order[i+1:]...)
			return
		}
	}
}

// answerOnce runs a keyed request unless it was run, or waits for who runs it.
func (r *Responder) answerOnce(dst []byte, q *Request) ([]byte, error) {
	deadline, _ := q.Expires()
	k, mine := r.once.claim(q.Key, time.Now(), deadline)
	if k == nil {
		return dst, &envelope.Failure{Code: envelope.MailboxFull, Detail: "too many keyed requests are being run"}
	}
	if mine {
		at := len(dst)
		out, err := r.run(dst, q, r.handle)
		var body []byte
		if err == nil {
			body, _, _, _ = frame.ParseReply(out[at:])
		}
		if err != nil && q.Kind == frame.Tell {
			r.once.disclaim(k, err) // nobody has the failure: it may be sent again to be run again
		} else {
			r.once.settle(k, append([]byte(nil), body...), err)
		}
		return out, err
	}
	r.repeated.Add(1)
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		select {
		case <-k.done:
		case <-timer.C:
			return dst, envelope.Deadline
		}
	}
	<-k.done
	if k.err != nil {
		return dst, k.err
	}
	return frame.AppendReply(dst, q.ID, k.body), nil
}
