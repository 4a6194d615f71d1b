package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"toll/lab/result"
	"toll/published"
)

// carnac is the shape of the published receipt benchmark, field for field. What we do not have is null.
type carnac struct {
	Benchmark   string      `json:"benchmark"`
	Version     string      `json:"gateway_version"`
	Commit      string      `json:"commit"`
	Date        string      `json:"date_utc"`
	Ops         int         `json:"ops_per_run"`
	Warmup      int         `json:"warmup_per_run"`
	Concurrency []int       `json:"concurrency_levels"`
	Payload     string      `json:"payload"`
	Modes       []string    `json:"modes"`
	Environment carnacEnv   `json:"environment"`
	Runs        []carnacRun `json:"runs"`
}

type carnacEnv struct {
	OS        string   `json:"os"`
	Runtime   string   `json:"runtime"`
	CPU       string   `json:"cpu_model"`
	VCPU      int      `json:"vcpu"`
	RAM       *float64 `json:"ram_gb"`
	Crypto    string   `json:"crypto"`
	Network   string   `json:"network"`
	Algorithm string   `json:"algorithm"`
	Note      string   `json:"note"`
}

type carnacRun struct {
	Mode        string         `json:"mode"`
	Concurrency int            `json:"concurrency"`
	Ops         int64          `json:"ops"`
	Throughput  *float64       `json:"throughput_ops_s"`
	ErrorRate   float64        `json:"error_rate"`
	Elapsed     float64        `json:"elapsed_s"`
	Wall        *carnacSummary `json:"wall_latency_us"`
	Envelope    *carnacSummary `json:"envelope_overhead_us"`
	Sign        *carnacSummary `json:"crypto_sign_us"`
	User        *float64       `json:"cpu_user_ms"`
	System      *float64       `json:"cpu_system_ms"`
	RSS         *float64       `json:"rss_mb"`
	Heap        *float64       `json:"heap_used_mb"`
}

type carnacSummary struct {
	Count int64    `json:"count"`
	Mean  float64  `json:"mean_us"`
	P50   float64  `json:"p50_us"`
	P95   *float64 `json:"p95_us"`
	P99   *float64 `json:"p99_us"`
	Max   float64  `json:"max_us"`
	Min   float64  `json:"min_us"`
}

// Carnac writes a result of the benchmark receipt in the shape of the published one: the receipts that are kept in memory,
// as a library, and those of the sidecar over its socket, because it is a process of its own.
func Carnac(w io.Writer, d *result.Document) error {
	if d.Benchmark != "receipt" {
		return fmt.Errorf("--like carnac: the result is of benchmark %s; that shape is of receipt", d.Benchmark)
	}
	e := d.Environment
	out := carnac{
		Benchmark: "toll-receipt", Version: d.Toll.Version, Commit: d.Toll.Commit, Date: d.Started.UTC().Format("2006-01-02T15:04:05.000Z"),
		Ops: d.Plan.Blocks * d.Plan.Calls, Warmup: d.Plan.Warmup * d.Plan.Rounds, Concurrency: d.Method.Concurrency,
		Payload: "arrival envelope: request_id + 64-hex request_hash + tenant/namespace/policy metadata (no plaintext)",
		Environment: carnacEnv{
			OS: e.OS.Name + " " + e.OS.Kernel, Runtime: d.Toll.Go, CPU: cmp.Or(e.CPU.BrandOS, e.CPU.BrandCPUID), VCPU: e.CPU.Logical,
			RAM: ram(e.MemoryMB), Crypto: "crypto/ed25519, crypto/sha256; Ed25519 / RFC 8785 JCS / SHA-256",
			Network: "library: none, in the gateway's process; async-sidecar: unix socket", Algorithm: "Ed25519",
			Note: "Shuffled blocks beside other contenders, every receipt verified after the window; the whole method is in the result document.",
		},
		Runs: []carnacRun{},
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		mode, ok := carnacMode(r)
		if !ok {
			continue
		}
		out.Runs = append(out.Runs, runLike(r, mode))
		if !slices.Contains(out.Modes, mode) {
			out.Modes = append(out.Modes, mode)
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// ram turns MB into GB, with one decimal.
func ram(mb *int64) *float64 {
	if mb == nil {
		return nil
	}
	return result.Ptr(math.Round(float64(*mb)/102.4) / 10)
}

// carnacMode is the published name of a row's mode, and whether the row has one.
func carnacMode(r *result.Row) (string, bool) {
	if r.Case != "receipt/volatile" || r.Kind != result.Measured || r.Role == result.Control || r.Latency == nil {
		return "", false
	}
	switch {
	case r.Phase == "library" && r.Role == result.Baseline, r.Phase == "library" && r.Role == "":
		if r.Contender.Name == "inproc-async" {
			return "async-inproc", true
		}
		return r.Contender.Name, true
	case r.Phase == "socket" && r.Contender.Name == "sidecar":
		return "async-sidecar", true
	}
	return "", false
}

func runLike(r *result.Row, mode string) carnacRun {
	out := carnacRun{
		Mode: mode, Concurrency: r.Concurrency, Ops: r.Ops, Throughput: r.Throughput, Elapsed: math.Round(r.ElapsedS*1000) / 1000,
		Wall: summaryLike(r.OK, r.Latency),
	}
	if r.Ops > 0 {
		out.ErrorRate = float64(r.Ops-r.OK) / float64(r.Ops)
	}
	if p, ok := r.Parts["envelope"]; ok {
		out.Envelope = summaryLike(p.Count, &p.Latency)
	}
	if p, ok := r.Parts["sign"]; ok {
		out.Sign = summaryLike(p.Count, &p.Latency)
	}
	if s := r.Server; s != nil {
		out.User, out.System, out.RSS, out.Heap = s.UserMS, s.SystemMS, s.RSSPeakMB, s.HeapMB
	}
	return out
}

func summaryLike(n int64, l *result.Latency) *carnacSummary {
	return &carnacSummary{n, l.Mean, l.P50, l.P95, l.P99, l.Max, l.Min}
}

// Elsewhere prints a published table as its authors printed it, with what its figures cannot mean. Nothing in it is divided
// by a figure of ours.
func Elsewhere(w io.Writer, t published.Table) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "published elsewhere, never divided: %s\n  %s, %s; %s\n", t.Title, t.Source, t.Date, t.Machine)
	fmt.Fprintf(&b, "  %-20s %10s %10s %12s\n", "row", "min "+t.Unit, "p50 "+t.Unit, "ops/s")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "  %-20s %10.4g %10.4g %12.5g\n", r.Label, r.Min[0], r.P50[0], r.Figures["throughput_ops_s"])
	}
	for _, e := range t.Errata {
		b.WriteString("  " + e + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}
