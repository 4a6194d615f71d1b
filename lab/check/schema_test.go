package check_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"toll/lab/result"
)

// update rewrites result.schema.json and its copy in docs/schema from the types.
var update = flag.Bool("update", false, "rewrite the schema from the types of lab/result")

func TestTheSchemaIsMadeFromTheTypes(t *testing.T) {
	t.Parallel()
	m := &schemaMaker{defs: make(map[string]any)}
	root := m.object(reflect.TypeFor[result.Document]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = result.Schema
	root["$defs"] = m.defs
	want, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	for _, file := range []string{"result.schema.json", "../../docs/schema/result.schema.json"} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the types give; run: go test ./lab/check -run Schema -update", file)
		}
	}
}

// schemaMaker turns Go types into JSON Schema: what encoding/json would write, and nothing else.
type schemaMaker struct{ defs map[string]any }

// enums are the fields that hold one of a few words.
var enums = map[string][]any{
	"Document.Schema":  {result.Schema},
	"Row.Kind":         {result.Measured, result.Foreign, result.Published},
	"Row.Role":         {"", result.Baseline, result.Control, result.Floor, result.Null},
	"Row.Connections":  {"per-caller", "shared"},
	"Method.Model":     {"closed", "open"},
	"Method.Order":     {"shuffled", "fixed"},
	"Fleet.Verdict":    {result.FleetComplete, result.FleetDegraded, result.FleetStopped},
	"Fleet.OnLoss":     {"invalidate", "continue"},
	"Method.Processes": {"separate", "shared", "in-process"},
}

func (m *schemaMaker) object(t reflect.Type) map[string]any {
	props := make(map[string]any)
	required := []string{}
	m.fields(t, props, &required)
	return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func (m *schemaMaker) fields(t reflect.Type, props map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		if f.Anonymous && tag == "" || strings.Contains(string(f.Tag), ",inline") {
			m.fields(f.Type, props, required)
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		s := m.of(f.Type)
		if words := enums[t.Name()+"."+f.Name]; words != nil {
			s = map[string]any{"enum": words}
		}
		props[name] = s
		if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
			*required = append(*required, name)
		}
	}
}

func (m *schemaMaker) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{m.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Struct:
		if _, ok := m.defs[t.Name()]; !ok {
			m.defs[t.Name()] = nil
			m.defs[t.Name()] = m.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": m.of(t.Elem())}, map[string]any{"type": "null"}}}
	case reflect.Array:
		return map[string]any{"type": "array", "items": m.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"anyOf": []any{map[string]any{"type": "object", "additionalProperties": m.of(t.Elem())}, map[string]any{"type": "null"}}}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "integer"}
	}
}
