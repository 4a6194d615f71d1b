package report

import (
	"slices"
	"strconv"
	"strings"

	"toll/lab/result"
)

// footnotes numbers the warnings of a table: one that several rows have stands once.
type footnotes struct {
	rows  int
	texts []string
	of    map[*result.Row][]int
}

func newFootnotes(rows []*result.Row) *footnotes {
	f := &footnotes{rows: len(rows), of: make(map[*result.Row][]int)}
	for _, r := range rows {
		for _, text := range doubts(r) {
			n := slices.Index(f.texts, text)
			if n < 0 {
				n = len(f.texts)
				f.texts = append(f.texts, text)
			}
			f.of[r] = append(f.of[r], n)
		}
	}
	return f
}

// doubts is what a reader of the row's figures must know.
func doubts(r *result.Row) []string {
	out := slices.Clone(r.Warnings)
	if kinds := failureText(r); kinds != "" {
		out = append(out, "failures: "+kinds)
	}
	return out
}

// everyone reports whether all rows of several have the note: it is said of the table then.
func (f *footnotes) everyone(n int) bool {
	rows := 0
	for _, own := range f.of {
		if slices.Contains(own, n) {
			rows++
		}
	}
	return f.rows > 1 && rows == f.rows
}

// marks is what stands behind a row's name.
func (f *footnotes) marks(r *result.Row) string {
	var out []string
	for _, n := range f.of[r] {
		if !f.everyone(n) {
			out = append(out, raised(n+1))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " " + strings.Join(out, ",")
}

func (f *footnotes) lines() []string {
	var out []string
	for n, text := range f.texts {
		if f.everyone(n) {
			out = append(out, "all rows: "+text)
		} else {
			out = append(out, raised(n+1)+" "+text)
		}
	}
	return out
}

// raised writes n in superscript digits.
func raised(n int) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var out strings.Builder
	for _, c := range strconv.Itoa(n) {
		out.WriteRune(digits[c-'0'])
	}
	return out.String()
}
