package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toll/audit"
	"toll/ingest"
	"toll/published"
)

func open(t *testing.T, name string) *audit.Report {
	t.Helper()
	r, err := audit.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func output(name string) string { return filepath.Join("..", "ingest", "testdata", name) }

// A finding is a claim that must be there: its id, verdict, and texts in what is computed and why.
type finding struct {
	id       string
	verdict  audit.Verdict
	computed string
	why      string
}

func wants(t *testing.T, r *audit.Report, all ...finding) {
	t.Helper()
	for _, f := range all {
		at := slices.IndexFunc(r.Claims, func(c audit.Claim) bool { return c.ID == f.id })
		if at < 0 {
			t.Errorf("%s: no claim %q", r.Name, f.id)
			continue
		}
		c := r.Claims[at]
		if c.Verdict != f.verdict || !strings.Contains(c.Computed, f.computed) || !strings.Contains(c.Why, f.why) {
			t.Errorf("%s: got %+v\nwant %+v", r.Name, c, f)
		}
	}
}

// Fifty users are stated; the rates, the times and the pause leave room for ten.
func TestTenUsersWhereFiftyAreStated(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "tmdevlab-v1"),
		finding{"users: java", audit.Fails, "10.1 users", "81.2 iterations/s × (100 ms pause + 5 sessions of 4.02 ms) = 9.75"},
		finding{"users: go", audit.Fails, "10.1 users", ""},
		finding{"users: nodejs", audit.Fails, "10.2 users", ""},
		finding{"users: python", audit.Fails, "10.4 users", ""})
	wants(t, open(t, "tmdevlab-v1-fork-dotnet"), finding{"users: go", audit.Fails, "9.91 users", ""}, finding{"users: dotnet-aot", audit.Fails, "", ""})
}

// The same script with fifty users really gives fifty.
func TestFiftyUsersWhereThereWereFifty(t *testing.T) {
	t.Parallel()
	r := open(t, "tmdevlab-v1-fork-rust")
	for _, c := range r.Claims {
		if strings.HasPrefix(c.ID, "users:") && c.Verdict != audit.Holds {
			t.Errorf("%+v", c)
		}
	}
	wants(t, r, finding{"users: go, run 20260220_074235", audit.Holds, "", ""}, finding{"ceiling: java, run 20260218_055856", audit.Fails, "81.2 %", ""})
}

func TestTheHarnessOwnCeilingAndUnits(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "tmdevlab-v1"),
		finding{"ceiling: java", audit.Fails, "91.6 % of the harness' ceiling", "each iteration waits 110 ms on purpose"},
		finding{"ceiling: go", audit.Fails, "91.6 %", ""},
		finding{"ceiling: nodejs", audit.Holds, "", ""},
		finding{"units: nodejs", audit.Fails, "2.18 ×", "an iteration of java makes 20 requests, one of nodejs 15"},
		finding{"count: java, round 1", audit.Holds, "519,744 calls", ""})
}

func TestWhatADeliberateDelayDoesToMeanAndQuantile(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "tmdevlab-v1"),
		finding{"delay: java", audit.Fails, "333 µs without simulate_database_query", "1 request of 20, but 62.1 % of the mean"},
		finding{"delay: go", audit.Fails, "336 µs", ""},
		finding{"edge: java p95", audit.Fails, "between two populations", "5 % of the requests"},
		finding{"overshoot: java and go", audit.Fails, "84.9 % of it is the delay", "10.4 ms and 10.7 ms"})
}

func TestRanksThatTradePlaces(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "tmdevlab-v1"), finding{"order: java before go", audit.Fails, "they trade places", "java leads in 2 and go in 1"},
		finding{"order: go before nodejs", audit.Holds, "", "their runs lie apart"})
	wants(t, open(t, "tmdevlab-v2"),
		finding{"rank: go", audit.Fails, "rank 10 in tmdevlab-v2-exploratory", "3,845/s there"},
		finding{"rank: quarkus-native", audit.Fails, "rank 3", ""}, finding{"rank: micronaut", audit.Fails, "rank 4", ""},
		finding{"uncounted: rust before quarkus", audit.Fails, "7,268/s against 9,478/s", "rust answers 12 and quarkus 16"},
		finding{"operations: rust", audit.Fails, "1,817/s are", ""},
		finding{"mean of quantiles: rust p99", audit.Fails, "it is a mean", "is 14.1 ms"})
	for _, c := range open(t, "tmdevlab-v2").Claims {
		if c.ID == "rank: rust" || c.ID == "rank: quarkus" || c.ID == "rank: python" || c.ID == "rank: nodejs" {
			t.Errorf("%+v", c)
		}
	}
	wants(t, open(t, "transport-seed"), finding{"order: MCP", audit.Fails, "it trades places", ""}, finding{"order: op-call plane", audit.Unknown, "", "two decimals"},
		finding{"order: ZAP unix", audit.Unknown, "", "an interval of 95 % needs six"})
}

func TestLatencyThatIsQueueing(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "civitas-gateway"),
		finding{"users: civitas (n=20)", audit.Holds, "50.0 users", "937/s × 46.7 ms = 43.7"},
		finding{"users: civitas (echo)", audit.Holds, "49.9 users", ""},
		finding{"users: civitas (n=30)", audit.Holds, "", ""},
		finding{"users: civitas (n=20, mutual TLS)", audit.Holds, "", ""},
		finding{"waiting: civitas (n=20)", audit.Fails, "84.9 % of it is waiting", "the way takes at most 6 ms"},
		finding{"waiting: civitas (n=30)", audit.Fails, "97.8 %", ""},
		finding{"waiting: civitas (echo)", audit.Fails, "34.9 %", ""})
	wants(t, open(t, "receipt-seed"),
		finding{"waiting: sync x16", audit.Fails, "93.4 %", "a call used 461 µs of CPU time"},
		finding{"plateau: sync x128", audit.Fails, "59.5 ms = users ÷ rate", ""})
	wants(t, open(t, "civitas-bus"), finding{"users: 50", audit.Holds, "50.0 users", ""}, finding{"plateau: 50", audit.Fails, "4.82 ms = users ÷ rate", "from 10 to 50 users"})
}

func TestRowsThatWereNotCalledAlike(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "civitas-gateway"),
		finding{"users: Java (Spring Boot)", audit.Fails, "1.4 users", "1,624/s × 835 µs = 1.36"},
		finding{"same load: civitas (n=20)", audit.Fails, "43.7 and 1.36 in flight", "neither rates nor times rank them"},
		finding{"conclusion: more requests a second than Node.js", audit.Fails, "not shown", "not called alike"},
		finding{"conclusion: mutual TLS adds 2.7 % of latency", audit.Unknown, "not shown", "one run each"},
		finding{"unchecked: civitas (n=20)", audit.Unknown, "", "by its status"})
}

func TestConnectTimeCountedAsSpawn(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "spawn-seed"),
		finding{"network: 1", audit.Fails, "8 ms of it are the way", "2 round trips of 4 to 6 ms; at 1,356/s, the highest rate here, 1 core can give each at most 737 µs"},
		finding{"samples: 1 p99", audit.Fails, "5 values lie beyond it", "of 500 calls"},
		finding{"plateau: 50", audit.Fails, "", ""})
}

func TestACounterThatBecame491Failures(t *testing.T) {
	t.Parallel()
	wants(t, open(t, "spawn-early-run"), finding{"length: 1", audit.Fails, "none need have", "begins at 1, then of 500 numbers 9 have as many digits"})
	wants(t, open(t, output("ab_length.txt")), finding{"length: /count", audit.Fails, "none need have", "begins at 2, then of 500 numbers 8 have"})
	wants(t, open(t, output("ab_non2xx.txt")), finding{"length: /flaky", audit.Holds, "", "a status that is no success"})
}

func TestOtherHarnesses(t *testing.T) {
	t.Parallel()
	wants(t, open(t, output("wrk_frozen.txt")), finding{"users: http://127.0.0.1:37565/", audit.Fails, "0.647 users", "a stop that no call's time holds"})
	wants(t, open(t, output("k6_dropped.json")), finding{"offered: iterations", audit.Fails, "were never sent", ""})
	wants(t, open(t, output("hey_errors.txt")), finding{"samples: hey p99", audit.Fails, "5 values lie beyond it", ""})
	wants(t, open(t, output("vegeta.txt")), finding{"offered: vegeta", audit.Holds, "", ""}, finding{"samples: vegeta p99", audit.Holds, "", ""})
	wants(t, open(t, output("vegeta_dead.txt")), finding{"count: vegeta", audit.Holds, "0 calls", ""})
	wants(t, open(t, output("go.txt")), finding{"spread: BenchmarkDone-2", audit.Unknown, "1.02 µs to 1.3 µs", "3 repeats"})
	wants(t, open(t, output("hyperfine.json")), finding{"order: true before sleep 0.003", audit.Holds, "", "their runs lie apart"})
}

// A rule may look at nothing but figures and method: under another name the same is found.
func TestNoRuleKnowsANameOrAFile(t *testing.T) {
	t.Parallel()
	for _, name := range published.Names() {
		table, err := published.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		want := audit.Table(table).Claims
		table.Name, table.Title, table.Source, table.Date, table.Machine, table.SHA256, table.Errata, table.Method = "x", "x", "x", "x", "x", "x", nil, nil
		if got := audit.Table(table).Claims; !slices.Equal(got, want) {
			t.Errorf("%s: under another name %d claims are not the same", name, len(got))
		}
	}
	text, err := os.ReadFile(output("ab_length.txt"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := ingest.Decode("other.log", text)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := audit.Foreign(in).Claims, open(t, output("ab_length.txt")).Claims; !slices.Equal(got, want) {
		t.Error("under another file name the claims differ")
	}
}

// A figure that is changed changes the verdict: no rule is a constant.
func TestFiguresThatAgreeHold(t *testing.T) {
	t.Parallel()
	table, err := published.Load("tmdevlab-v1")
	if err != nil {
		t.Fatal(err)
	}
	table.Load.Users = 10
	for _, c := range audit.Table(table).Claims {
		if strings.HasPrefix(c.ID, "users:") && c.Verdict != audit.Holds {
			t.Errorf("with ten users stated: %+v", c)
		}
	}
	table.Rows[0].Rounds[0]["requests"] *= 1.1
	wants(t, audit.Table(table), finding{"count: java, round 1", audit.Fails, "519,744 calls", ""})
	spawn, err := published.Load("spawn-early-run")
	if err != nil {
		t.Fatal(err)
	}
	spawn.Rows[0].Figures["failed"] = 300
	wants(t, audit.Table(spawn), finding{"length: 1", audit.Unknown, "", ""})
	bus, err := published.Load("civitas-bus")
	if err != nil {
		t.Fatal(err)
	}
	bus.Rows[2].Figures["p95_ms"], bus.Rows[2].Figures["p99_ms"] = 5.51, 5.4
	wants(t, audit.Table(bus), finding{"shape: 50", audit.Fails, "p95 is 5.51 ms", ""})
}

func TestEveryTableFitsAScreen(t *testing.T) {
	t.Parallel()
	for _, name := range published.Names() {
		var b bytes.Buffer
		if err := open(t, name).Text(&b); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines > 50 {
			t.Errorf("%s: %d lines", name, lines)
		}
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(line)); n > 121 {
				t.Errorf("%s: a line of %d: %s", name, n, line)
			}
		}
		data, err := json.Marshal(open(t, name))
		if err != nil || !bytes.Contains(data, []byte(`"schema":"toll.audit/v1"`)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeAudited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, want := range map[string]string{
		"nobody":                    "audit nobody: no such file, and no published table of that name; there are aimultiple-mcp-gateways, ",
		write("prose.txt", "hello"): "no output that toll reads",
		write("cut.json", `{"schema": "toll.result/v1", "rows": [`): "unexpected EOF",
		write("other.json", `{"schema": "toll.result/v9"}`):         `schema is "toll.result/v9"; this toll reads toll.result/v1`,
		dir: "result.json: no such file",
	} {
		if _, err := audit.Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
}
