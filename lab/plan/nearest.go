package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// meant returns `; did you mean "…"?` for the name of a field of v, or of what stands in it, that name is within two letters
// of; empty when there is none.
func meant(name string, v any) string {
	best, least := "", 3
	for _, known := range fieldNames(reflect.TypeOf(v), nil) {
		if d := distance(name, known); d < least && 3*d <= len(name) {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// fieldNames lists the YAML names in t and in what its fields are made of.
func fieldNames(t reflect.Type, within []reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return fieldNames(t.Elem(), within)
	case reflect.Struct:
	default:
		return nil
	}
	if slices.Contains(within, t) {
		return nil
	}
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" {
			continue
		}
		if name != "" {
			names = append(names, name)
		}
		names = append(names, fieldNames(f.Type, append(within, t))...)
	}
	return names
}

// distance is how many letters must be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
