package driver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// A Step is one request of a session. In its path, header and body, ${name} stands for a value that an earlier step of the
// same iteration has kept, ${vu} and ${iteration} for the numbers of the VU and of its iteration; ${vu:5} is the value with
// zeros before it to five characters. A header line with a value that was not kept is left out.
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
	Also   []string            // further parts that its time is counted in
	Eased  bool                // a status other than 2xx fails it; that its reply is not the expected one is counted among the failed parts and fails nothing
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

var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([1-9]))?\}`)

// A template is a text with places for kept values, taken apart once.
type template []piece

// A piece is text, or a value's place.
type piece struct {
	text  string
	name  string // of the value; "" for text
	width int    // it is filled up to with zeros
}

func newTemplate(text string) template {
	var out template
	for {
		m := placeholder.FindStringSubmatchIndex(text)
		if m == nil {
			return append(out, piece{text: text})
		}
		p := piece{name: text[m[2]:m[3]]}
		if m[4] >= 0 {
			p.width = int(text[m[4]] - '0')
		}
		out = append(out, piece{text: text[:m[0]]}, p)
		text = text[m[1]:]
	}
}

// append appends the text with its values in their places; whole is false when one of them is not there.
func (t template) append(dst []byte, values map[string]string) (out []byte, whole bool) {
	whole = true
	for i := range t {
		p := &t[i]
		if p.name == "" {
			dst = append(dst, p.text...)
			continue
		}
		v := values[p.name]
		whole = whole && v != ""
		for range p.width - len(v) {
			dst = append(dst, '0')
		}
		dst = append(dst, v...)
	}
	return dst, whole
}

// A plannedStep is a step whose texts are taken apart.
type plannedStep struct {
	*Step
	path, body template
	header     []template
}

// A session is the Caller of a sequence of steps: one Call is one iteration.
type session struct {
	conn      *Conn
	steps     []plannedStep
	values    map[string]string
	iteration int64
	scratch   []byte // for header lines
	body      []byte
	last      time.Time // when the connection was made, or last used
	wait      load.Wait // for the end of a step's pause
	waited    func()    // frees it
}

// keptIdle is how long an idle connection is trusted: common servers close one after five seconds, and a session that waits
// for its turn in a block must not begin on a connection that is just being closed.
const keptIdle = 4 * time.Second

func newSession(c *Conn, h *HTTP) *session {
	c.in.keepsHead = true
	s := &session{conn: c, last: time.Now(), values: map[string]string{"vu": strconv.FormatInt(h.vus.Add(1), 10)}, wait: load.ByTimer, waited: func() {}}
	if h.Pauses != nil && slices.ContainsFunc(h.Steps, func(step Step) bool { return step.Think > 0 }) {
		s.wait, s.waited = h.Pauses()
	}
	for i := range h.Steps {
		p := plannedStep{Step: &h.Steps[i], path: newTemplate(h.Steps[i].Path), body: newTemplate(h.Steps[i].Body)}
		for _, line := range p.Header {
			p.header = append(p.header, newTemplate(line))
		}
		s.steps = append(s.steps, p)
	}
	return s
}

// Call makes one iteration. Its time is the sum of its steps'; each step's is a part.
func (s *session) Call(ctx context.Context, m record.Mark) error {
	vu := s.values["vu"]
	clear(s.values)
	s.iteration++
	s.values["vu"], s.values["iteration"] = vu, strconv.FormatInt(s.iteration, 10)
	if time.Since(s.last) > keptIdle {
		s.conn.Close()
		if err := s.conn.connect(ctx); err != nil {
			return err
		}
	}
	defer func() { s.last = time.Now() }()
	var sum time.Duration
	doubted := false
	for i := range s.steps {
		step := &s.steps[i]
		if step.Needs != "" && s.values[step.Needs] == "" {
			continue
		}
		begin := time.Now()
		err := s.step(ctx, step)
		if step.Eased && unexpected(err) {
			m.BadPart(step.Name)
			err, doubted = nil, true
		}
		took := time.Since(begin)
		sum += took
		m.Took(sum)
		if err != nil {
			m.BadPart(step.Name)
			return record.Fail(record.KindOf(err), fmt.Errorf("step %s: %w", step.Name, err))
		}
		m.Part(step.Name, took)
		for _, name := range step.Also {
			m.Part(name, took)
		}
		if step.Think > 0 {
			s.wait(ctx, begin, took+step.Think)
			m.Paused(time.Since(begin) - took)
		}
	}
	if doubted {
		m.Doubt()
	}
	return nil
}

// unexpected reports whether a reply came that was not the expected one.
func unexpected(err error) bool {
	kind := record.KindOf(err)
	return err != nil && (kind == record.WrongContent || kind == record.BadReply || kind == record.ErrorField)
}

func (s *session) step(ctx context.Context, step *plannedStep) error {
	path, _ := step.path.append(nil, s.values)
	req := RawRequest{Method: step.Method, Path: string(path)}
	head := s.scratch[:0]
	for _, line := range step.header {
		from := len(head)
		var whole bool
		if head, whole = line.append(head, s.values); !whole {
			head = head[:from]
			continue
		}
		if bytes.ContainsAny(head[from:], "\r\n") {
			return record.Fail(record.Other, fmt.Errorf("header %q: a value with a line end", head[from:]))
		}
		head = append(head, '\r', '\n')
	}
	s.scratch, req.Header = head, string(head)
	if step.Body != "" {
		s.body, _ = step.body.append(s.body[:0], s.values)
		req.Body = s.body
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
	return s.keep(step.Step, reply)
}

// keep takes values out of a reply: of its head, and of its JSON.
func (s *session) keep(step *Step, reply Reply) error {
	for name, field := range step.Fields {
		if v, ok := fieldOf(s.conn.in.lastHead, field); ok {
			s.values[name] = v
		} else {
			delete(s.values, name)
		}
	}
	if len(step.Keep) == 0 {
		return nil
	}
	text, err := reply.json()
	if err != nil {
		return err
	}
	for name, path := range step.Keep {
		v, ok := find(text, path)
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
func (s *session) Close() error {
	s.waited()
	return s.conn.Close()
}
