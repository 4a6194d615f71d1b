package system_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"toll/system"
	"toll/wire/engine"
)

// askEngine has an engine answer questions, one after the other.
func askEngine(t *testing.T, name string, questions ...engine.Question) []engine.Answer {
	t.Helper()
	bench, err := system.Bench(name)
	if err != nil {
		t.Fatal(err)
	}
	var in strings.Builder
	for i := range questions {
		questions[i].ID = int64(i + 1)
		if err := json.NewEncoder(&in).Encode(questions[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(engine.Serve(context.Background(), strings.NewReader(in.String()), w, bench, nil, func(string) any { return nil }))
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var out []engine.Answer
	for lines.Scan() {
		a, err := engine.ParseAnswer(lines.Bytes(), questions[len(out)], time.Hour)
		if err != nil {
			t.Fatalf("%s: %v: %.300s", name, err, lines.Text())
		}
		out = append(out, a)
	}
	if lines.Err() != nil || len(out) != len(questions) {
		t.Fatalf("%s: %d answers, %v", name, len(out), lines.Err())
	}
	return out
}

func TestSpawnEnginesDoWhatTheyAreAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"spawn-engine", "spawn-inline", "spawn-floor"} {
		live := json.RawMessage(`{"live":100}`)
		all := []engine.Question{
			{Case: "spawn/1", Calls: 64, Callers: 1},
			{Case: "spawn/16@100", Input: live, Calls: 8, Callers: 2},
			{Case: "spawn/1", Calls: 64, Callers: 50},
			{Case: "ask", Calls: 100, Callers: 1},
			{Case: "ask", Input: live, Calls: 500, Callers: 50},
		}
		for i, a := range askEngine(t, name, all...) {
			if a.Error != "" || a.Why != "" || len(a.NS) != all[i].Calls || a.Checked != int64(all[i].Calls) {
				t.Errorf("%s %s: %d calls, %d checked, %s %s", name, all[i].Case, len(a.NS), a.Checked, a.Error, a.Why)
			}
			if spawned := strings.HasPrefix(all[i].Case, "spawn/1") && all[i].Case != "spawn/16@100"; name == "spawn-engine" && spawned {
				for _, part := range []string{"admit", "register", "start", "ready", "gone"} {
					if len(a.Parts[part]) == 0 {
						t.Errorf("%s has no part %s", all[i].Case, part)
					}
				}
			}
		}
	}
}

func TestSpawnEnginesRefuseOtherCases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"spawn-engine", "spawn-floor"} {
		for want, q := range map[string]engine.Question{
			`case "rtt/128B" is none of this engine; expected ask or spawn/N`:   {Case: "rtt/128B", Calls: 1, Callers: 1},
			`case "spawn/0" is none of this engine; expected ask or spawn/N`:    {Case: "spawn/0", Calls: 1, Callers: 1},
			`input: live is -1; expected 0 to 1048576`:                          {Case: "ask", Input: json.RawMessage(`{"live":-1}`), Calls: 1, Callers: 1},
			`input: json: cannot unmarshal array into Go value of type system.`: {Case: "ask", Input: json.RawMessage(`[]`), Calls: 1, Callers: 1},
		} {
			if a := askEngine(t, name, q)[0]; !strings.HasPrefix(a.Error, want) {
				t.Errorf("%s: got %q, want %q", name, a.Error, fmt.Sprint(want))
			}
		}
	}
}
