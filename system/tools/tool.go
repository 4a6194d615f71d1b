package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Tool is one of a set. Call takes the arguments, a JSON object decoded into Go's own types, and returns what encodes to
// the result. It is safe for concurrent use.
type Tool struct {
	Name, About string
	Input       json.RawMessage // JSON Schema of the arguments
	Waits       bool            // it waits for others, or for a time
	Call        func(ctx context.Context, args map[string]any) (any, error)
}

// Backends say where what stands behind the tools listens.
type Backends struct {
	Catalogue string // http://host:port; of the second set
	Redis     string // host:port; of the second set
}

// The names of the sets.
const (
	V1 = "tmdevlab-v1"
	V2 = "tmdevlab-v2"
)

// Sets lists the names of the sets.
func Sets() []string { return []string{V1, V2} }

// Set returns the tools of a set, in the order of their authors' harness.
func Set(name string, b Backends) ([]Tool, error) {
	switch {
	case name == V1:
		return first(), nil
	case name == V2 && (b.Catalogue == "" || b.Redis == ""):
		return nil, fmt.Errorf("tools %s: they need a catalogue and a Redis server", V2)
	case name == V2:
		return newShop(b).tools(), nil
	}
	return nil, fmt.Errorf("tools %q: want one of %s", name, strings.Join(Sets(), ", "))
}

// serverType is what every result says of who made it.
const serverType = "toll"

// whole returns an argument that is a whole number within bounds; without the argument, its default.
func whole(args map[string]any, name string, byDefault, least, most int) (int, error) {
	v, there := args[name]
	if !there {
		return byDefault, nil
	}
	n, ok := v.(float64)
	if !ok || n != float64(int(n)) || int(n) < least || int(n) > most {
		return 0, fmt.Errorf("%s: want a whole number from %d to %d", name, least, most)
	}
	return int(n), nil
}

// text returns an argument that is a text; without the argument, its default.
func text(args map[string]any, name, byDefault string) (string, error) {
	v, there := args[name]
	if !there {
		return byDefault, nil
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s: want a text", name)
	}
	return s, nil
}

// object makes the schema of an object from its properties' schemas, name and schema in turn; the required ones stand first.
func object(required int, properties ...string) json.RawMessage {
	var names, parts []string
	for pair := range slices.Chunk(properties, 2) {
		names = append(names, fmt.Sprintf("%q", pair[0]))
		parts = append(parts, fmt.Sprintf("%q:%s", pair[0], pair[1]))
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":[%s]}`, strings.Join(parts, ","), strings.Join(names[:required], ","))
}
