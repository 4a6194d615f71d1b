package check_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"toll/lab/check"
	"toll/lab/plan"
	"toll/lab/result"
)

// good returns a document that a real run wrote: transport, quick profile. `toll run transport --json` makes another.
func good(t testing.TB) *result.Document {
	t.Helper()
	d, err := result.ReadFile("testdata/transport.json")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func text(t testing.TB, d *result.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := d.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func row(d *result.Document, role string) *result.Row {
	at := slices.IndexFunc(d.Rows, func(r result.Row) bool { return r.Role == role })
	return &d.Rows[at]
}

func TestARealDocumentKeepsEveryRule(t *testing.T) {
	t.Parallel()
	d, found, err := check.Document(text(t, good(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 || !d.Verdict.Publishable {
		t.Errorf("violations %v, verdict %+v", found, d.Verdict)
	}
}

// One document for each rule of an honest number, broken there and nowhere else.
func TestADocumentThatBreaksARuleIsRejected(t *testing.T) {
	t.Parallel()
	rejected := make(map[int]bool)
	for _, c := range []struct {
		rule  int
		spoil func(d *result.Document)
		want  string
	}{
		{1, func(d *result.Document) { row(d, "").Processes = row(d, "").Processes[:1] }, "the server's process is not stated"},
		{2, func(d *result.Document) {
			d.Method.Order, d.Plan.Order = plan.Fixed, plan.Fixed
			d.Plan.SHA256 = d.Plan.Digest()
		}, "the order is fixed, and the deviations do not list it"},
		{2, func(d *result.Document) {
			for i := range d.Rows {
				for _, x := range d.Rows[i].Rounds {
					for j := range x.Blocks {
						x.Blocks[j].Slot = i % 5
					}
				}
			}
		}, "every block has the contenders in the same places"},
		{3, func(d *result.Document) { row(d, "").Ratio.Value /= 2; *row(d, "").Ratio.Lo /= 2 }, "its blocks give the ratio"},
		{3, func(d *result.Document) { row(d, "").Ratio.To = "floor" }, `its ratio is to "floor", which is not the baseline`},
		{4, func(d *result.Document) {
			d.Rows = slices.DeleteFunc(d.Rows, func(r result.Row) bool { return r.Role == result.Control })
		}, "no A/A control among the rows"},
		{4, func(d *result.Document) { row(d, "").Rank = "1–2" }, `its blocks give the rank "1", the document says "1–2"`},
		{5, func(d *result.Document) { row(d, "").Verified-- }, "replies were verified"},
		{5, func(d *result.Document) { row(d, "").Failed = map[string]int64{"wrong_id": 3} }, "successes, 3 failures and 0 dropped"},
		{6, func(d *result.Document) { row(d, "").Little = nil }, "a closed-model row without its Little ratio"},
		{6, func(d *result.Document) { row(d, "").Little = result.Ptr(1.4) }, "Little ratio 1.400 is outside 0.95–1.05 and the row does not warn"},
		{7, func(d *result.Document) {
			d.Rows = slices.DeleteFunc(d.Rows, func(r result.Row) bool { return r.Role == result.Null })
		}, "no null target among the rows"},
		{7, func(d *result.Document) { row(d, "").Client.CPU = result.Ptr(row(d, "").Latency.Mean) }, "does not say client-bound"},
		{8, func(d *result.Document) { row(d, "").Client.CPU = result.Ptr(-124.) }, "client.cpu_us_per_op is -124, less than nothing"},
		{8, func(d *result.Document) { row(d, "").Server.CPU = nil }, "server.cpu_us_per_op is missing, and no gap says why"},
		{9, func(d *result.Document) {
			d.Plan.Warmup, d.Plan.Claims.Warmup = 0, 0
			d.Plan.SHA256 = d.Plan.Digest()
		}, "no warm-up is declared"},
		{10, func(d *result.Document) { row(d, "").Latency.P999 = result.Ptr(row(d, "").Latency.Max) }, "successes; it needs 10000"},
		{10, func(d *result.Document) { row(d, "").AboveTen = nil }, "the count above 10 × p50 is missing"},
		{10, func(d *result.Document) { row(d, "").Latency.P50 = row(d, "").Latency.Max + 1 }, "less than the quantile below it"},
		{10, func(d *result.Document) { row(d, "").Intervals["p99"] = result.Span{Lo: 1, Hi: 2} }, "outside its own interval 1.000–2.000"},
		{11, func(d *result.Document) { row(d, "").Rounds = row(d, "").Rounds[1:] }, "its rounds hold "},
		{12, func(d *result.Document) {
			d.Method.Deviations = append(d.Method.Deviations, plan.Deviation{What: "limits", Claimed: "1 CPU", Ran: result.NoneInForce + " on rest-raw"})
		}, "limits of 1 CPU were asked for and were none in force on rest-raw"},
		{12, func(d *result.Document) {
			d.Plan.Claims.Blocks = 60
			d.Plan.SHA256 = d.Plan.Digest()
		}, "the plan gives the deviations [{blocks 60 "},
		{12, func(d *result.Document) { d.Plan.Calls = 1000 }, "the plan's digest does not fit the plan"},
		{13, func(d *result.Document) {
			r := *row(d, "")
			r.Kind = result.Published
			d.Rows = append(d.Rows, r)
		}, "a published row has a ratio or a rank"},
		{14, func(d *result.Document) { row(d, "").Server.Allocs = nil }, "server.allocs_per_op is null without a gap"},
		{15, func(d *result.Document) { row(d, "").TLS = &result.TLS{} }, `the row does not say "server not verified"`},
		{16, func(d *result.Document) { d.Method.Limits.Mechanism = "" }, "by which mechanism the contenders were limited"},
		{16, func(d *result.Document) { d.Method.Hop.MeasuredRTT = nil }, "the hop's RTT was not measured"},
	} {
		d := good(t)
		c.spoil(d)
		_, found, err := check.Document(text(t, d))
		if err != nil {
			t.Errorf("rule %d: %v", c.rule, err)
			continue
		}
		if !slices.ContainsFunc(found, func(v check.Violation) bool { return v.Rule == c.rule && strings.Contains(v.Text, c.want) }) {
			t.Errorf("rule %d: want %q; found %v", c.rule, c.want, found)
		}
		rejected[c.rule] = true
		if v := check.Verdict(d); v.Publishable || len(v.Reasons) == 0 {
			t.Errorf("rule %d: the verdict is %+v", c.rule, v)
		}
		// A document that admits it is sound but must not be published: nothing but the rules speaks against it.
		d.Verdict = check.Verdict(d)
		if _, again, err := check.Document(text(t, d)); err != nil || slices.ContainsFunc(again, func(v check.Violation) bool { return v.Rule == 0 }) {
			t.Errorf("rule %d, admitted: %v, %v", c.rule, again, err)
		}
	}
	for rule := 1; rule <= 16; rule++ {
		if !rejected[rule] {
			t.Errorf("no broken document for rule %d", rule)
		}
	}
}

func TestALieAboutTheVerdictIsFound(t *testing.T) {
	t.Parallel()
	d := good(t)
	d.Verdict = result.Verdict{Publishable: false, Reasons: []string{"modesty"}}
	if _, found, err := check.Document(text(t, d)); err != nil || len(found) != 1 || found[0].Rule != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	whole := string(text(t, good(t)))
	for name, c := range map[string]struct{ in, want string }{
		"empty":             {"", "unexpected end of JSON input"},
		"truncated":         {whole[:len(whole)/2], "unexpected end of JSON input"},
		"not JSON":          {"schema: x", "line 1: invalid character 's'"},
		"other schema":      {strings.Replace(whole, "toll.result/v1", "toll.result/v9", 1), `schema is "toll.result/v9"; this toll reads toll.result/v1`},
		"unknown field":     {strings.Replace(whole, `"elapsed_s"`, `"took"`, 1), `json: unknown field "took"`},
		"wrong type":        {strings.Replace(whole, `"seed": 42`, `"seed": "42"`, 1), "line 6: json: cannot unmarshal string into Go struct field Document.seed of type int64"},
		"unknown kind":      {strings.Replace(whole, `"kind":"measured"`, `"kind":"guessed"`, 1), "schema: at '/rows/0/kind': value must be one of 'measured', 'foreign', 'published'"},
		"missing field":     {strings.Replace(whole, `"dropped":0,`, ``, 1), "schema: at '/rows/0': missing property 'dropped'"},
		"unknown benchmark": {strings.ReplaceAll(whole, `"transport"`, `"teleport"`), `benchmark "teleport" is not one of`},
		"unknown case":      {strings.ReplaceAll(whole, `"call/32B"`, `"call/33B"`), `row 0: case "call/33B" is not one of the benchmark transport`},
		"unknown contender": {strings.ReplaceAll(whole, `"rest-raw"`, `"rest-raw2"`), `contender "rest-raw2" is not one of the benchmark transport, and no manifest brought it`},
		"unknown phase":     {strings.ReplaceAll(whole, `"tcp"`, `"udp"`), `row 0: phase "udp" is not one of tcp, unix`},
		"an array":          {"[1]", "line 1: json: cannot unmarshal array"},
	} {
		_, _, err := check.Document([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzDocument(f *testing.F) {
	d := good(f)
	d.Rows = d.Rows[:1]
	d.Rows[0].Rounds, d.Rows[0].Histogram = d.Rows[0].Rounds[:1], nil
	f.Add(text(f, d))
	f.Add([]byte(`{"schema":"toll.result/v1","benchmark":"transport"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		check.Document(data)
	})
}
