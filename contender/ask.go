package contender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// statsTimeout is how long a process may take to answer stats.
const statsTimeout = 2 * time.Second

// Ask writes one line to the process' stdin and returns the line of JSON that answers it, whatever it holds. Asks take
// turns. An error is ctx's when no answer came in time, and an io.EOF when the process has ended. After an unanswered ask
// every later one fails, because an answer could then be the one to an earlier question.
func (p *Process) Ask(ctx context.Context, question []byte) ([]byte, error) {
	if err := p.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-p.turn }()
	if p.broken != nil {
		return nil, p.broken
	}
	answer, err := p.exchange(ctx, question, func(text []byte) bool {
		return isObject(text) && (bytes.Contains(text, []byte(`"id"`)) || !isStats(text))
	})
	if err != nil && !errors.Is(err, io.EOF) { // after the end, each ask finds that out by itself
		p.broken = fmt.Errorf("%s: can't be asked any more; earlier, %v", p.spec.Name, err)
	}
	return answer, err
}

func (p *Process) takeTurn(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for a turn to ask: %w", p.spec.Name, ctx.Err())
	}
}

// exchange writes a line and waits for the one that accept takes.
func (p *Process) exchange(ctx context.Context, question []byte, accept func([]byte) bool) ([]byte, error) {
	p.out.expect(accept)
	defer p.out.forget()
	if err := p.write(ctx, question); err != nil {
		return nil, err
	}
	select {
	case l := <-p.out.got:
		return answer(p.spec.Name, l)
	case <-p.out.over:
	case <-p.done: // where something else holds its stdout open
		p.drain(ctx)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: no answer: %w%s", p.spec.Name, ctx.Err(), p.out.instead())
	}
	select {
	case l := <-p.out.got: // its last line
		return answer(p.spec.Name, l)
	default:
		return nil, p.eof(ctx)
	}
}

func answer(name string, l line) ([]byte, error) {
	if l.cut {
		return nil, fmt.Errorf("%s: an answer of more than %d bytes that begins %s", name, maxLine, quote(l.text))
	}
	return l.text, nil
}

// write writes one line to stdin. A child that does not read must not hold us longer than ctx.
func (p *Process) write(ctx context.Context, text []byte) error {
	stdin := p.pipes.ours[0]
	broken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		stdin.SetWriteDeadline(time.Unix(1, 0))
		close(broken)
	})
	_, err := stdin.Write(append(text[:len(text):len(text)], '\n'))
	if !stop() {
		<-broken
		stdin.SetWriteDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: it does not read its stdin: %w", p.spec.Name, ctx.Err())
	}
	return p.eof(ctx)
}

// eof says why a process can't be talked to any more.
func (p *Process) eof(ctx context.Context) error {
	p.drain(ctx)
	if err := p.Err(); err != nil {
		return err
	}
	select {
	case <-p.done:
		return fmt.Errorf("%s: it was stopped: %w", p.spec.Name, io.EOF)
	default:
		return fmt.Errorf("%s: it closed its stdin or stdout: %w", p.spec.Name, io.EOF)
	}
}

// Stats is what a process says of itself. What it does not say is not known, and is not zero.
type Stats struct {
	Allocs, AllocBytes int64 // objects and bytes allocated since it started
	AllocsKnown        bool
	Heap               int64 // bytes of heap in use
	HeapKnown          bool
	Stack              int64 // bytes of stacks in use, where it says so
	GC                 int64 // collections since it started
	GOMAXPROCS         int   // 0 when it is not Go

	// Handled is how many calls its handlers have answered since it started, and HandlerNS how long they took, ns.
	Handled, HandlerNS int64
	HandledKnown       bool
}

// Stats asks the process for its own counts. An error is ErrNoStats when it does not answer within a short time, or has not
// done so before: it is asked no second time.
func (p *Process) Stats(ctx context.Context) (Stats, error) { return p.counts(ctx, "stats") }

// Collect asks the process to collect its garbage first, so that what Heap counts is what it holds on to.
func (p *Process) Collect(ctx context.Context) (Stats, error) { return p.counts(ctx, "collect") }

func (p *Process) counts(ctx context.Context, question string) (Stats, error) {
	if (p.spec.Probe != Probe{}) {
		return Stats{}, fmt.Errorf("%s: %w: it has a probe in place of our contract", p.spec.Name, ErrNoStats)
	}
	if err := p.takeTurn(ctx); err != nil {
		return Stats{}, err
	}
	defer func() { <-p.turn }()
	if p.mute != nil {
		return Stats{}, p.mute
	}
	short, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	text, err := p.exchange(short, []byte(question), isStats)
	switch {
	case err == nil:
		return parseStats(text)
	case errors.Is(err, io.EOF):
		return Stats{}, err
	case ctx.Err() != nil:
		err = fmt.Errorf("%s: %s: %w", p.spec.Name, question, ctx.Err())
	default:
		err = fmt.Errorf("%s: %w within %v", p.spec.Name, ErrNoStats, statsTimeout)
	}
	// A late answer would be taken for that to the next question.
	p.mute = fmt.Errorf("%w (%v)", ErrNoStats, err)
	if errors.Is(err, ErrNoStats) {
		p.mute = err
	}
	return Stats{}, err
}

// statsLine is the answer to stats. An id makes it the answer to something else.
type statsLine struct {
	ID         json.RawMessage `json:"id"`
	Allocs     *float64        `json:"allocs"`
	AllocBytes *float64        `json:"alloc_bytes"`
	Heap       *float64        `json:"heap"`
	Stack      *float64        `json:"stack"`
	GC         *float64        `json:"gc"`
	GOMAXPROCS *float64        `json:"gomaxprocs"`
	Handled    *float64        `json:"handled"`
	HandlerNS  *float64        `json:"handler_ns"`
}

func isObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t")
	return len(text) > 0 && text[0] == '{'
}

func isStats(text []byte) bool {
	_, err := parseStats(text)
	return err == nil
}

func parseStats(text []byte) (Stats, error) {
	var l statsLine
	if err := json.Unmarshal(text, &l); err != nil || l.ID != nil {
		return Stats{}, fmt.Errorf("%w: %s", ErrNoStats, quote(text))
	}
	known, good := false, true
	count := func(f *float64) int64 {
		if f == nil {
			return 0
		}
		known = true
		good = good && *f >= 0 && *f < math.MaxInt64
		return int64(*f)
	}
	s := Stats{
		Allocs: count(l.Allocs), AllocBytes: count(l.AllocBytes), AllocsKnown: l.Allocs != nil && l.AllocBytes != nil,
		Heap: count(l.Heap), HeapKnown: l.Heap != nil, Stack: count(l.Stack),
		GC: count(l.GC), GOMAXPROCS: int(count(l.GOMAXPROCS)),
		Handled: count(l.Handled), HandlerNS: count(l.HandlerNS), HandledKnown: l.Handled != nil && l.HandlerNS != nil,
	}
	if !known || !good {
		return Stats{}, fmt.Errorf("%w: %s", ErrNoStats, quote(text))
	}
	return s, nil
}
