package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// MaxBytes bounds a document that is read.
const MaxBytes = 64 << 20

// Encode writes d as JSON: one line per top-level field and one per row, gap or anomaly, so that a diff shows which changed.
func (d *Document) Encode(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("{\n")
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		if i > 0 {
			b.WriteString(",\n")
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fmt.Fprintf(&b, "%q: ", name)
		if err := encodeField(&b, v.Field(i)); err != nil {
			return fmt.Errorf("result: field %s: %w", name, err)
		}
	}
	b.WriteString("\n}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func encodeField(b *bytes.Buffer, v reflect.Value) error {
	if v.Kind() != reflect.Slice || v.Len() == 0 {
		if v.Kind() == reflect.Slice {
			b.WriteString("[]")
			return nil
		}
		data, err := json.Marshal(v.Interface())
		b.Write(data)
		return err
	}
	b.WriteString("[\n")
	for i := range v.Len() {
		data, err := json.Marshal(v.Index(i).Interface())
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		b.Write(data)
		if i < v.Len()-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteByte(']')
	return nil
}

// WriteFile writes d to file, whole or not at all.
func (d *Document) WriteFile(file string) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".result-*")
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(d.Encode(tmp), tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("result: writing %s: %w", file, err)
	}
	return nil
}

// ReadFile reads a document from file.
func ReadFile(file string) (*Document, error) {
	data, err := ReadBytes(file)
	if err != nil {
		return nil, err
	}
	d, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("result %s: %w", file, err)
	}
	return d, nil
}

// ReadBytes reads a document's text, at most MaxBytes of it.
func ReadBytes(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("result %s: %w", file, err)
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("result %s: more than %d MiB; not a result that toll wrote", file, MaxBytes>>20)
	}
	return data, nil
}

// Decode parses a document. Another schema, an unknown field or a wrong type is an error that says where.
func Decode(data []byte) (*Document, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, locate(data, err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("schema is %q; this toll reads %s", head.Schema, Schema)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	d := new(Document)
	if err := dec.Decode(d); err != nil {
		return nil, locate(data, err)
	}
	return d, nil
}

// locate adds the line to a JSON error that knows its offset.
func locate(data []byte, err error) error {
	var se *json.SyntaxError
	var te *json.UnmarshalTypeError
	var at int64
	switch {
	case errors.As(err, &se):
		at = se.Offset
	case errors.As(err, &te):
		at = te.Offset
	default:
		return err
	}
	line := 1 + bytes.Count(data[:min(max(at, 0), int64(len(data)))], []byte("\n"))
	return fmt.Errorf("line %d: %w", line, err)
}
