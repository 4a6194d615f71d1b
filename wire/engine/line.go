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
	MaxCalls   = 1 << 16
	MaxCallers = 1024
	maxParts   = 16
)

// A Question asks an engine for a stretch: Calls operations of a case by Callers callers at a time. With Due the stretch is
// paced: call i is made when it is due, and by nobody, dropped, when so many are in flight already.
type Question struct {
	ID      int64           `json:"id"`
	Case    string          `json:"case"`
	Input   json.RawMessage `json:"input,omitempty"` // what the case needs to know, an object
	Calls   int             `json:"calls"`
	Callers int             `json:"callers"`
	Due     []int64         `json:"due_ns,omitempty"` // when each call is due, ns after the one before, the first after the start
}

// An Answer is what an engine says of a stretch. Times are in nanoseconds on its own monotonic clock.
type Answer struct {
	ID       int64              `json:"id"`
	Error    string             `json:"error,omitempty"`     // why the stretch could not be run at all
	NS       []int64            `json:"ns"`                  // one per call that succeeded, in the order of a caller's calls
	Elapsed  int64              `json:"elapsed_ns"`          // from the first call to the last reply, set-up left out
	Active   *int64             `json:"active_ns,omitempty"` // of each caller from its first call to its last reply, summed
	Paced    *Paced             `json:"paced,omitempty"`     // of a paced stretch, where NS has one for every call, in their order, -1 without success
	CPU      *int64             `json:"cpu_ns,omitempty"`    // that the process used meanwhile
	User     *int64             `json:"user_ns,omitempty"`   // of cpu_ns, in user mode
	Allocs   *int64             `json:"allocs,omitempty"`    // objects that it allocated meanwhile
	Bytes    *int64             `json:"alloc_bytes,omitempty"`
	Parts    map[string][]int64 `json:"parts,omitempty"`     // named shares of each call's time
	Failed   map[string]int64   `json:"failed,omitempty"`    // calls that failed, by kind
	FailedNS int64              `json:"failed_ns,omitempty"` // time that they took
	Why      string             `json:"why,omitempty"`       // of the first failure
	Checked  int64              `json:"checked"`             // results that the engine verified after the clock had stopped
}

// Paced is what an engine says of a paced stretch beside its calls' own times, which count from when each was sent.
type Paced struct {
	Late     []int64 `json:"late_ns"`      // how long after it was due each call was sent; -1 for one that was dropped
	Most     int     `json:"most"`         // calls that were in flight at a time
	InFlight int64   `json:"in_flight_ns"` // the number in flight, summed over time
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
	case q.Due != nil && len(q.Due) != q.Calls:
		return q, fmt.Errorf("question: due_ns has %d times for %d calls", len(q.Due), q.Calls)
	}
	_, err = q.paced()
	return q, err
}

// longest bounds a paced stretch.
const longest = time.Hour

// paced returns how long after the start the last call is due; 0 for a stretch that is not paced.
func (q Question) paced() (last time.Duration, err error) {
	for i, gap := range q.Due {
		if gap < 0 || gap > int64(longest-last) {
			return 0, fmt.Errorf("question: due_ns of call %d is %d, %v after the start; expected times that grow, to %v at most", i, gap, last, longest)
		}
		last += time.Duration(gap)
	}
	return last, nil
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
	if a.Elapsed < 0 || a.Elapsed > int64(took) {
		return fmt.Errorf("answer: elapsed_ns is %d, and the whole stretch took %d", a.Elapsed, took.Nanoseconds())
	}
	if q.Due != nil {
		return a.pacedBelievable(q, failed)
	}
	if total := int64(len(a.NS)) + failed; total != int64(q.Calls) {
		return fmt.Errorf("answer: %d calls in ns and failed; %d were asked for", total, q.Calls)
	}
	if a.Paced != nil {
		return errors.New("answer: paced, and the question was not")
	}
	return a.account(q, int64(len(a.NS)))
}

// account looks into what is told of the stretch as a whole.
func (a Answer) account(q Question, succeeded int64) error {
	if a.Checked < 0 || a.Checked > succeeded {
		return fmt.Errorf("answer: checked is %d of %d results", a.Checked, succeeded)
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

// pacedBelievable holds a paced stretch to its schedule: every call is a success, a failure or dropped, none was sent before
// it was due, and none came back after the end.
func (a Answer) pacedBelievable(q Question, failed int64) error {
	if a.Paced == nil {
		return errors.New("answer: no paced; the engine does not keep a schedule")
	}
	if len(a.NS) != q.Calls || len(a.Paced.Late) != q.Calls {
		return fmt.Errorf("answer: %d calls in ns, %d in late_ns; %d were due", len(a.NS), len(a.Paced.Late), q.Calls)
	}
	var due, without, dropped int64
	for i, ns := range a.NS {
		due += q.Due[i]
		late := a.Paced.Late[i]
		switch {
		case ns < -1 || late < -1 || ns >= 0 && late < 0:
			return fmt.Errorf("answer: call %d took %d ns, sent %d ns late", i, ns, late)
		case late >= 0 && (ns > a.Elapsed || late > a.Elapsed || due > a.Elapsed || max(ns, 0)+late+due > a.Elapsed):
			return fmt.Errorf("answer: call %d, due at %d ns, was sent %d ns late and took %d ns, in a stretch of %d", i, due, late, ns, a.Elapsed)
		}
		if ns < 0 {
			without++
		}
		if late < 0 {
			dropped++
		}
	}
	if without != failed+dropped {
		return fmt.Errorf("answer: %d calls did not succeed, %d failed and %d were dropped", without, failed, dropped)
	}
	if p := a.Paced; p.Most < 0 || p.Most > q.Callers || p.InFlight < 0 || p.InFlight > a.Elapsed*int64(q.Callers) {
		return fmt.Errorf("answer: most is %d and in_flight_ns %d, with %d callers and %d ns", p.Most, p.InFlight, q.Callers, a.Elapsed)
	}
	return a.account(q, int64(q.Calls)-without)
}

// times looks into the single times: none is longer than the stretch, and together they fit into its callers.
func (a Answer) times(q Question) error {
	var sum int64
	for _, ns := range a.NS {
		if ns == -1 && q.Due != nil {
			continue
		}
		if ns < 0 || ns > a.Elapsed {
			return fmt.Errorf("answer: a call took %d ns, the stretch %d", ns, a.Elapsed)
		}
		sum += ns
	}
	if a.FailedNS < 0 || a.FailedNS > a.Elapsed*int64(q.Callers) {
		return fmt.Errorf("answer: failed_ns is %d, with %d callers and %d ns", a.FailedNS, q.Callers, a.Elapsed)
	}
	if sum += a.FailedNS; sum > a.Elapsed*int64(q.Callers) {
		return fmt.Errorf("answer: its calls took %d ns, more than %d callers have in %d ns", sum, q.Callers, a.Elapsed)
	}
	if a.Active != nil && (*a.Active < sum || *a.Active > a.Elapsed*int64(q.Callers)) {
		return fmt.Errorf("answer: active_ns is %d; its calls took %d ns and %d callers have %d ns each", *a.Active, sum, q.Callers, a.Elapsed)
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
