package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"toll/lab/result"
)

// What a page carries of its document at most: histogram buckets of all rows together, and bytes once packed. A histogram
// keeps fewBuckets all the same.
const (
	mostBuckets = 24_000
	mostPacked  = 190_000
	fewBuckets  = 16
)

// document packs d for a page and reports whether its histograms had to lose buckets to fit.
func document(d *result.Document) (text string, cut bool, err error) {
	for most := mostBuckets; ; most /= 2 {
		thin, fewer := thinned(d, most)
		if text, err = packed(thin); err != nil {
			return "", false, err
		}
		if len(text) <= mostPacked || most < fewBuckets*len(d.Rows) {
			return text, fewer, nil
		}
	}
}

// thinned returns a copy of d whose histograms have at most so many buckets together, and whether any lost some: neighbours
// are added up, so that counts stay and values grow to the largest of those added.
func thinned(d *result.Document, most int) (*result.Document, bool) {
	total, have := 0, 0
	for i := range d.Rows {
		if h := d.Rows[i].Histogram; h != nil {
			total, have = total+len(h.Buckets), have+1
		}
	}
	if total <= most {
		return d, false
	}
	each := max(most/have, fewBuckets)
	out := *d
	out.Rows = slices.Clone(d.Rows)
	for i := range out.Rows {
		if h := out.Rows[i].Histogram; h != nil && len(h.Buckets) > each {
			thin := *h
			thin.Buckets = merged(h.Buckets, h.Count, each)
			out.Rows[i].Histogram = &thin
		}
	}
	return &out, true
}

// merged adds up neighbouring buckets where many calls lie and keeps the tail as it is: half of the buckets share the calls
// evenly, and every bucket of the slowest calls stands alone as long as there is room.
func merged(all [][2]int64, count int64, most int) [][2]int64 {
	tail := len(all) - most/2
	share := max(count/int64(most/2), 1)
	var out [][2]int64
	var sum int64
	for i, b := range all {
		sum += b[1]
		if sum >= share || i >= tail || i == tail-1 {
			out = append(out, [2]int64{b[0], sum})
			sum = 0
		}
	}
	return out
}

// packed returns a document as text for a page: columns instead of rows, gzip, base64. The page's script turns it back.
func packed(d *result.Document) (string, error) {
	var text bytes.Buffer
	if err := d.Encode(&text); err != nil {
		return "", err
	}
	dec := json.NewDecoder(&text)
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("report: packing: %w", err)
	}
	data, err := json.Marshal(pack(v))
	if err != nil {
		return "", fmt.Errorf("report: packing: %w", err)
	}
	return zipped(data)
}

func zipped(data []byte) (string, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write(data); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// pack turns lists into columns, so that what is alike stands together:
//
//	{"o": {name: [absent, column]}, "n": length}   a list of objects; absent are the places without the name
//	{"l": lengths, "v": list}                      a list of lists, put end to end
//	{"d": [first, difference, …]}                  a list of integers
//	{"u": list}                                    any other list
//
// An object of the document is {"m": {…}}; all else stays.
func pack(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = pack(x)
		}
		return map[string]any{"m": out}
	case []any:
		return packList(v)
	}
	return v
}

func packList(v []any) any {
	switch {
	case len(v) > 1 && all[map[string]any](v):
		return packObjects(v)
	case len(v) > 1 && all[[]any](v):
		lengths, end := []int{}, []any{}
		for _, x := range v {
			lengths = append(lengths, len(x.([]any)))
			end = append(end, x.([]any)...)
		}
		return map[string]any{"l": lengths, "v": packTwo(lengths, end)}
	}
	if d, ok := differences(v); ok {
		return map[string]any{"d": d}
	}
	out := make([]any, len(v))
	for i, x := range v {
		out[i] = pack(x)
	}
	return map[string]any{"u": out}
}

// packTwo splits a list of pairs into its two columns: {"p": [left, right]}.
func packTwo(lengths []int, end []any) any {
	if slices.ContainsFunc(lengths, func(n int) bool { return n != 2 }) {
		return packList(end)
	}
	var left, right []any
	for i := 0; i < len(end); i += 2 {
		left, right = append(left, end[i]), append(right, end[i+1])
	}
	return map[string]any{"p": []any{packList(left), packList(right)}}
}

func packObjects(v []any) any {
	names := make(map[string]bool)
	for _, x := range v {
		for k := range x.(map[string]any) {
			names[k] = true
		}
	}
	columns := make(map[string]any, len(names))
	for _, k := range slices.Sorted(maps.Keys(names)) {
		absent, column := []int{}, []any{}
		for i, x := range v {
			if value, ok := x.(map[string]any)[k]; ok {
				column = append(column, value)
			} else {
				absent = append(absent, i)
			}
		}
		columns[k] = []any{absent, packList(column)}
	}
	return map[string]any{"o": columns, "n": len(v)}
}

func all[T any](v []any) bool {
	return !slices.ContainsFunc(v, func(x any) bool { _, ok := x.(T); return !ok })
}

// differences returns what each integer of a list is more than the one before it, if that is shorter to write.
func differences(v []any) ([]int64, bool) {
	if len(v) < 8 {
		return nil, false
	}
	out := make([]int64, len(v))
	var last int64
	long, short := 0, 0
	for i, x := range v {
		n, ok := x.(json.Number)
		if !ok {
			return nil, false
		}
		whole, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil || whole > 1<<52 || whole < -1<<52 {
			return nil, false
		}
		out[i], last = whole-last, whole
		long, short = long+len(n), short+len(strconv.FormatInt(out[i], 10))
	}
	return out, short < long
}
