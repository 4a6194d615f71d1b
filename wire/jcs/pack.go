package jcs

import (
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// The pack: documents that a canonicalizer must refuse, and some that it must not.
//
//go:embed pack.json
var packText []byte

// A Case is a document with what a canonicalizer must make of it: Output, or a refusal.
type Case struct {
	Name   string
	Input  []byte
	Output string // the canonical form; empty when Error is not
	Error  Code   // why it is refused
	Offset int    // where
}

// Pack returns the conformance pack: what RFC 8785 and RFC 8259 refuse, byte by byte, and what they do not.
func Pack() ([]Case, error) {
	var in []struct {
		Name, Input, Hex, Open, Close, Output string
		Repeat, Offset                        int
		Error                                 Code
	}
	if err := json.Unmarshal(packText, &in); err != nil {
		return nil, fmt.Errorf("the embedded pack: %w", err)
	}
	out := make([]Case, len(in))
	for i, c := range in {
		out[i] = Case{c.Name, []byte(c.Input), c.Output, c.Error, c.Offset}
		switch {
		case c.Hex != "":
			b, err := hex.DecodeString(c.Hex)
			if err != nil {
				return nil, fmt.Errorf("the embedded pack: %s: %w", c.Name, err)
			}
			out[i].Input = b
		case c.Repeat > 0:
			out[i].Input = []byte(strings.Repeat(c.Open, c.Repeat) + strings.Repeat(c.Close, c.Repeat))
		}
	}
	return out, nil
}
