package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Bounds of a question. A stretch of more calls is asked for in several questions.
const (
	MaxCalls   = 4096
	MaxCallers = 1024
	maxParts   = 16
)

// A Question asks an engine for a stretch: Calls operations of a case by Callers callers at a time.
type Question struct {
	ID      int64           `json:"id"`
	Case    string          `json:"case"`
	Input   json.RawMessage `json:"input,omitempty"` // what the case needs to know, an object
	Calls   int             `json:"calls"`
	Callers int             `json:"callers"`
}

// An Answer is what an engine says of a stretch. Times are in nanoseconds on its own monotonic clock.
type Answer struct {
	ID      int64              `json:"id"`
	Error   string             `json:"error,omitempty"`   // why the stretch could not be run at all
	NS      []int64            `json:"ns"`                // one per call that succeeded, in the order of a caller's calls
	Elapsed int64              `json:"elapsed_ns"`        // from the first call to the last reply, set-up left out
	CPU     *int64             `json:"cpu_ns,omitempty"`  // that the process used meanwhile
	User    *int64             `json:"user_ns,omitempty"` // of cpu_ns, in user mode
	Allocs  *int64             `json:"allocs,omitempty"`  // objects that it allocated meanwhile
	Bytes   *int64             `json:"alloc_bytes,omitempty"`
	Parts   map[string][]int64 `json:"parts,omitempty"`  // named shares of each call's time
	Failed  map[string]int64   `json:"failed,omitempty"` // calls that failed, by kind
	Why     string             `json:"why,omitempty"`    // of the first failure
	Checked int64              `json:"checked"`          // results that the engine verified after the clock had stopped
}

// ParseQuestion decodes a question. Unknown keys are an error: an engine that does not know what it is asked must not answer.
func ParseQuestion(line []byte) (q Question, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, fmt.Errorf("question: %w", err)
	}
	switch {
	case d.More():
		return q, errors.New("question: more than one on a line")
	case q.Case == "":
		return q, errors.New("question: no case")
	case q.Calls < 1 || q.Calls > MaxCalls:
		return q, fmt.Errorf("question: calls is %d; expected 1 to %d", q.Calls, MaxCalls)
	case q.Callers < 1 || q.Callers > MaxCallers:
		return q, fmt.Errorf("question: callers is %d; expected 1 to %d", q.Callers, MaxCallers)
	}
	return q, nil
}

// ParseAnswer decodes the answer to q, which took no longer than took. An engine that claims what can't be is not believed:
// calls that were not asked for, more time than passed here, more results verified than there are.
func ParseAnswer(line []byte, q Question, took time.Duration) (a Answer, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, fmt.Errorf("answer: %w", err)
	}
	switch {
	case d.More():
		return a, errors.New("answer: more than one on a line")
	case a.ID != q.ID:
		return a, fmt.Errorf("answer: id is %d; expected %d", a.ID, q.ID)
	case a.Error != "":
		return a, nil
	}
	return a, a.believable(q, took)
}

func (a Answer) believable(q Question, took time.Duration) error {
	failed := int64(0)
	for kind, n := range a.Failed {
		if n < 0 || n > int64(q.Calls) {
			return fmt.Errorf("answer: failed %.64q is %d; %d calls were asked for", kind, n, q.Calls)
		}
		failed += n
	}
	if total := int64(len(a.NS)) + failed; total != int64(q.Calls) {
		return fmt.Errorf("answer: %d calls in ns and failed; %d were asked for", total, q.Calls)
	}
	if a.Elapsed < 0 || a.Elapsed > int64(took) {
		return fmt.Errorf("answer: elapsed_ns is %d, and the whole stretch took %d", a.Elapsed, took.Nanoseconds())
	}
	if a.Checked < 0 || a.Checked > int64(len(a.NS)) {
		return fmt.Errorf("answer: checked is %d of %d results", a.Checked, len(a.NS))
	}
	for _, n := range []*int64{a.CPU, a.User, a.Allocs, a.Bytes} {
		if n != nil && *n < 0 {
			return fmt.Errorf("answer: cpu_ns, user_ns, allocs or alloc_bytes is %d", *n)
		}
	}
	if a.User != nil && (a.CPU == nil || *a.User > *a.CPU) {
		return fmt.Errorf("answer: user_ns is %d, more than cpu_ns", *a.User)
	}
	return a.times(q)
}

// times looks into the single times: none is longer than the stretch, and together they fit into its callers.
func (a Answer) times(q Question) error {
	var sum int64
	for _, ns := range a.NS {
		if ns < 0 || ns > a.Elapsed {
			return fmt.Errorf("answer: a call took %d ns, the stretch %d", ns, a.Elapsed)
		}
		sum += ns
	}
	if sum > a.Elapsed*int64(q.Callers) {
		return fmt.Errorf("answer: its calls took %d ns, more than %d callers have in %d ns", sum, q.Callers, a.Elapsed)
	}
	if len(a.Parts) > maxParts {
		return fmt.Errorf("answer: %d parts; expected at most %d", len(a.Parts), maxParts)
	}
	for name, part := range a.Parts {
		if len(part) > q.Calls {
			return fmt.Errorf("answer: part %.64q has %d times; %d calls were asked for", name, len(part), q.Calls)
		}
		for _, ns := range part {
			if ns < 0 || ns > a.Elapsed {
				return fmt.Errorf("answer: part %.64q took %d ns, the stretch %d", name, ns, a.Elapsed)
			}
		}
	}
	return nil
}
