package driver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"toll/lab/record"
)

// A Step is one request of a session. In its path, header and body, ${name} stands for a value that an earlier step of the
// same iteration has kept, ${vu} and ${iteration} for the numbers of the VU and of its iteration.
type Step struct {
	Name   string
	Method string
	Path   string
	Header []string // "Name: value"
	Body   string   // "" for none
	Expect Expect
	Keep   map[string][]string // by name: where in the JSON reply the value stands
	Fields map[string]string   // by name: the header field of the reply that holds the value; one that is not there leaves it unset
	Think  time.Duration       // pause behind the step; in nobody's time
	Needs  string              // the name of a value: without it the step is left out
}

// Check returns what is wrong with a session's steps.
func Check(steps []Step) error {
	known := map[string]bool{"vu": true, "iteration": true}
	for i, s := range steps {
		switch {
		case s.Name == "":
			return fmt.Errorf("step %d has no name", i+1)
		case s.Needs != "" && !known[s.Needs]:
			return fmt.Errorf("step %s needs %q, which no earlier step keeps", s.Name, s.Needs)
		}
		if err := checkPath(placeholder.ReplaceAllString(cmp.Or(s.Path, "/"), "x")); err != nil {
			return fmt.Errorf("step %s: %w", s.Name, err)
		}
		for _, text := range append([]string{s.Path, s.Body}, s.Header...) {
			for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
				if !known[m[1]] {
					return fmt.Errorf("step %s uses ${%s}, which no earlier step keeps", s.Name, m[1])
				}
			}
		}
		for name := range s.Keep {
			known[name] = true
		}
		for name := range s.Fields {
			known[name] = true
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// A session is the Caller of a sequence of steps: one Call is one iteration.
type session struct {
	conn      *Conn
	steps     []Step
	values    map[string]string
	iteration int64
}

func newSession(c *Conn, h *HTTP) *session {
	c.in.keepsHead = true
	return &session{conn: c, steps: h.Steps, values: map[string]string{"vu": strconv.FormatInt(h.vus.Add(1), 10)}}
}

// Call makes one iteration. Its time is the sum of its steps'; each step's is a part.
func (s *session) Call(ctx context.Context, m record.Mark) error {
	vu := s.values["vu"]
	clear(s.values)
	s.iteration++
	s.values["vu"], s.values["iteration"] = vu, strconv.FormatInt(s.iteration, 10)
	var sum time.Duration
	for i := range s.steps {
		step := &s.steps[i]
		if step.Needs != "" && s.values[step.Needs] == "" {
			continue
		}
		begin := time.Now()
		err := s.step(ctx, step)
		took := time.Since(begin)
		sum += took
		m.Took(sum)
		if err != nil {
			m.BadPart(step.Name)
			return record.Fail(record.KindOf(err), fmt.Errorf("step %s: %w", step.Name, err))
		}
		m.Part(step.Name, took)
		if step.Think > 0 {
			pause(ctx, step.Think)
			m.Paused(time.Since(begin) - took)
		}
	}
	return nil
}

// pause waits, but not beyond ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *session) step(ctx context.Context, step *Step) error {
	req := RawRequest{Method: step.Method, Path: s.fill(step.Path)}
	var header strings.Builder
	for _, line := range step.Header {
		line = s.fill(line)
		if strings.ContainsAny(line, "\r\n") {
			return record.Fail(record.Other, fmt.Errorf("header %q: a value with a line end", line))
		}
		header.WriteString(line + "\r\n")
	}
	req.Header = header.String()
	if step.Body != "" {
		req.Body = []byte(s.fill(step.Body))
	}
	if err := checkPath(cmp.Or(req.Path, "/")); err != nil {
		return record.Fail(record.Other, err)
	}
	reply, err := s.conn.Do(ctx, &req)
	if err != nil {
		return err
	}
	if err := step.Expect.check(reply); err != nil {
		return err
	}
	return s.keep(step, reply.Body)
}

// fill puts kept values in their places.
func (s *session) fill(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(m string) string { return s.values[m[2:len(m)-1]] })
}

// keep takes values out of a JSON reply, or of the last data line of an event stream.
func (s *session) keep(step *Step, body []byte) error {
	for name, field := range step.Fields {
		if v, ok := fieldOf(s.conn.in.lastHead, field); ok {
			s.values[name] = v
		}
	}
	if len(step.Keep) == 0 {
		return nil
	}
	if i := bytes.LastIndex(body, []byte("data: ")); i >= 0 && !bytes.HasPrefix(body, []byte("{")) {
		body = body[i+len("data: "):]
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return record.Fail(record.BadReply, fmt.Errorf("the body is no JSON: %w", err))
	}
	for name, path := range step.Keep {
		v, ok := lookUp(doc, path)
		if !ok {
			return record.Fail(record.WrongContent, errors.New("nothing at "+strings.Join(path, ".")+" to keep as "+name))
		}
		s.values[name] = jsonText(v)
	}
	return nil
}

// fieldOf returns the value of the first field of a name in a head that was parsed before.
func fieldOf(head []byte, name string) (string, bool) {
	_, fields, more := bytes.Cut(head, crlf)
	for more {
		var line []byte
		line, fields, more = bytes.Cut(fields, crlf)
		if n, v, err := parseField(line); err == nil && is(n, strings.ToLower(name)) {
			return string(v), true
		}
	}
	return "", false
}

// Close closes the connection.
func (s *session) Close() error { return s.conn.Close() }
