package opserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A schema is the part of JSON Schema 2020-12 that our types need.
type schema struct {
	Type        any                `json:"type,omitempty"` // a name, or a name and "null"
	Description string             `json:"description,omitempty"`
	Format      string             `json:"format,omitempty"`
	Encoding    string             `json:"contentEncoding,omitempty"`
	Minimum     *int64             `json:"minimum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  any                `json:"additionalProperties,omitempty"` // false, or the schema of a map's values
}

// A schemaMaker derives schemas by the rules of encoding/json.
type schemaMaker struct {
	required bool           // fields without omitempty or omitzero are always there
	within   []reflect.Type // the structs around the type at hand
}

// inputSchema has no required members, because none is: what is left out is zero.
func inputSchema[T any]() (json.RawMessage, error) { return schemaOf[T](schemaMaker{}) }

func outputSchema[T any]() (json.RawMessage, error) { return schemaOf[T](schemaMaker{required: true}) }

func schemaOf[T any](m schemaMaker) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("schema of %v: not a struct", t)
	}
	s, err := m.of(t)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	return json.Marshal(s)
}

func (m *schemaMaker) of(t reflect.Type) (*schema, error) {
	if custom(t) {
		return nil, fmt.Errorf("%v writes its own JSON", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int, reflect.Int64:
		return &schema{Type: "integer", Format: t.Kind().String()}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint, reflect.Uint64:
		return &schema{Type: "integer", Format: t.Kind().String(), Minimum: new(int64)}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Slice, reflect.Array:
		return m.list(t)
	case reflect.Map:
		return m.dictionary(t)
	case reflect.Pointer:
		return m.optional(t)
	case reflect.Struct:
		return m.object(t)
	}
	return nil, fmt.Errorf("%v has no schema", t)
}

// custom reports whether encoding/json leaves t's text to t.
func custom(t reflect.Type) bool {
	for _, i := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[interface{ MarshalText() ([]byte, error) }](),
	} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

func (m *schemaMaker) list(t reflect.Type) (*schema, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return &schema{Type: []string{"string", "null"}, Encoding: "base64"}, nil
	}
	items, err := m.of(t.Elem())
	if t.Kind() == reflect.Slice {
		return &schema{Type: []string{"array", "null"}, Items: items}, err
	}
	return &schema{Type: "array", Items: items}, err
}

func (m *schemaMaker) dictionary(t reflect.Type) (*schema, error) {
	if t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%v: keys are not strings", t)
	}
	values, err := m.of(t.Elem())
	return &schema{Type: []string{"object", "null"}, Additional: values}, err
}

func (m *schemaMaker) optional(t reflect.Type) (*schema, error) {
	s, err := m.of(t.Elem())
	if err != nil {
		return nil, err
	}
	if name, ok := s.Type.(string); ok {
		s.Type = []string{name, "null"}
	}
	return s, nil
}

func (m *schemaMaker) object(t reflect.Type) (*schema, error) {
	if slices.Contains(m.within, t) {
		return nil, fmt.Errorf("%v holds itself", t)
	}
	m.within = append(m.within, t)
	defer func() { m.within = m.within[:len(m.within)-1] }()
	s := &schema{Type: "object", Properties: map[string]*schema{}, Additional: false}
	for f := range t.Fields() {
		if err := m.field(s, f); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return s, nil
}

// field adds the member for f, as its tag names it.
func (m *schemaMaker) field(s *schema, f reflect.StructField) error {
	if f.Anonymous {
		return errors.New("embedded")
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" && options == "" {
		return nil
	}
	if name == "" {
		name = f.Name
	}
	if s.Properties[name] != nil {
		return fmt.Errorf("a second member %q", name)
	}
	member, err := m.of(f.Type)
	if err != nil {
		return err
	}
	member.Description = f.Tag.Get("doc")
	s.Properties[name] = member
	omitted := false
	for o := range strings.SplitSeq(options, ",") {
		if o == "string" {
			return errors.New("option string")
		}
		omitted = omitted || o == "omitempty" || o == "omitzero"
	}
	if m.required && !omitted {
		s.Required = append(s.Required, name)
	}
	return nil
}
