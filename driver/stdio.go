package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// An Asker sends one line to an engine in another process and returns the line that answers it. Its error is ctx's when no
// answer came in time, and an io.EOF when the engine is gone.
type Asker interface {
	Ask(ctx context.Context, question []byte) ([]byte, error)
}

// Stdio has an engine in any language perform an operation in its own process and time it there:
//
//	{"id":7,"case":"digest/32B","input":{"note":"…"}}
//	{"id":7,"ns":1234,"digest":"…","allocs":2,"alloc_bytes":96}   or   {"id":7,"error":"…"}
//
// digest is the SHA-256, in hex, of the operation's result, made outside ns; allocs and alloc_bytes may be left out. The
// pipe is in nobody's time, because the engine holds the clock; an engine that claims more time than passed here is not
// believed. It must not be copied once it has opened.
type Stdio struct {
	Asker  Asker
	Case   string
	Input  any    // encoded as JSON once
	Digest string // of the result that is expected

	id atomic.Int64 // callers share the engine, so their ids are one sequence
}

// Digest is the operation of the reference engines: the result is the SHA-256, in hex, of a note of n bytes.
func Digest(engine Asker, name string, n int) *Stdio {
	note := noteText(n)
	result := hexSHA256(note)
	return &Stdio{Asker: engine, Case: name, Input: map[string]string{"note": note}, Digest: hexSHA256(result)}
}

func hexSHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Open makes a Caller. Callers of one engine take turns.
func (s *Stdio) Open(context.Context) (load.Caller, error) {
	if len(s.Digest) != 2*sha256.Size {
		return nil, fmt.Errorf("case %q: digest %q: want %d hex digits", s.Case, s.Digest, 2*sha256.Size)
	}
	rest, err := json.Marshal(struct {
		Case  string `json:"case"`
		Input any    `json:"input"`
	}{s.Case, s.Input})
	if err != nil {
		return nil, fmt.Errorf("case %q: its input: %w", s.Case, err)
	}
	rest[0] = ','
	return &stdioCall{Stdio: s, rest: rest}, nil
}

// A stdioCall is one VU of an engine.
type stdioCall struct {
	*Stdio
	rest   []byte // of a request, behind its id
	out    []byte
	broken error
}

// A stdioReply is what an engine answers.
type stdioReply struct {
	ID         *int64           `json:"id"`
	NS         *float64         `json:"ns"`
	Digest     string           `json:"digest"`
	Error      *json.RawMessage `json:"error"`
	Allocs     *float64         `json:"allocs"`
	AllocBytes *float64         `json:"alloc_bytes"`
}

// Call makes one call.
func (c *stdioCall) Call(ctx context.Context, m record.Mark) error {
	if c.broken != nil {
		return c.broken
	}
	id := c.id.Add(1)
	c.out = append(strconv.AppendInt(append(c.out[:0], `{"id":`...), id, 10), c.rest...)
	begin := time.Now()
	line, err := c.Asker.Ask(ctx, c.out)
	took := time.Since(begin)
	if err != nil {
		return c.breakOff(id, err)
	}
	r, err := parseStdio(line, took)
	switch {
	case err != nil:
		return record.Fail(record.BadReply, fmt.Errorf("call %d: %w: %q", id, err, excerpt(line)))
	case *r.ID != id:
		return record.Fail(record.WrongID, fmt.Errorf("call %d: a reply to %d", id, *r.ID))
	case r.Error != nil:
		return record.Fail(record.ErrorField, fmt.Errorf("call %d: %s", id, excerpt(*r.Error)))
	case r.Digest != c.Digest:
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: the result's digest is %.64q, want %s", id, r.Digest, c.Digest))
	}
	m.Took(time.Duration(*r.NS))
	if r.Allocs != nil && r.AllocBytes != nil {
		m.Alloc(int64(*r.Allocs), int64(*r.AllocBytes))
	}
	return nil
}

// breakOff fails a call that got no answer, and all later ones: an answer that is late would be the wrong one.
func (c *stdioCall) breakOff(id int64, err error) error {
	kind := record.Closed
	switch {
	case errors.Is(err, io.EOF):
		kind = record.Crashed
	case errors.Is(err, context.Canceled):
		kind = record.Other
	case errors.Is(err, context.DeadlineExceeded):
		kind = record.Timeout
	}
	later := kind
	if kind != record.Crashed {
		later = record.Closed
	}
	c.broken = record.Fail(later, fmt.Errorf("not asked any more since call %d failed: %v", id, err))
	return record.Fail(kind, fmt.Errorf("call %d: %w", id, err))
}

// maxNumber is the largest integer that every language's JSON keeps.
const maxNumber = 1 << 53

// parseStdio decodes a reply to a call that took no longer than took.
func parseStdio(line []byte, took time.Duration) (r stdioReply, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	switch {
	case r.ID == nil:
		return r, errors.New("no id")
	case r.Error != nil:
		return r, nil
	case r.NS == nil:
		return r, errors.New("neither ns nor error")
	case *r.NS < 0 || *r.NS > float64(took):
		return r, fmt.Errorf("ns is %v, and the whole call took %d", *r.NS, took.Nanoseconds())
	}
	for _, n := range []*float64{r.Allocs, r.AllocBytes} {
		if n != nil && (*n < 0 || *n > maxNumber) {
			return r, fmt.Errorf("allocs or alloc_bytes is %v", *n)
		}
	}
	return r, nil
}
