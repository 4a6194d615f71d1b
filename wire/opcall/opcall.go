// Package opcall is the op-call plane: an operation's name in an HTTP path, its input and output as binary bodies. It knows
// paths, the media type and the shape of an error; the bodies themselves are ZAP messages, which package zap makes. It
// neither serves nor calls anything.
package opcall

import (
	"fmt"
	"strings"
)

// Prefix is where operations are called: POST to Prefix and the operation's name.
const Prefix = "/.well-known/zip/op/"

// MediaType is that of every body.
const MediaType = "application/zap"

// maxName bounds an operation's name.
const maxName = 128

// An Error is the body of a reply whose status is no success: a ZAP message of these fields in this order.
type Error struct {
	Status  int32
	Code    string
	Message string
}

// Error returns status, code and message.
func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// Path returns the path of an operation. Its name may not hold / ? # %, white space or control characters; ours are ASCII
// and at most 128 bytes besides.
func Path(name string) (string, error) {
	if err := check(name); err != nil {
		return "", err
	}
	return Prefix + name, nil
}

// Name returns the operation that a path calls.
func Name(path string) (string, error) {
	name, ok := strings.CutPrefix(path, Prefix)
	if !ok {
		return "", fmt.Errorf("op-call: path %.100q does not begin with %s", path, Prefix)
	}
	return name, check(name)
}

func check(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("op-call: operation name of %d bytes; expected 1 to %d", len(name), maxName)
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || strings.ContainsRune("/?#%", c) {
			return fmt.Errorf("op-call: operation name %.100q holds %q", name, c)
		}
	}
	return nil
}
