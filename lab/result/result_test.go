package result_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/plan"
	"toll/lab/result"
)

// made returns a row whose blocks lie around level µs, with a drift that all rows of a block share.
func made(name, role string, level float64, seed uint64) result.Row {
	r := rand.New(rand.NewPCG(seed, 1))
	shared := rand.New(rand.NewPCG(99, 99))
	row := result.Row{Case: "call/32B", Phase: "tcp", Concurrency: 1, Kind: result.Measured, Role: role,
		Contender: result.Contender{Name: name}, Warnings: []string{}, Latency: &result.Latency{Min: level / 2}}
	for round := range 5 {
		x := result.Round{Round: round + 1, P50: result.Ptr(level)}
		for range 4 {
			p := level * math.Exp(shared.NormFloat64()/5+r.NormFloat64()/100)
			x.Blocks = append(x.Blocks, result.Block{Slot: r.IntN(3), OK: 100, P50: &p, Min: &p})
		}
		row.Rounds = append(row.Rounds, x)
	}
	return row
}

func document() *result.Document {
	return &result.Document{
		Schema: result.Schema, Benchmark: "transport", Started: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Seed: 42,
		Plan: result.PlanEcho{Plan: plan.Plan{Schema: plan.Schema, Benchmark: "transport", Settings: plan.Settings{Timeout: plan.Duration(5 * time.Second)}}},
		Rows: []result.Row{
			made("rest", result.Baseline, 100, 1), made("rest", result.Control, 100, 2), made("raw", "", 50, 3),
			made("twin", "", 50, 4), made("floor", result.Floor, 20, 5),
		},
	}
}

func TestRatiosAndRanksComeFromTheBlocks(t *testing.T) {
	t.Parallel()
	d := document()
	d.Compare()
	want := map[string]string{"rest": "3", "raw": "1–2", "twin": "1–2"}
	for _, r := range d.Rows {
		if r.Role != "" && r.Role != result.Baseline {
			if r.Rank != "" {
				t.Errorf("%s has rank %q; only contenders and the baseline are ranked", r.ID(), r.Rank)
			}
		} else if r.Rank != want[r.Contender.Name] {
			t.Errorf("%s has rank %q, want %q", r.ID(), r.Rank, want[r.Contender.Name])
		}
		if (r.Ratio == nil) != (r.Role == result.Baseline) {
			t.Errorf("%s: ratio %+v", r.ID(), r.Ratio)
		}
	}
	q := d.Rows[2].Ratio
	if q.Value < .49 || q.Value > .51 || *q.Lo > q.Value || *q.Hi < q.Value || q.Blocks != 20 || q.To != "rest" || *q.MinValue != .5 || q.Without != nil {
		t.Errorf("raw: %+v", q)
	}
}

// Rows of different cases, phases or concurrencies are never divided by one another.
// Of two floors the one that does the contenders' own work is the slower, wherever it stands.
func TestAGroupsFloorIsTheSlowest(t *testing.T) {
	t.Parallel()
	at := func(role string, p50 float64) *result.Row {
		return &result.Row{Role: role, Latency: &result.Latency{P50: p50}}
	}
	echo, works, lost := at(result.Floor, 20), at(result.Floor, 5000), &result.Row{Role: result.Floor}
	for name, x := range map[string]struct {
		rows []*result.Row
		want *result.Row
	}{
		"none":             {[]*result.Row{at(result.Null, 9)}, nil},
		"without a call":   {[]*result.Row{lost}, nil},
		"one":              {[]*result.Row{at("", 30), echo}, echo},
		"two":              {[]*result.Row{echo, at(result.Baseline, 6000), works}, works},
		"two, other order": {[]*result.Row{works, lost, echo}, works},
	} {
		if got := (&result.Group{Rows: x.rows}).Floor(); got != x.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRatiosNeverCrossAGroup(t *testing.T) {
	t.Parallel()
	d := document()
	d.Rows[2].Phase, d.Rows[3].Concurrency = "unix", 8
	d.Compare()
	if d.Rows[2].Ratio != nil || d.Rows[3].Ratio != nil || d.Rows[4].Ratio == nil {
		t.Errorf("ratios %+v, %+v, %+v", d.Rows[2].Ratio, d.Rows[3].Ratio, d.Rows[4].Ratio)
	}
	if n := len(d.Groups()); n != 3 {
		t.Errorf("%d groups", n)
	}
}

func TestAnOutlierRoundIsMarkedAndTheRatioGivenWithAndWithout(t *testing.T) {
	t.Parallel()
	d := document()
	for i := range d.Rows {
		for j := range d.Rows[i].Rounds {
			d.Rows[i].Rounds[j].P50 = result.Ptr(*d.Rows[i].Rounds[j].P50 * (1 + float64(j)/100))
		}
		for j := range d.Rows[i].Rounds[3].Blocks {
			if d.Rows[i].Role == "" { // only the contenders suffer: the verdict changes
				*d.Rows[i].Rounds[3].Blocks[j].P50 *= 40
			}
		}
		*d.Rows[i].Rounds[3].P50 *= 3
	}
	d.Compare()
	d.Examine()
	q := d.Rows[2].Ratio
	if q.Without == nil || q.Without.Blocks != 16 || q.Blocks != 20 || cmp.Diff([]int{4}, q.Without.Rounds) != "" || q.Without.Value > .51 {
		t.Errorf("ratio %+v, without %+v", q, q.Without)
	}
	if d.Rows[4].Rounds[3].Outlier == "" || d.Rows[4].Rounds[2].Outlier != "" {
		t.Errorf("marks: %q, %q", d.Rows[4].Rounds[3].Outlier, d.Rows[4].Rounds[2].Outlier)
	}
	kinds := make(map[string]int)
	for _, a := range d.Anomalies {
		kinds[a.Kind]++
	}
	if kinds[result.Outlier] != 1 {
		t.Errorf("anomalies %v", d.Anomalies)
	}
}

func TestCarryOverIsNoticed(t *testing.T) {
	t.Parallel()
	d := document()
	r, base := &d.Rows[2], &d.Rows[0]
	for i := range r.Rounds {
		for j := range r.Rounds[i].Blocks {
			b := &r.Rounds[i].Blocks[j]
			b.Slot, base.Rounds[i].Blocks[j].Slot = j%2*2, 1
			if b.Slot == 2 {
				*b.P50 *= 1.5
			}
		}
	}
	d.Compare()
	d.Examine()
	if len(d.Anomalies) != 1 || d.Anomalies[0].Kind != result.CarryOver || d.Anomalies[0].Row != "call/32B tcp raw" {
		t.Errorf("anomalies %v", d.Anomalies)
	}
}

func TestThresholdsNeedTheirFigure(t *testing.T) {
	t.Parallel()
	d := document()
	d.Rows[2].Ops, d.Rows[2].OK = 10, 9
	d.Compare()
	d.Judge([]string{"raw ratio <= 0.6", "raw ratio < 0.4", "raw failures < 0.2", "raw p99 < 1", "nobody ratio < 9", "rest ratio < 2"})
	want := []bool{true, false, true, false, false, false}
	for i, th := range d.Thresholds {
		if th.Passed != want[i] {
			t.Errorf("%s: passed %v", th.Expr, th.Passed)
		}
	}
}

func TestADocumentSurvivesTheTripThroughAFile(t *testing.T) {
	t.Parallel()
	d := document()
	d.Compare()
	d.Examine()
	file := filepath.Join(t.TempDir(), "result.json")
	if err := d.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	back, err := result.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if d.Encode(&a) != nil || back.Encode(&b) != nil || a.String() != b.String() {
		t.Errorf("the document differs after a trip:\n%s", cmp.Diff(a.String(), b.String()))
	}
	if !json.Valid(a.Bytes()) || strings.Count(a.String(), "\n") > 60 {
		t.Errorf("not one line a row: %d lines, valid %v", strings.Count(a.String(), "\n"), json.Valid(a.Bytes()))
	}
	back.Compare()
	if back.Rows[2].Ratio.Value != d.Rows[2].Ratio.Value {
		t.Error("the ratio derived again from the file differs")
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAHugeFileIsRefusedUnread(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "huge")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(100 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, err = result.ReadFile(file)
	if want := fmt.Sprintf("result %s: more than 64 MiB; not a result that toll wrote", file); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// All that a screen can show is in the file: reports see nothing but a Document, and every field of one, however deep, has a
// name in the JSON that is its own (grafana/k6#4803, #4872).
func TestEveryFieldOfADocumentIsInItsJSON(t *testing.T) {
	t.Parallel()
	seen := make(map[reflect.Type]bool)
	fields := 0
	var walk func(path string, x reflect.Type)
	walk = func(path string, x reflect.Type) {
		for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct || seen[x] || x == reflect.TypeFor[time.Time]() {
			return
		}
		seen[x] = true
		names := make(map[string]bool)
		for f := range x.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case !f.IsExported():
				t.Errorf("%s.%s is not exported, so the file can't hold it", path, f.Name)
			case f.Anonymous && name == "":
				// Its fields are those of the struct that it is in.
			case name == "-" && onlyOfAPlanFile[f.Name]:
				continue
			case name == "-" || name == "" || names[name]:
				t.Errorf("%s.%s has the name %q in JSON", path, f.Name, name)
			}
			names[name] = true
			fields++
			walk(path+"."+f.Name, f.Type)
		}
	}
	walk("Document", reflect.TypeFor[result.Document]())
	if fields < 200 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// onlyOfAPlanFile are the fields of a plan that change it before it runs: what ran is in the settings.
var onlyOfAPlanFile = map[string]bool{"Full": true, "Quick": true}
