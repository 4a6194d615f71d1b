package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"toll/wire/plain"
)

// A Question is a request of a server to a client.
type Question struct {
	Key    string          // names the answer
	Method string          // elicitation/create, sampling/createMessage or roots/list
	Params json.RawMessage // an object
}

func (q *Question) capability() string {
	switch q.Method {
	case "elicitation/create":
		return "elicitation"
	case "sampling/createMessage":
		return "sampling"
	}
	return "roots"
}

// A needed is what ends a call of 2026-07-28 whose client must answer first; it comes back with a new request.
type needed struct {
	questions []Question
	state     []byte
}

func (n *needed) Error() string { return "the client's answers are needed" }

// State returns what an earlier round of this call gave to Ask, nil in the first.
func (c *Call) State() []byte { return c.state }

// Answer returns what the client brought as the answer with the given key, nil without one that is an object.
func (c *Call) Answer(key string) json.RawMessage {
	if a := plain.Find(c.x.m.params.inputs, key); len(a) > 0 && a[0] == '{' {
		return json.RawMessage(a)
	}
	return nil
}

// Ask gets the client's answers, by key. Up to 2025-11-25 it sends the questions and waits. Since then a client answers by
// a second request: Ask then returns an error that the tool must return as it is, and when it is called again the answers
// are there and state is what State returns. A client that did not declare what a question needs gets a [MissingCapability].
func (c *Call) Ask(ctx context.Context, state []byte, questions ...Question) (map[string]json.RawMessage, error) {
	for _, q := range questions {
		if !c.Can(q.capability()) {
			return nil, MissingCapability(q.capability())
		}
	}
	answers := make(map[string]json.RawMessage, len(questions))
	if c.x.rev.modern() {
		for _, q := range questions {
			if answers[q.Key] = c.Answer(q.Key); answers[q.Key] == nil {
				return nil, &needed{questions, state}
			}
		}
		return answers, nil
	}
	if c.x.sess == nil || c.x.out == nil {
		return nil, errors.New("the client can't be asked: there is no session or no stream of events")
	}
	ctx, cancel := context.WithTimeout(ctx, c.x.s.cfg.AskTimeout)
	defer cancel()
	for _, q := range questions {
		answer, err := c.x.sess.ask(ctx, c.send, q)
		if err != nil {
			return nil, err
		}
		answers[q.Key] = answer
	}
	return answers, nil
}

func (c *Call) send(msg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.x.out.send(msg)
}

// appendNeeded appends the result that asks for answers.
func (s *Server) appendNeeded(dst []byte, x *exchange, n *needed) []byte {
	dst = append(appendResult(dst, x.m.id), `{"resultType":"input_required"`...)
	sep := `,"inputRequests":{`
	for _, q := range n.questions {
		dst = append(plain.AppendText(append(dst, sep...), []byte(q.Key)), `:{"method":"`...)
		dst = append(append(dst, q.Method...), `","params":`...)
		dst = append(append(dst, compact(q.Params)...), '}')
		sep = ","
	}
	if len(n.questions) > 0 {
		dst = append(dst, '}')
	}
	if n.state != nil || len(n.questions) == 0 {
		dst = plain.AppendText(append(dst, `,"requestState":`...), s.sealState(n.state, x.m.method, x.subject()))
	}
	dst = append(dst, s.identity...)
	return append(dst, "}}"...)
}

// An answer is a client's to a request of ours.
type answer struct{ result, error []byte }

// maxQuestions bounds the requests of ours that wait for one client's answer.
const maxQuestions = 64

// ask sends a request to the client and waits for its answer.
func (s *session) ask(ctx context.Context, send func(msg []byte) error, q Question) (json.RawMessage, error) {
	s.mu.Lock()
	if s.over || len(s.pending) >= maxQuestions {
		s.mu.Unlock()
		return nil, fmt.Errorf("%s: the session is over, or %d requests wait for its client", q.Method, maxQuestions)
	}
	s.next++
	id := strconv.FormatInt(s.next, 10)
	came := make(chan answer, 1)
	if s.pending == nil {
		s.pending = make(map[string]chan answer)
	}
	s.pending[id] = came
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, id)
	}()
	msg := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	msg = append(append(append(msg, `,"method":"`...), q.Method...), `","params":`...)
	if err := send(append(append(msg, compact(q.Params)...), '}')); err != nil {
		return nil, fmt.Errorf("%s: %w", q.Method, err)
	}
	select {
	case a, ok := <-came:
		if !ok {
			return nil, errors.New(q.Method + ": the session ended")
		}
		if a.error != nil {
			return nil, fmt.Errorf("%s: the client refused: %s", q.Method, clip(a.error))
		}
		return a.result, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: no answer from the client: %w", q.Method, ctx.Err())
	}
}

// answered takes a client's response; one that nothing waits for is dropped.
func (s *session) answered(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if came := s.pending[string(m.id)]; came != nil {
		delete(s.pending, string(m.id))
		came <- answer{slices.Clone(m.result), slices.Clone(m.error)}
	}
}
