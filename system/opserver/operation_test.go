package opserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/system/opserver"
)

func define[In any](name string) opserver.Operation {
	return opserver.Define(name, "", func(context.Context, In) (struct{}, error) { return struct{}{}, nil })
}

func TestRegistryRefuses(t *testing.T) {
	type list struct{ Next *list }
	type inner struct{ A int }
	tests := []struct {
		op   opserver.Operation
		want string
	}{
		{define[struct{}](""), `operation ""`},
		{define[struct{}]("Note"), "want a name"},
		{define[struct{}]("a/b"), "want a name"},
		{define[struct{}]("1a"), "want a name"},
		{define[struct{}]("a b"), "want a name"},
		{define[struct{}](strings.Repeat("a", 65)), "want a name"},
		{define[struct{}]("ops"), `not "ops"`},
		{define[struct{}]("note"), "operation note: defined twice"},
		{define[int]("x"), "schema of int: not a struct"},
		{define[struct{ F func() }]("x"), "field F: func() has no schema"},
		{define[struct{ F any }]("x"), "field F: interface {} has no schema"},
		{define[struct{ C chan int }]("x"), "field C: chan int has no schema"},
		{define[struct{ M map[int]string }]("x"), "field M: map[int]string: keys are not strings"},
		{define[struct{ T time.Time }]("x"), "field T: time.Time writes its own JSON"},
		{define[list]("x"), "holds itself"},
		{define[struct{ inner }]("x"), "field inner: embedded"},
		{define[struct {
			N int `json:",string"`
		}]("x"), "field N: option string"},
		{define[struct {
			A int `json:"B"`
			B int
		}]("x"), `field B: a second member "B"`},
	}
	for _, tt := range tests {
		_, err := opserver.NewRegistry(opserver.Note(), tt.op)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want an error that says %q", err, tt.want)
		}
	}
}

func TestRegistryFindsItsOperations(t *testing.T) {
	r, err := opserver.NewRegistry(define[struct{}]("b_2"), opserver.Note(), define[struct{}]("a"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, op := range r.Operations() {
		names = append(names, op.Name)
		if found := r.Lookup(op.Name); found == nil || found.Name != op.Name {
			t.Errorf("%s is not found", op.Name)
		}
	}
	if diff := cmp.Diff([]string{"b_2", "note", "a"}, names); diff != "" {
		t.Error(diff)
	}
	if r.Lookup("c") != nil {
		t.Error("c is found")
	}
}

func TestCallPassesErrorsOn(t *testing.T) {
	mine, theirs := errors.New("mine"), errors.New("theirs")
	op := opserver.Define("x", "", func(context.Context, struct{}) (int, error) { return 7, mine })
	if _, err := op.Call(t.Context(), func(any) error { return nil }); err != mine {
		t.Errorf("got %v, want the operation's own error", err)
	}
	if _, err := op.Call(t.Context(), func(any) error { return theirs }); err != theirs {
		t.Errorf("got %v, want the decoder's error", err)
	}
	note := opserver.Note()
	out, err := note.Call(t.Context(), func(in any) error { return json.Unmarshal([]byte(`{"id":7,"note":"n"}`), in) })
	if diff := cmp.Diff(opserver.NoteOut{ID: 7, Note: "n", Status: "done", Owner: "toll"}, out); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestSchemas(t *testing.T) {
	type point struct {
		X float64  `json:"x" doc:"from the left"`
		Y *float32 `json:"y,omitempty"`
	}
	type all struct {
		Yes     bool              `json:"yes"`
		Small   int8              `json:"small,omitzero"`
		Count   uint32            `json:"count"`
		Untaged string            `doc:"by its Go name"`
		Raw     []byte            `json:"raw"`
		Points  []point           `json:"points"`
		Pair    [2]int64          `json:"pair"`
		Labels  map[string]string `json:"labels,omitempty"`
		Origin  *point            `json:"origin"`
		Skipped int               `json:"-"`
		hidden  int
	}
	_ = all{}.hidden
	op := opserver.Define("x", "", func(context.Context, all) (all, error) { return all{}, nil })
	const pointProps = `"type":%T,"properties":{"x":{"type":"number","description":"from the left"},"y":{"type":["number","null"]}},%R"additionalProperties":false`
	const want = `{"type":"object","properties":{
		"yes":{"type":"boolean"},
		"small":{"type":"integer","format":"int8"},
		"count":{"type":"integer","format":"uint32","minimum":0},
		"Untaged":{"type":"string","description":"by its Go name"},
		"raw":{"type":["string","null"],"contentEncoding":"base64"},
		"points":{"type":["array","null"],"items":{` + pointProps + `}},
		"pair":{"type":"array","items":{"type":"integer","format":"int64"}},
		"labels":{"type":["object","null"],"additionalProperties":{"type":"string"}},
		"origin":{%O}
		},%A"additionalProperties":false}`
	check := func(which string, got json.RawMessage, pointRequired, allRequired string) {
		t.Helper()
		filled := strings.NewReplacer("%O", strings.Replace(strings.Replace(pointProps, "%T", `["object","null"]`, 1), "%R", pointRequired, 1),
			"%T", `"object"`, "%R", pointRequired, "%A", allRequired).Replace(want)
		var g, w any
		if err := errors.Join(json.Unmarshal(got, &g), json.Unmarshal([]byte(filled), &w)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w, g); diff != "" {
			t.Errorf("%s (-want +got):\n%s", which, diff)
		}
	}
	check("input", op.Input, "", "")
	check("output", op.Output, `"required":["x"],`, `"required":["yes","count","Untaged","raw","points","pair","origin"],`)
}

func TestNoteSchema(t *testing.T) {
	op := opserver.Note()
	const input = `{"type":"object","properties":{"id":{"type":"integer","description":"the caller's own number for this call","format":"int64"},` +
		`"note":{"type":"string","description":"text to keep"}},"additionalProperties":false}`
	if got := string(op.Input); got != input {
		t.Errorf("got  %s\nwant %s", got, input)
	}
	if !strings.Contains(string(op.Output), `"required":["id","note","status","owner"]`) {
		t.Errorf("output %s", op.Output)
	}
}
