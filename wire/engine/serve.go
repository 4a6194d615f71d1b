package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// maxQuestion bounds a line that an engine is asked, bytes: a paced one names each call's time.
const maxQuestion = 2 << 20

// A Bench makes the work of a stretch: everything that must not be timed is done when it returns. An error says that the
// engine has no such case, or can't set it up.
type Bench func(ctx context.Context, q Question) (Work, error)

// Serve answers the questions on in, one line each, until in or ctx ends. Lines that other answers on: what they return is
// written in place of an answer, unless it is nil; so an engine keeps the rest of the contender contract. wait paces the
// stretches that are to be; nil waits by a timer.
func Serve(ctx context.Context, in io.Reader, out io.Writer, bench Bench, wait Wait, other func(line string) any) error {
	if wait == nil {
		wait = byTimer
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxQuestion)
	enc := json.NewEncoder(out)
	for lines.Scan() && ctx.Err() == nil {
		line := bytes.TrimSpace(lines.Bytes())
		var said any
		switch {
		case len(line) == 0:
		case line[0] == '{':
			said = answer(ctx, line, bench, wait)
		default:
			said = other(string(line))
		}
		if said == nil {
			continue
		}
		if err := enc.Encode(said); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading questions: %w", err)
	}
	return nil
}

func answer(ctx context.Context, line []byte, bench Bench, wait Wait) Answer {
	q, err := ParseQuestion(line)
	if err == nil {
		var w Work
		if w, err = bench(ctx, q); err == nil && q.Due != nil {
			return runPaced(ctx, q, w, wait)
		}
		if err == nil {
			return run(ctx, q, w)
		}
	}
	return Answer{ID: q.ID, Error: err.Error()}
}
