package opserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"toll/wire/zap"
)

// An Operation is something that can be called, in no envelope's terms.
type Operation struct {
	Name, Summary string
	Input, Output json.RawMessage // JSON Schema

	call   func(ctx context.Context, decode func(in any) error) (any, error)
	binary func(ctx context.Context, input, dst []byte) ([]byte, error)
	json   func(ctx context.Context, input, dst []byte) ([]byte, error)
	reads  bool  // it takes no input: REST calls it by GET
	err    error // what is wrong with its types
}

// Define makes an operation of a function from one struct to another, in JSON and in binary. An operation waits for nothing
// and keeps nothing of its input: envelopes may answer on the goroutine that reads, from the memory that was read into. A field of the input that a caller leaves out is
// zero, in every envelope.
func Define[In, Out any](name, summary string, h func(ctx context.Context, in In) (Out, error)) Operation {
	input, inErr := inputSchema[In]()
	output, outErr := outputSchema[Out]()
	inCodec, inBinary := zap.NewCodec[In]()
	outCodec, outBinary := zap.NewCodec[Out]()
	call := func(ctx context.Context, decode func(any) error) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, err
		}
		return h(ctx, in)
	}
	binary := func(ctx context.Context, input, dst []byte) ([]byte, error) {
		var in In
		// The texts of in are the request's own memory: an operation that keeps one must copy it.
		if err := inCodec.View(input, &in); err != nil {
			return dst, &Error{Malformed, err.Error()}
		}
		out, err := h(ctx, in)
		if err != nil {
			return dst, err
		}
		return outCodec.Append(dst, &out), nil
	}
	flatIn, flatOut := newFlat[In](), newFlat[Out]()
	text := func(ctx context.Context, input, dst []byte) ([]byte, error) {
		var in In
		if !flatIn.decode(input, unsafe.Pointer(&in)) {
			var err error
			if in, err = decodeJSON[In](input); err != nil {
				return dst, err
			}
		}
		out, err := h(ctx, in)
		if err != nil {
			return dst, err
		}
		if dst, done := flatOut.append(dst, unsafe.Pointer(&out)); done {
			return dst, nil
		}
		return appendJSON(dst, out)
	}
	in := reflect.TypeFor[In]()
	return Operation{
		Name: name, Summary: summary, Input: input, Output: output, call: call, binary: binary, json: text,
		reads: in.Kind() == reflect.Struct && in.NumField() == 0, err: errors.Join(inErr, outErr, inBinary, outBinary),
	}
}

// Call calls the operation. The envelope's decode fills in the input; what Call returns is the output to encode, or the
// error of decode or of the operation as it was.
func (o *Operation) Call(ctx context.Context, decode func(in any) error) (any, error) {
	return o.call(ctx, decode)
}

// CallBinary calls the operation with an op-call body and appends the body of its output to dst. The operation may keep
// nothing of input.
func (o *Operation) CallBinary(ctx context.Context, input, dst []byte) ([]byte, error) {
	return o.binary(ctx, input, dst)
}

// CallJSON calls the operation with a JSON object and appends the JSON of its output to dst. The operation may keep nothing
// of input.
func (o *Operation) CallJSON(ctx context.Context, input, dst []byte) ([]byte, error) {
	return o.json(ctx, input, dst)
}

// decodeJSON and appendJSON are functions of their own so that only who needs encoding/json pays for it.
func decodeJSON[T any](input []byte) (v T, err error) {
	err = decodeStrictly(bytes.NewReader(input), &v)
	return v, err
}

func appendJSON(dst []byte, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	return append(dst, body...), err
}

// A Registry holds the operations that a server offers.
type Registry struct{ ops []Operation }

// NewRegistry makes a registry, if every name can stand in every envelope, is there once, and its types have schemas.
func NewRegistry(ops ...Operation) (Registry, error) {
	r := Registry{slices.Clone(ops)}
	for i, op := range r.ops {
		if op.err != nil {
			return Registry{}, fmt.Errorf("operation %s: %w", op.Name, op.err)
		}
		if !validName(op.Name) {
			return Registry{}, fmt.Errorf("operation %q: want a name of a-z, 0-9 and _, from a letter, at most 64 long, and not %q", op.Name, listName)
		}
		if slices.ContainsFunc(r.ops[:i], func(o Operation) bool { return o.Name == op.Name }) {
			return Registry{}, fmt.Errorf("operation %s: defined twice", op.Name)
		}
	}
	return r, nil
}

// listName is where an envelope may list the operations; none may be called so.
const listName = "ops"

func validName(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' || s[0] > 'z' || s == listName {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// Operations returns the operations in the order of their definition.
func (r Registry) Operations() []Operation { return slices.Clone(r.ops) }

// Lookup returns the named operation, nil if there is none.
func (r Registry) Lookup(name string) *Operation {
	for i := range r.ops {
		if r.ops[i].Name == name {
			return &r.ops[i]
		}
	}
	return nil
}

// The codes of an [Error].
const (
	Malformed   = "malformed"   // the input does not decode
	TooLarge    = "too_large"   // the input is larger than the server takes
	NotFound    = "not_found"   // no such operation
	Invalid     = "invalid"     // the input decodes, and the operation refuses it
	TimedOut    = "timed_out"   // the input did not arrive in time
	Unavailable = "unavailable" // the server is shutting down
	Internal    = "internal"    // any other error of an operation
)

// An Error is a refusal by an operation or an envelope. Each envelope has its own way of saying the code.
type Error struct{ Code, Message string }

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }
