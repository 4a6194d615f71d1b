package audit

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// number prints three or four digits.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 1000:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		for at := len(s) - 3; at > 0; at -= 3 {
			s = s[:at] + "," + s[at:]
		}
		return s
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		if v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// took prints a time given in µs.
func took(us float64) string {
	switch {
	case us >= 1e6:
		return number(us/1e6) + " s"
	case us >= 1000:
		return number(us/1000) + " ms"
	}
	return number(us) + " µs"
}

func perSecond(v float64) string { return number(v) + "/s" }

func percent(share float64) string { return number(100*share) + " %" }

// times prints a ratio.
func times(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + " ×" }

// width is how far a line of the screen goes.
const width = 118

// Text prints a report: what fails with its arithmetic, what is unknown, what holds, one paragraph a rule.
func (r *Report) Text(w io.Writer) error {
	var b bytes.Buffer
	wrapped(&b, "", "  ", r.Name+" · "+r.Kind+" · "+r.Title)
	if r.Source != "" {
		wrapped(&b, "  ", "  ", r.Source+" · sha256 "+short(r.SHA256))
	}
	b.WriteString("\n")
	counts := make(map[Verdict]int)
	var quiet []string
	for _, group := range folded(r.Claims) {
		for _, c := range group {
			counts[c.Verdict]++
		}
		lead := group[0]
		if lead.Verdict == Holds {
			quiet = append(quiet, fmt.Sprintf("%s (%d)", lead.rule, len(group)))
			continue
		}
		paragraph(&b, group)
	}
	if len(quiet) > 0 {
		wrapped(&b, "holds    ", "         ", strings.Join(quiet, ", "))
	}
	if len(r.Claims) == 0 {
		b.WriteString("nothing in it can be computed a second time\n")
	}
	fmt.Fprintf(&b, "\nclaims: %d failing, %d unknown, %d holding; --json has each with its arithmetic\n", counts[Fails], counts[Unknown], counts[Holds])
	_, err := w.Write(b.Bytes())
	return err
}

func short(digest string) string {
	if len(digest) < 12 {
		return digest
	}
	return digest[:12] + "…"
}

// folded puts the claims of one rule and verdict together, in their order.
func folded(claims []Claim) [][]Claim {
	var out [][]Claim
	for _, c := range claims {
		at := slices.IndexFunc(out, func(g []Claim) bool { return g[0].rule == c.rule && g[0].Verdict == c.Verdict })
		if at < 0 {
			out = append(out, nil)
			at = len(out) - 1
		}
		out[at] = append(out[at], c)
	}
	return out
}

// paragraph prints the first claim of a rule with its arithmetic, and the rows of which the same was found.
func paragraph(b *bytes.Buffer, group []Claim) {
	lead := group[0]
	head := lead.rule
	if lead.row != "" {
		head += ", " + lead.row
	}
	head += ": " + lead.Stated
	if lead.Computed != "" {
		head += " → " + lead.Computed
	}
	wrapped(b, fmt.Sprintf("%-9s", lead.Verdict), "         ", head)
	wrapped(b, "         ", "         ", lead.Why)
	if len(group) == 1 {
		return
	}
	also, left := "also ", len(group)-1
	for _, c := range group[1:] {
		text := c.row
		if c.Computed != "" && len(c.Computed) < 30 {
			text += " (" + c.Computed + ")"
		}
		if len([]rune(also+text)) > width-9-len(", and 999 more") && left < len(group)-1 {
			break
		}
		if left < len(group)-1 {
			also += ", "
		}
		also, left = also+text, left-1
	}
	if left > 0 {
		also += fmt.Sprintf(", and %d more", left)
	}
	wrapped(b, "         ", "         ", also)
}

// wrapped prints words in lines of the screen's width.
func wrapped(b *bytes.Buffer, first, rest, text string) {
	line, at := first, len([]rune(first))
	begun := false
	for word := range strings.FieldsSeq(text) {
		n := len([]rune(word))
		if begun && at+1+n > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, at, begun = rest, len([]rune(rest)), false
		}
		if begun {
			line, at = line+" ", at+1
		}
		line, at, begun = line+word, at+n, true
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
