package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"toll/ingest"
	"toll/lab/result"
	"toll/published"
)

// Schema is the identifier of a report's JSON.
const Schema = "toll.audit/v1"

// A Verdict is what an audit says of a claim.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"
	Fails   Verdict = "fails"
	Unknown Verdict = "unknown"
)

// A Claim is something that the numbers say, or are read to say, and what was computed of it.
type Claim struct {
	ID       string  `json:"id"` // the rule and the row: "users: java"
	Verdict  Verdict `json:"verdict"`
	Stated   string  `json:"stated"`
	Computed string  `json:"computed"` // empty where nothing could be
	Why      string  `json:"why"`      // with the arithmetic

	rule, row string
}

// A Report is what an audit found.
type Report struct {
	Schema string       `json:"schema"`
	Name   string       `json:"name"`
	Kind   string       `json:"kind"` // published | foreign | measured
	Title  string       `json:"title"`
	Source string       `json:"source"`
	SHA256 string       `json:"sha256"` // of the text that was audited
	Claims []Claim      `json:"claims"`
	Rows   []result.Row `json:"rows,omitempty"` // of another harness' output: as a result document holds them
}

// Failed reports whether a claim fails.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.Verdict == Fails })
}

// Open audits a file, a folder with a result.json, or a published table by its name. An error means that it could not be read.
func Open(name string) (*Report, error) {
	file := name
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && slices.Contains(published.Names(), name):
		t, err := published.Load(name)
		if err != nil {
			return nil, err
		}
		return Table(t), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("audit %s: no such file, and no published table of that name; there are %s", name, strings.Join(published.Names(), ", "))
	case err != nil:
		return nil, fmt.Errorf("audit: %w", err)
	case info.IsDir():
		file = name + "/result.json"
	}
	data, err := result.ReadBytes(file)
	if err != nil {
		return nil, err
	}
	if isOurs(data) {
		return document(file, data)
	}
	in, err := ingest.Decode(file, data)
	if err != nil {
		return nil, err
	}
	return Foreign(in), nil
}

// Table audits a published table, beside those that repeat it.
func Table(t published.Table) *Report {
	s := fromTable(t)
	for _, name := range t.Repeats {
		if again, err := published.Load(name); err == nil {
			s.repeats = append(s.repeats, fromTable(again))
		}
	}
	return s.report(result.Published)
}

// Foreign audits another harness' output.
func Foreign(in *ingest.Report) *Report {
	r := fromIngest(in).report(result.Foreign)
	r.Rows = in.Foreign()
	return r
}

// report applies every rule.
func (s *subject) report(kind string) *Report {
	return &Report{Schema: Schema, Name: s.name, Kind: kind, Title: s.title, Source: s.source, SHA256: s.sha256, Claims: s.claims()}
}

// rules lists the rules in the order of their findings: how it was called, what was counted, what a time is made of, which
// quantiles there can be, and what may be compared.
func rules() []func(*subject) []Claim {
	return []func(*subject) []Claim{
		users, sameLoad, offered, ceiling,
		count, lengths, unchecked,
		units, uncounted, operations,
		network, waiting, plateau, delay, overshoot, cpuLimit,
		shape, samples, edge, mixture, resolution, stall,
		conclusions, order, spread, ranks,
	}
}

func (s *subject) claims() []Claim {
	out := []Claim{}
	for _, rule := range rules() {
		out = append(out, rule(s)...)
	}
	slices.SortStableFunc(out, func(a, b Claim) int { return cmp.Compare(gravity(a.Verdict), gravity(b.Verdict)) })
	return out
}

func gravity(v Verdict) int { return slices.Index([]Verdict{Fails, Unknown, Holds}, v) }

// claim makes one.
func claim(rule, row string, v Verdict, stated, computed, why string, args ...any) Claim {
	id := rule
	if row != "" {
		id += ": " + row
	}
	return Claim{ID: id, Verdict: v, Stated: stated, Computed: computed, Why: fmt.Sprintf(why, args...), rule: rule, row: row}
}

// verdict is Holds where ok.
func verdict(ok bool) Verdict {
	if ok {
		return Holds
	}
	return Fails
}
