package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds a plan or manifest; both are a screenful.
const maxFile = 1 << 20

// A SyntaxError is a plan or manifest that can't be used, and the place in it.
type SyntaxError struct {
	File         string
	Line, Column int // 1-based; 0 when the file as a whole is meant
	Msg          string
}

// Error returns file:line:column: message.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Unmarshal decodes strict YAML into v: an unknown key, a duplicate key, a wrong type or a second document is a
// *SyntaxError with file, line and column.
func Unmarshal(file string, data []byte, v any) (err error) {
	// The YAML library panics on some malformed input (a tagged null where a list is expected); that is the file's fault.
	defer func() {
		if r := recover(); r != nil {
			err = &SyntaxError{File: file, Msg: fmt.Sprintf("not usable as YAML: %v", r)}
		}
	}()
	if len(data) > maxFile {
		return &SyntaxError{File: file, Msg: fmt.Sprintf("%d bytes; at most %d", len(data), maxFile)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	err = dec.Decode(v)
	if errors.Is(err, io.EOF) {
		return &SyntaxError{File: file, Msg: "empty file"}
	}
	if err != nil {
		return syntaxError(file, err, v)
	}
	var rest any
	if err := dec.Decode(&rest); !errors.Is(err, io.EOF) {
		return &SyntaxError{File: file, Msg: "more than one YAML document; expected one"}
	}
	return nil
}

// ErrorAt returns a *SyntaxError with msg for the value at a YAML path such as "$.probe.timeout"; without the value, for
// its nearest ancestor that is there.
func ErrorAt(file string, data []byte, path, msg string) error {
	e := &SyntaxError{File: file, Line: 1, Column: 1, Msg: msg}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return e
	}
	for path != "" && path != "$" {
		if p, err := yaml.PathString(path); err == nil {
			if n, err := p.FilterFile(f); err == nil && n != nil {
				pos := n.GetToken().Position
				e.Line, e.Column = pos.Line, pos.Column
				return e
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return e
}

func syntaxError(file string, err error, v any) error {
	e := &SyntaxError{File: file, Msg: err.Error()}
	var ye yaml.Error
	if errors.As(err, &ye) {
		e.Msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	if _, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		if name, found := strings.CutPrefix(e.Msg, "unknown field "); found {
			e.Msg += meant(strings.Trim(name, `"`), v)
		}
	}
	return e
}
