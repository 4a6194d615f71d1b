package ingest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"toll/lab/result"
)

// What is read is bounded.
const (
	MaxBytes = 16 << 20 // of a text
	MaxRows  = 5_000
	maxRuns  = 100_000 // repeats of a row, or values of a list
	maxLabel = 300     // bytes of a name
)

// Figures are what a row states, by name and unit: p99_us, rate_per_s, count. The names are those of Row.
type Figures map[string]float64

// A Row is one line of another harness' output. Its figures have these names where the output gives them:
//
//	count, ok, failed, dropped          operations, by what became of them
//	elapsed_s, rate_per_s, offered_per_s
//	concurrency                         callers, connections or VUs
//	min_us mean_us sd_us p10_us … p50_us … p99_us p999_us max_us
//	lo_us, hi_us                        the interval that is printed around the row's centre
//	cpu_user_ms, cpu_system_ms, rss_mb, alloc_bytes_per_op, allocs_per_op
//
// An output whose unit of time is not named ends in _unit where others end in _us. What has no name here keeps its own.
type Row struct {
	Label   string             // as the harness prints it
	Case    string             // the operation with its parameters, where the output tells it from who answered
	Of      string             // who answered
	Figures Figures            //
	Failed  map[string]int64   // by kind, as the harness counts
	Runs    []Figures          // repeats behind the figures, in their order
	Parts   map[string]Figures // shares of an operation's time
}

// A Method is what an output states of how it was measured. What it does not state is empty.
type Method struct {
	Tool      string // and its version
	Model     string // closed | open
	KeepAlive string // on | off
	Success   string // how a call is judged: status, length, or a command's exit
	Order     string // sequential: rows were measured one after the other
	Centre    string // which figure the row's interval is around: mean_us, p50_us, slope_us
	Level     float64

	Resolution   float64 // of the printed times, µs; 0: as fine as they are printed
	MeanFromRate bool    // the harness computes the mean from the rate, so that the two say one thing
}

// A Report is an output that was read.
type Report struct {
	Format string // one of Formats
	File   string // its base name
	SHA256 string // of the text as it came, lower-case hex
	Date   string // as the output states it
	Method Method
	Rows   []Row
}

// A format is a harness' output.
type format struct {
	name   string
	is     func(t *text) bool
	decode func(t *text, r *Report) error
}

// formats lists what is read; the first that knows a text has it.
func formats() []format {
	return []format{
		{"criterion", isCriterion, criterion},
		{"jmh", isJMH, jmh},
		{"google-benchmark", isGoogle, google},
		{"hyperfine", isHyperfine, hyperfine},
		{"k6", isK6, k6},
		{"vegeta-json", isVegetaJSON, vegetaJSON},
		{"oha-json", isOhaJSON, ohaJSON},
		{"receipts", isReceipts, receipts},
		{"marmot", isMarmot, marmot},
		{"wrk", isWrk, wrk},
		{"ab", isAB, ab},
		{"hey", isHey, hey},
		{"oha", isOha, oha},
		{"vegeta", isVegeta, vegeta},
		{"hgrm", isHgrm, hgrm},
		{"go", isGo, goBench},
	}
}

// Formats names every output that is read.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// ErrUnknown is for a text that no format knows.
var ErrUnknown = errors.New("no output that toll reads")

// Read reads a file.
func Read(file string) (*Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("ingest %s: %w", file, err)
	}
	return Decode(file, data)
}

// Decode reads a text. Its name is used for messages, and by criterion's files, which do not name their benchmark. An error
// says in which file, as which format, and where.
func Decode(name string, data []byte) (*Report, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("ingest %s: more than %d MiB", name, MaxBytes>>20)
	}
	if !utf8.Valid(data) || slices.Contains(data, 0) {
		return nil, fmt.Errorf("ingest %s: %w: not text in UTF-8", name, ErrUnknown)
	}
	t := newText(name, data)
	all := formats()
	at := slices.IndexFunc(all, func(f format) bool { return f.is(t) })
	if at < 0 {
		return nil, fmt.Errorf("ingest %s: %w; it reads %s", name, t.unknown(), strings.Join(Formats(), ", "))
	}
	r := &Report{Format: all[at].name, File: filepath.Base(name), SHA256: Digest(data)}
	if err := all[at].decode(t, r); err != nil {
		return nil, fmt.Errorf("ingest %s, as %s: %w", name, r.Format, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("ingest %s, as %s: %w", name, r.Format, err)
	}
	return r, nil
}

// Digest is the SHA-256 of a text as it came, lower-case hex.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// check finds what no harness prints.
func (r *Report) check() error {
	if len(r.Rows) == 0 {
		return errors.New("no row in it")
	}
	if len(r.Rows) > MaxRows {
		return fmt.Errorf("%d rows; at most %d are read", len(r.Rows), MaxRows)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Label = cmp.Or(row.Label, row.Case)
		if len(row.Label) > maxLabel || row.Label == "" {
			return fmt.Errorf("row %d: a name of %d bytes; at most %d are read", i+1, len(row.Label), maxLabel)
		}
		if len(row.Runs) > maxRuns {
			return fmt.Errorf("row %q: %d repeats; at most %d are read", row.Label, len(row.Runs), maxRuns)
		}
		if len(row.Figures) == 0 {
			return fmt.Errorf("row %q: no figure in it", row.Label)
		}
		for _, set := range append([]Figures{row.Figures}, row.Runs...) {
			if err := set.check(); err != nil {
				return fmt.Errorf("row %q: %w", row.Label, err)
			}
		}
		for _, name := range sortedKeys(row.Parts) {
			if err := row.Parts[name].check(); err != nil {
				return fmt.Errorf("row %q, part %s: %w", row.Label, name, err)
			}
		}
	}
	return nil
}

// check finds a figure that is no number, or a time, count or rate below zero.
func (f Figures) check() error {
	for _, name := range sortedKeys(f) {
		v := f[name]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v", name, v)
		}
		if v < 0 && name != "lo_us" {
			return fmt.Errorf("%s is %v, below zero", name, v)
		}
	}
	return nil
}

// sortedKeys makes messages the same every time.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// set notes a figure that is there.
func (f Figures) set(name string, v *float64, scale float64) {
	if v != nil {
		f[name] = *v * scale
	}
}

// Foreign returns the rows as a result document holds them: kind foreign, with their source, never in a ratio. A latency is
// given where the output states all of least, mean, median and largest; every figure stands under stated.
func (r *Report) Foreign() []result.Row {
	out := make([]result.Row, len(r.Rows))
	for i, row := range r.Rows {
		f := row.Figures
		of := cmp.Or(row.Of, r.Format)
		out[i] = result.Row{
			Case: cmp.Or(row.Case, row.Label), Contender: result.Contender{Name: of, SDK: r.Method.Tool}, Kind: result.Foreign,
			Concurrency: int(min(f["concurrency"], 1e9)), Connections: "per-caller", Failed: map[string]int64{},
			Ops: whole(f["count"]), OK: whole(f["ok"]), Dropped: whole(f["dropped"]), ElapsedS: f["elapsed_s"],
			Throughput: f.ptr("rate_per_s"), Latency: f.latency(), Stated: f, Rounds: []result.Round{}, Warnings: []string{}, Processes: []result.Process{},
			Source: &result.Source{File: r.File, SHA256: r.SHA256, Date: r.Date, Errata: []string{}},
		}
		for kind, n := range row.Failed {
			out[i].Failed[kind] = n
		}
	}
	return out
}

// whole is a count as a document holds it.
func whole(v float64) int64 { return int64(min(v, 1<<53)) }

func (f Figures) ptr(name string) *float64 {
	if v, ok := f[name]; ok {
		return &v
	}
	return nil
}

// latency is nil unless all of it that is never null was stated.
func (f Figures) latency() *result.Latency {
	least, mean, median, most := f.ptr("min_us"), f.ptr("mean_us"), f.ptr("p50_us"), f.ptr("max_us")
	if least == nil || mean == nil || median == nil || most == nil {
		return nil
	}
	return &result.Latency{
		Min: *least, Mean: *mean, P50: *median, Max: *most,
		P90: f.ptr("p90_us"), P95: f.ptr("p95_us"), P99: f.ptr("p99_us"), P999: f.ptr("p999_us"),
	}
}
