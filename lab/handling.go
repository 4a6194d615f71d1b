package lab

import (
	"context"
	"time"

	"toll/lab/result"
)

// A Handling is a Process that counts how often its handlers were called and how long they took.
type Handling interface {
	Handled(ctx context.Context) (calls int64, took time.Duration, err error)
}

// handled is what a lane's handlers have done so far.
type handled struct {
	calls int64
	took  time.Duration
	known bool
}

// handled asks a lane's process, where it counts.
func (r *run) handled(ctx context.Context, s Setting, l *lane) handled {
	p, ok := l.entry.Process.(Handling)
	if !ok || !l.entry.Handles {
		return handled{}
	}
	calls, took, err := p.Handled(ctx)
	if err != nil {
		r.gap(r.rowName(s, l.entry)+": framework", err.Error())
	}
	return handled{calls, took, err == nil}
}

// handle adds what the handlers did in one round's windows.
func (s *rowState) handle(before, after handled) {
	if before.known && after.known {
		s.handled.calls += after.calls - before.calls
		s.handled.took += after.took - before.took
		s.handled.known = true
	}
}

// framework is what is left of a call when the handler's own time is taken off: total − handler. It needs the row's costs.
func framework(s *rowState, row *result.Row) {
	if row.Latency == nil || !s.handled.known || s.handled.calls == 0 {
		return
	}
	handler := micros(float64(s.handled.took) / float64(s.handled.calls))
	row.Framework = &result.Framework{
		Handler: handler, Overhead: result.Round3(row.Latency.Mean - handler), Share: result.Round5((row.Latency.Mean - handler) / row.Latency.Mean),
	}
	if cpu := row.Server.CPU; cpu != nil && *cpu > 0 && row.Concurrency == 1 {
		row.Framework.CPU = result.Ptr(result.Round3(*cpu - handler))
		row.Framework.CPUShare = result.Ptr(result.Round5((*cpu - handler) / *cpu))
	}
}
