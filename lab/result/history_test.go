package result_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/result"
)

func TestAHistoryKeepsWholeLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), result.HistoryName)
	d := run(50, 1, 1, 0)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := result.AppendHistory(file, d.Record("a")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\nnonsense\n{\"folder\":\"\"}\n{\"folder\":\"cut off"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	all, bad, err := result.ReadHistory(f)
	if err != nil || len(all) != 50 || bad != 3 {
		t.Fatalf("%d lines, %d bad, %v", len(all), bad, err)
	}
	if diff := cmp.Diff(d.Record("a"), all[49]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, _, err := result.ReadHistory(strings.NewReader(strings.Repeat("x", 5<<20))); err == nil {
		t.Error("a line of 5 MiB was read")
	}
}

func FuzzReadHistory(f *testing.F) {
	f.Add([]byte("{\"folder\":\"a\",\"rows\":[{\"id\":\"x\",\"ratio\":1}]}\n"))
	f.Add([]byte("{\"folder\":\"a\",\"rows\":[{\"id\":\"x\",\"p50_us\":-1}]}\nnonsense\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _, _ := result.ReadHistory(strings.NewReader(string(data)))
		for _, tr := range result.Trends(all) {
			if len(tr.Points) == 0 || len(tr.Points) > len(all)*len(data) {
				t.Errorf("%d points of %d records", len(tr.Points), len(all))
			}
		}
	})
}

// series returns records of a row whose ratio has so many values of 1, then those of more.
func seriesOf(seed uint64, n int, more ...float64) []result.Record {
	r := rand.New(rand.NewPCG(seed, 3))
	var out []result.Record
	for i := range n + len(more) {
		v := math.Exp(r.NormFloat64() * .02)
		if i >= n {
			v *= more[i-n]
		}
		out = append(out, result.Record{Folder: "x", Started: time.Unix(int64(i)*3600, 0), Rows: []result.RecordRow{
			{ID: "call/32B tcp rest", Role: result.Baseline, P50: result.Ptr(100.)},
			{ID: "call/32B tcp raw", Ratio: &v, P50: result.Ptr(50.)},
		}})
	}
	return out
}

func TestATrendFlagsALevelThatStaysAndNoSpike(t *testing.T) {
	t.Parallel()
	steps, spikes := 0, 0
	for seed := range uint64(50) {
		all := result.Trends(seriesOf(seed, 20, 1.15, 1.15, 1.15))
		if len(all) != 2 || all[0].Of != "p50 µs" || all[1].Of != "ratio to the baseline" || len(all[0].Changes) > 0 {
			t.Fatalf("%+v", all)
		}
		if c := all[1].Changes; len(c) > 0 && c[len(c)-1].At >= 19 && c[len(c)-1].Ratio > 1.1 {
			steps++
		}
		if c := result.Trends(seriesOf(seed, 20, 1.5, 1, 1))[1].Changes; len(c) > 0 {
			spikes++
		}
	}
	if steps < 47 || spikes > 1 {
		t.Errorf("of 50: %d steps of 15 %% flagged at their third run, %d single spikes", steps, spikes)
	}
}

// A gate's history must notice a step of 15 % that stays at its third run at the latest, and no single spike, neither as the newest
// run nor later, also when it comes from the file that runs append to.
func TestTheHistoryFileFlagsAStepAndNoSpike(t *testing.T) {
	t.Parallel()
	changes := func(seed uint64, more ...float64) int {
		file := filepath.Join(t.TempDir(), result.HistoryName)
		for _, r := range seriesOf(seed, 20, more...) {
			if err := result.AppendHistory(file, r); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all, bad, err := result.ReadHistory(f)
		if err != nil || bad != 0 || len(all) != 20+len(more) {
			t.Fatalf("%d records, %d bad, %v", len(all), bad, err)
		}
		return len(result.Trends(all)[1].Changes)
	}
	flagged, newest, past := 0, 0, 0
	for seed := range uint64(20) {
		flagged += min(changes(seed, 1.15, 1.15, 1.15), 1)
		newest += changes(seed, 1.5)
		past += changes(seed, 1.5, 1, 1, 1)
	}
	if flagged < 19 || newest > 1 || past > 1 {
		t.Errorf("of 20: %d steps flagged, %d spikes as the newest run, %d spikes before it", flagged, newest, past)
	}
}
