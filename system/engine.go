package system

import (
	"context"
	"fmt"
	"strings"

	"toll/wire/engine"
)

// Engines returns the names of the systems that work in their own process and are asked over stdin, instead of listening.
func Engines() []string {
	return []string{"null-engine", "group", "group-floor", "receipt-engine", "spawn-engine", "spawn-inline", "spawn-floor"}
}

// Bench returns what the named engine answers with.
func Bench(name string) (engine.Bench, error) {
	switch name {
	case "null-engine":
		return nothing, nil
	case "group":
		return group, nil
	case "group-floor":
		return groupFloor, nil
	case "receipt-engine":
		return receipts(), nil
	case "spawn-engine", "spawn-inline":
		return spawnBench(name == "spawn-inline"), nil
	case "spawn-floor":
		return spawnFloor(), nil
	}
	return nil, fmt.Errorf("engine %q: want one of %s", name, strings.Join(Engines(), ", "))
}

// nothing is every case's operation that does nothing: what remains is the cost of timing a call.
func nothing(_ context.Context, q engine.Question) (engine.Work, error) {
	return engine.Work{Call: func(context.Context, int, int, *engine.Parts) error { return nil }}, nil
}
