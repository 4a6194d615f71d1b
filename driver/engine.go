package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"toll/lab/load"
	"toll/lab/record"
	"toll/wire/engine"
)

// Engine has an engine behind the stdio door make whole stretches of an operation; wire/engine says what is asked and what
// is answered. It must not be copied once it has run.
type Engine struct {
	Asker Asker
	Case  string
	Input any // encoded as JSON for every question; nil for none

	id atomic.Int64
}

// Open refuses: what an engine does is measured by Run.
func (e *Engine) Open(context.Context) (load.Caller, error) {
	return nil, fmt.Errorf("case %s: an engine makes stretches; it has no single calls", e.Case)
}

// Run asks for n operations, in as many questions as they need.
func (e *Engine) Run(ctx context.Context, callers, n int, s *record.Shard) (elapsed time.Duration, err error) {
	q, err := e.question(callers)
	if err != nil {
		return 0, err
	}
	most := engine.MaxCalls / callers * callers
	for left := n; left > 0; left -= q.Calls {
		q.Calls = min(left, most)
		a, err := e.ask(ctx, q)
		if err != nil {
			return elapsed, err
		}
		elapsed += time.Duration(a.Elapsed)
		add(a, q, s)
	}
	return elapsed, nil
}

// question returns what is the same in all questions.
func (e *Engine) question(callers int) (q engine.Question, err error) {
	q = engine.Question{Case: e.Case, Callers: callers}
	if callers > engine.MaxCallers {
		return q, fmt.Errorf("%d callers; an engine takes at most %d", callers, engine.MaxCallers)
	}
	if e.Input != nil {
		if q.Input, err = json.Marshal(e.Input); err != nil {
			return q, fmt.Errorf("case %s: its input: %w", e.Case, err)
		}
	}
	return q, nil
}

// ask asks one question.
func (e *Engine) ask(ctx context.Context, q engine.Question) (engine.Answer, error) {
	q.ID = e.id.Add(1)
	line, err := json.Marshal(q)
	if err != nil {
		return engine.Answer{}, err
	}
	begin := time.Now()
	text, err := e.Asker.Ask(ctx, line)
	took := time.Since(begin)
	switch {
	case errors.Is(err, io.EOF):
		return engine.Answer{}, record.Fail(record.Crashed, fmt.Errorf("case %s: %w", q.Case, err))
	case err != nil:
		return engine.Answer{}, fmt.Errorf("case %s, %d calls: %w", q.Case, q.Calls, err)
	}
	a, err := engine.ParseAnswer(text, q, took)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		return engine.Answer{}, fmt.Errorf("case %s: %w", q.Case, err)
	}
	return a, nil
}

// add takes over what a stretch's calls took.
func add(a engine.Answer, q engine.Question, s *record.Shard) {
	for _, ns := range a.NS {
		s.Done(time.Duration(ns), nil)
	}
	if s.Active += time.Duration(a.Elapsed) * time.Duration(q.Callers); a.Active != nil {
		s.Active += time.Duration(*a.Active) - time.Duration(a.Elapsed)*time.Duration(q.Callers)
	}
	account(a, s)
}

// account takes over what is told of a stretch beside its successes' times.
func account(a engine.Answer, s *record.Shard) {
	for kind, n := range a.Failed {
		s.AddFailed(kind, n)
	}
	s.FailedNS += a.FailedNS
	m := s.Mark()
	for name, times := range a.Parts {
		for _, ns := range times {
			m.Part(name, time.Duration(ns))
		}
	}
	if a.Allocs != nil && a.Bytes != nil {
		m.Alloc(*a.Allocs, *a.Bytes)
	}
	if a.CPU != nil {
		s.CPU, s.CPUKnown = s.CPU+time.Duration(*a.CPU), true
		if a.User != nil {
			s.User, s.UserKnown = s.User+time.Duration(*a.User), true
		}
	}
	s.Checked += a.Checked
}
