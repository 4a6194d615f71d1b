package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/wire/engine"
)

// sleeping is a bench whose calls take a millisecond each and fail as the input says.
func sleeping(prepared, checked *atomic.Int64) engine.Bench {
	return func(_ context.Context, q engine.Question) (engine.Work, error) {
		var input struct{ FailEvery int }
		if q.Case != "sleep" {
			return engine.Work{}, fmt.Errorf("case %q is none of this engine", q.Case)
		}
		if len(q.Input) > 0 {
			if err := json.Unmarshal(q.Input, &input); err != nil {
				return engine.Work{}, err
			}
		}
		time.Sleep(time.Second) // set-up is in nobody's time
		prepared.Add(1)
		return engine.Work{
			Call: func(_ context.Context, _, i int, parts *engine.Parts) error {
				time.Sleep(time.Millisecond)
				parts.Add("sleep", time.Millisecond)
				if input.FailEvery > 0 && i%input.FailEvery == 0 {
					return &engine.Failure{Kind: "wrong_content", Err: errors.New("as asked")}
				}
				return nil
			},
			Check: func() (int, error) {
				checked.Add(1)
				return 3, nil
			},
			Collected: true,
		}, nil
	}
}

// ask has one line answered.
func ask(t *testing.T, line string, bench engine.Bench) string {
	t.Helper()
	var out bytes.Buffer
	other := func(line string) any {
		if line == "stats" {
			return map[string]int{"allocs": 1}
		}
		return nil
	}
	if err := engine.Serve(t.Context(), strings.NewReader(line+"\n"), &out, bench, nil, other); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAStretchIsTimedCallByCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var prepared, checked atomic.Int64
		got := ask(t, `{"id":7,"case":"sleep","input":{"FailEvery":5},"calls":20,"callers":4}`, sleeping(&prepared, &checked))
		q := engine.Question{ID: 7, Case: "sleep", Calls: 20, Callers: 4}
		a, err := engine.ParseAnswer([]byte(got), q, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		a.CPU, a.User, a.Allocs, a.Bytes = nil, nil, nil, nil // of a real clock and heap
		ms := int64(time.Millisecond)
		want := engine.Answer{
			ID: 7, Elapsed: 5 * ms, Active: new(20 * ms), Checked: 3, Failed: map[string]int64{"wrong_content": 4}, FailedNS: 4 * ms, Why: "wrong_content: as asked",
			Parts: map[string][]int64{"sleep": slicesOf(ms, 20)}, NS: slicesOf(ms, 16),
		}
		if d := cmp.Diff(want, a); d != "" {
			t.Error(d)
		}
		if prepared.Load() != 1 || checked.Load() != 1 {
			t.Errorf("set up %d times, verified %d times", prepared.Load(), checked.Load())
		}
	})
}

// A caller that is slow does not keep the others waiting for its share: they make the calls that it has not come to.
func TestCallersTakeCallsAsTheyGetFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := func(context.Context, engine.Question) (engine.Work, error) {
			return engine.Work{Call: func(_ context.Context, caller, _ int, _ *engine.Parts) error {
				time.Sleep(time.Millisecond + 9*time.Millisecond*time.Duration(caller)) // 1 ms and 10 ms
				return nil
			}}, nil
		}
		got := ask(t, `{"id":7,"case":"x","calls":22,"callers":2}`, bench)
		a, err := engine.ParseAnswer([]byte(got), engine.Question{ID: 7, Case: "x", Calls: 22, Callers: 2}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if ms := time.Duration(a.Elapsed).Milliseconds(); ms != 20 || *a.Active != 2*a.Elapsed {
			t.Errorf("%d ms, of which callers were active %d ns", ms, *a.Active)
		}
	})
}

// A paced stretch sends each call when it is due, however long those before it take, and drops what finds nobody free.
func TestAStretchIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := func(context.Context, engine.Question) (engine.Work, error) {
			return engine.Work{Call: func(_ context.Context, _, i int, _ *engine.Parts) error {
				time.Sleep(10 * time.Millisecond)
				if i == 5 {
					return &engine.Failure{Kind: "wrong_id", Err: errors.New("as asked")}
				}
				return nil
			}}, nil
		}
		ms := int64(time.Millisecond)
		// Due at 1, 2, 3 ms, where two may be in flight, and at 20, 20 and 40 ms.
		q := engine.Question{ID: 7, Case: "x", Calls: 6, Callers: 2, Due: []int64{ms, ms, ms, 17 * ms, 0, 20 * ms}}
		line, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		a, err := engine.ParseAnswer([]byte(ask(t, string(line), bench)), q, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		a.CPU, a.User, a.Allocs, a.Bytes = nil, nil, nil, nil
		want := engine.Answer{
			ID: 7, Elapsed: 50 * ms, Checked: 4, Failed: map[string]int64{"wrong_id": 1}, FailedNS: 10 * ms, Why: "wrong_id: as asked",
			NS:    []int64{10 * ms, 10 * ms, -1, 10 * ms, 10 * ms, -1},
			Paced: &engine.Paced{Late: []int64{0, 0, -1, 0, 0, 0}, Most: 2, InFlight: 50 * ms},
		}
		if d := cmp.Diff(want, a); d != "" {
			t.Error(d)
		}
	})
}

// badPaced are answers that are not believed, to two calls due after 1 µs and 2 µs, by one caller, in 10 µs.
var badPaced = map[string]string{
	`{"id":7,"ns":[1,2],"elapsed_ns":9000,"checked":2}`:                                                        "answer: no paced; the engine does not keep a schedule",
	`{"id":7,"ns":[1],"elapsed_ns":9000,"checked":1,"paced":{"late_ns":[0,0],"most":1,"in_flight_ns":3}}`:      "answer: 1 calls in ns, 2 in late_ns; 2 were due",
	`{"id":7,"ns":[1,2],"elapsed_ns":9000,"checked":2,"paced":{"late_ns":[0],"most":1,"in_flight_ns":3}}`:      "answer: 2 calls in ns, 1 in late_ns; 2 were due",
	`{"id":7,"ns":[1,2],"elapsed_ns":9000,"checked":2,"paced":{"late_ns":[0,-1],"most":1,"in_flight_ns":3}}`:   "answer: call 1 took 2 ns, sent -1 ns late",
	`{"id":7,"ns":[1,-2],"elapsed_ns":9000,"checked":1,"paced":{"late_ns":[0,0],"most":1,"in_flight_ns":3}}`:   "answer: call 1 took -2 ns, sent 0 ns late",
	`{"id":7,"ns":[1,8000],"elapsed_ns":9000,"checked":2,"paced":{"late_ns":[0,0],"most":1,"in_flight_ns":3}}`: "answer: call 1, due at 2000 ns, was sent 0 ns late and took 8000 ns, in a stretch of 9000",
	`{"id":7,"ns":[1,9000000000000000000],"elapsed_ns":9000,"paced":{"late_ns":[0,9000000000000000000]}}`:      "answer: call 1, due at 2000 ns, was sent 9000000000000000000 ns late and took 9000000000000000000 ns, in a stretch of 9000",
	`{"id":7,"ns":[1,-1],"elapsed_ns":9000,"checked":1,"paced":{"late_ns":[0,0],"most":1,"in_flight_ns":3}}`:   "answer: 1 calls did not succeed, 0 failed and 0 were dropped",
	`{"id":7,"ns":[1,2],"elapsed_ns":9000,"checked":2,"paced":{"late_ns":[0,0],"most":2,"in_flight_ns":3}}`:    "answer: most is 2 and in_flight_ns 3, with 1 callers and 9000 ns",
	`{"id":7,"ns":[1,-1],"elapsed_ns":9000,"checked":2,"paced":{"late_ns":[0,-1],"most":1,"in_flight_ns":3}}`:  "answer: checked is 2 of 1 results",
	`{"id":7,"ns":[1,2],"elapsed_ns":11000,"checked":2,"paced":{"late_ns":[0,0],"most":1,"in_flight_ns":3}}`:   "answer: elapsed_ns is 11000, and the whole stretch took 10000",
}

func TestAScheduleThatWasNotKeptIsNotBelieved(t *testing.T) {
	t.Parallel()
	q := engine.Question{ID: 7, Case: "x", Calls: 2, Callers: 1, Due: []int64{1000, 1000}}
	for line, want := range badPaced {
		if _, err := engine.ParseAnswer([]byte(line), q, 10*time.Microsecond); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", line, err, want)
		}
	}
	closed := engine.Question{ID: 7, Case: "x", Calls: 1, Callers: 1}
	line := `{"id":7,"ns":[1],"elapsed_ns":9,"checked":1,"paced":{"late_ns":[0]}}`
	if _, err := engine.ParseAnswer([]byte(line), closed, time.Second); err == nil || err.Error() != "answer: paced, and the question was not" {
		t.Error(err)
	}
}

func slicesOf(v int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestOtherLinesKeepTheContract(t *testing.T) {
	t.Parallel()
	if got := ask(t, "stats\n\nhello", nil); got != `{"allocs":1}`+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestWhatCantBeRunSaysWhy(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	for line, want := range map[string]string{
		`{"id":1,"case":"x","calls":1,"callers":1}`:                            `case "x" is none of this engine`,
		`{"id":1,"case":"x","calls":0,"callers":1}`:                            "question: calls is 0; expected 1 to 65536",
		`{"id":1,"case":"x","calls":65537,"callers":1}`:                        "question: calls is 65537; expected 1 to 65536",
		`{"id":1,"case":"x","calls":1,"callers":0}`:                            "question: callers is 0; expected 1 to 1024",
		`{"id":1,"calls":1,"callers":1}`:                                       "question: no case",
		`{"id":1,"case":"x","calls":1,"callers":1,"x":1}`:                      `question: json: unknown field "x"`,
		`{"id":1,"case":"x","calls":1,"callers":1}{"id":2}`:                    "question: more than one on a line",
		`{"id":1,"case":"x","calls":2,"callers":1,"due_ns":[1]}`:               "question: due_ns has 1 times for 2 calls",
		`{"id":1,"case":"x","calls":1,"callers":1,"due_ns":[-1]}`:              "question: due_ns of call 0 is -1, 0s after the start; expected times that grow, to 1h0m0s at most",
		`{"id":1,"case":"x","calls":2,"callers":1,"due_ns":[3600000000000,1]}`: "question: due_ns of call 1 is 1, 1h0m0s after the start; expected times that grow, to 1h0m0s at most",
		`{"id":1,"case":"x","calls":1.5,"callers":1}`:                          "question: json: cannot unmarshal number 1.5 into Go struct field Question.calls of type int",
		`{"id":1,"case":"x","calls":1,"callers":1`:                             "question: unexpected EOF",
	} {
		var a engine.Answer
		if err := json.Unmarshal([]byte(ask(t, line, sleeping(&n, &n))), &a); err != nil || a.Error != want {
			t.Errorf("%s: got %q, %v; want %q", line, a.Error, err, want)
		}
	}
}

// badAnswers are answers that are not believed, to two calls by one caller that took a microsecond.
var badAnswers = map[string]string{
	`{"id":8,"ns":[1,2],"elapsed_ns":10,"checked":2}`:                                   "answer: id is 8; expected 7",
	`{"id":7,"ns":[1],"elapsed_ns":10,"checked":1}`:                                     "answer: 1 calls in ns and failed; 2 were asked for",
	`{"id":7,"ns":[1,2,3],"elapsed_ns":10,"checked":2}`:                                 "answer: 3 calls in ns and failed; 2 were asked for",
	`{"id":7,"ns":[1,2],"elapsed_ns":1001,"checked":2}`:                                 "answer: elapsed_ns is 1001, and the whole stretch took 1000",
	`{"id":7,"ns":[1,2],"elapsed_ns":-1,"checked":2}`:                                   "answer: elapsed_ns is -1, and the whole stretch took 1000",
	`{"id":7,"ns":[1,11],"elapsed_ns":10,"checked":2}`:                                  "answer: a call took 11 ns, the stretch 10",
	`{"id":7,"ns":[-1,1],"elapsed_ns":10,"checked":2}`:                                  "answer: a call took -1 ns, the stretch 10",
	`{"id":7,"ns":[9,9],"elapsed_ns":10,"checked":2}`:                                   "answer: its calls took 18 ns, more than 1 callers have in 10 ns",
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":3}`:                                   "answer: checked is 3 of 2 results",
	`{"id":7,"ns":[1],"failed":{"other":1},"elapsed_ns":10,"checked":2}`:                "answer: checked is 2 of 1 results",
	`{"id":7,"ns":[1,2,3],"failed":{"other":-1},"elapsed_ns":10,"checked":2}`:           `answer: failed "other" is -1; 2 calls were asked for`,
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2,"cpu_ns":5,"user_ns":6}`:            "answer: user_ns is 6, more than cpu_ns",
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2,"cpu_ns":-1}`:                       "answer: cpu_ns, user_ns, allocs or alloc_bytes is -1",
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2,"parts":{"sign":[1,2,3]}}`:          `answer: part "sign" has 3 times; 2 calls were asked for`,
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2,"parts":{"sign":[11]}}`:             `answer: part "sign" took 11 ns, the stretch 10`,
	`{"id":7,"ns":[1],"failed":{"other":1},"elapsed_ns":10,"checked":1,"failed_ns":11}`: "answer: failed_ns is 11, with 1 callers and 10 ns",
	`{"id":7,"ns":[4],"failed":{"other":1},"elapsed_ns":10,"checked":1,"failed_ns":7}`:  "answer: its calls took 11 ns, more than 1 callers have in 10 ns",
	`{"id":7,"ns":[4,4],"elapsed_ns":10,"checked":2,"active_ns":7}`:                     "answer: active_ns is 7; its calls took 8 ns and 1 callers have 10 ns each",
	`{"id":7,"ns":[4,4],"elapsed_ns":10,"checked":2,"active_ns":11}`:                    "answer: active_ns is 11; its calls took 8 ns and 1 callers have 10 ns each",
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2,"extra":1}`:                         `answer: json: unknown field "extra"`,
	`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2} {}`:                                "answer: more than one on a line",
	`{"id":7,"ns":["a"],"elapsed_ns":10}`:                                               "answer: json: cannot unmarshal string into Go struct field Answer.ns of type int64",
}

func TestAnAnswerThatCantBeIsNotBelieved(t *testing.T) {
	t.Parallel()
	q := engine.Question{ID: 7, Case: "x", Calls: 2, Callers: 1}
	for line, want := range badAnswers {
		if _, err := engine.ParseAnswer([]byte(line), q, time.Microsecond); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", line, err, want)
		}
	}
	if a, err := engine.ParseAnswer([]byte(`{"id":7,"error":"no such case"}`), q, time.Microsecond); err != nil || a.Error != "no such case" {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzParseAnswer(f *testing.F) {
	for line := range badAnswers {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"id":7,"ns":[1,2],"elapsed_ns":10,"checked":2,"cpu_ns":5,"parts":{"sign":[1,2]}}`))
	q := engine.Question{ID: 7, Case: "x", Calls: 2, Callers: 1}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := engine.ParseAnswer(line, q, time.Microsecond)
		if err != nil || a.Error != "" {
			return
		}
		failed := int64(0)
		for _, n := range a.Failed {
			failed += n
		}
		if int64(len(a.NS))+failed != 2 || a.Elapsed > 1000 || a.Checked > int64(len(a.NS)) {
			t.Errorf("believed: %+v", a)
		}
	})
}

func FuzzParseQuestion(f *testing.F) {
	f.Add([]byte(`{"id":1,"case":"x","input":{"a":1},"calls":1,"callers":1}`))
	f.Add([]byte(`{"id":1,"case":"x","calls":1e9,"callers":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		q, err := engine.ParseQuestion(line)
		if err == nil && (q.Case == "" || q.Calls < 1 || q.Calls > engine.MaxCalls || q.Callers < 1 || q.Callers > engine.MaxCallers) {
			t.Errorf("accepted: %+v", q)
		}
	})
}
