package opcall_test

import (
	"reflect"
	"strings"
	"testing"

	"toll/wire/opcall"
)

func TestPathsAndNames(t *testing.T) {
	t.Parallel()
	path, err := opcall.Path("tasks_list")
	if err != nil || path != "/.well-known/zip/op/tasks_list" {
		t.Errorf("%q, %v", path, err)
	}
	if name, err := opcall.Name(path); err != nil || name != "tasks_list" {
		t.Errorf("%q, %v", name, err)
	}
	for in, want := range map[string]string{
		"":                       "op-call: operation name of 0 bytes; expected 1 to 128",
		strings.Repeat("x", 129): "op-call: operation name of 129 bytes; expected 1 to 128",
		"a/b":                    `op-call: operation name "a/b" holds '/'`,
		"a?b":                    `op-call: operation name "a?b" holds '?'`,
		"a b":                    `op-call: operation name "a b" holds ' '`,
		"é":                      `op-call: operation name "é" holds 'é'`,
		"a%2f":                   `op-call: operation name "a%2f" holds '%'`,
		"a\n":                    `op-call: operation name "a\n" holds '\n'`,
	} {
		if _, err := opcall.Path(in); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
	if _, err := opcall.Name("/v1/note"); err == nil || err.Error() != `op-call: path "/v1/note" does not begin with /.well-known/zip/op/` {
		t.Errorf("got %v", err)
	}
	if text := (&opcall.Error{Status: 404, Code: "not_found", Message: "no"}).Error(); text != "404 not_found: no" {
		t.Errorf("got %q", text)
	}
}

// The order and the types of the fields are the wire's.
func TestAnErrorsFields(t *testing.T) {
	t.Parallel()
	var got []string
	for f := range reflect.TypeFor[opcall.Error]().Fields() {
		got = append(got, f.Name+" "+f.Type.String())
	}
	if want := "Status int32, Code string, Message string"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func FuzzName(f *testing.F) {
	f.Add("/.well-known/zip/op/a")
	f.Fuzz(func(t *testing.T, path string) {
		name, err := opcall.Name(path)
		if err != nil {
			return
		}
		if back, err := opcall.Path(name); err != nil || back != path {
			t.Errorf("%q gives %q, which gives %q, %v", path, name, back, err)
		}
	})
}
