package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/wire/engine"
)

// stretch answers every question as an engine does, each call in a microsecond.
func stretch(asked *[]engine.Question) asker {
	return func(_ context.Context, line []byte) ([]byte, error) {
		began := time.Now()
		q, err := engine.ParseQuestion(line)
		if err != nil {
			return nil, err
		}
		*asked = append(*asked, q)
		for time.Since(began) < time.Millisecond { // as long as it will say that it took
		}
		text := fmt.Sprintf(`{"id":%d,"elapsed_ns":1000000,"checked":%d,"cpu_ns":500,"allocs":%d,"alloc_bytes":64,"failed":{"wrong_id":1},"why":"x","ns":[`, q.ID, q.Calls-1, q.Calls)
		return []byte(text + strings.TrimSuffix(strings.Repeat("100,", q.Calls-1), ",") + `]}`), nil
	}
}

func TestAnEngineIsAskedForStretches(t *testing.T) {
	t.Parallel()
	var asked []engine.Question
	e := &driver.Engine{Asker: stretch(&asked), Case: "ask", Input: map[string]int{"live": 3}}
	s := new(record.Shard)
	elapsed, err := load.RunEngine(t.Context(), e, 100, 70_000, time.Second, s)
	if err != nil {
		t.Fatal(err)
	}
	// 65,536 calls is the most of one question, and there are as many for each caller.
	if len(asked) != 2 || asked[0].Calls != 65_500 || asked[1].Calls != 4500 || asked[0].ID == asked[1].ID {
		t.Fatalf("asked %+v", asked)
	}
	if string(asked[0].Input) != `{"live":3}` || asked[0].Callers != 100 || asked[0].Case != "ask" {
		t.Errorf("asked %+v", asked[0])
	}
	if elapsed != 2*time.Millisecond || s.Latency.Count() != 69_998 || s.Failures[record.WrongID] != 2 || s.Checked != 69_998 {
		t.Errorf("elapsed %v, %d ok, failed %v, checked %d", elapsed, s.Latency.Count(), s.Failures, s.Checked)
	}
	if s.CPU != time.Microsecond || !s.CPUKnown || s.Allocs != 70_000 || s.AllocBytes != 128 || !s.AllocsKnown {
		t.Errorf("CPU %v, %d objects, %d bytes", s.CPU, s.Allocs, s.AllocBytes)
	}
}

// An engine is told when each call is due. Latencies count from then, and what was dropped is counted apart.
func TestAnEngineKeepsASchedule(t *testing.T) {
	t.Parallel()
	var asked []engine.Question
	keeps := asker(func(_ context.Context, line []byte) ([]byte, error) {
		q, err := engine.ParseQuestion(line)
		if err != nil {
			return nil, err
		}
		asked = append(asked, q)
		for begin := time.Now(); time.Since(begin) < 25*time.Millisecond; { // as long as it will say that it took
			runtime.Gosched()
		}
		a := engine.Answer{ID: q.ID, Elapsed: 25e6, Failed: map[string]int64{"wrong_id": 1}, FailedNS: 500, Checked: int64(q.Calls - 2),
			Paced: &engine.Paced{Most: 2, InFlight: 9000}}
		for i := range q.Calls {
			a.NS, a.Paced.Late = append(a.NS, 1000), append(a.Paced.Late, int64(10*i))
		}
		a.NS[3], a.Paced.Late[3] = -1, -1 // dropped
		a.NS[5] = -1                      // failed
		return json.Marshal(a)
	})
	e := &driver.Engine{Asker: keeps, Case: "rtt"}
	crowd, err := load.Gather(t.Context(), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer crowd.Close()
	// Ten arrivals in 20 ms, half of them in each slice.
	stages := []plan.Stage{{Target: 500}, {Duration: plan.Duration(10 * time.Millisecond), Target: 500}, {Duration: plan.Duration(10 * time.Millisecond), Target: 500}}
	out, err := crowd.Run(t.Context(), load.Load{Stages: stages, Open: true, InFlight: 64})
	if err != nil {
		t.Fatal(err)
	}
	n := len(asked[0].Due)
	if n != 10 || asked[0].Calls != n || asked[0].Callers != 64 || asked[0].Due[1] != 2e6 {
		t.Fatalf("asked %+v", asked[0])
	}
	s := out.Shard()
	if out.Arrivals != 10 || s.Latency.Count() != 8 || s.Dropped != 1 || s.Failures[record.WrongID] != 1 || s.Checked != 8 || out.InFlightMost != 2 {
		t.Errorf("%d arrivals, %d ok, %d dropped, failed %v", out.Arrivals, s.Latency.Count(), s.Dropped, s.Failures)
	}
	if s.Latency.Max() < 1085 || s.Latency.Max() > 1095 || s.Service.Max() > 1005 || s.Late.Count() != 9 || len(out.Slices) != 2 {
		t.Errorf("latency to %d, service to %d, %d late, %d slices", s.Latency.Max(), s.Service.Max(), s.Late.Count(), len(out.Slices))
	}
	for name, l := range map[string]load.Load{
		"case rtt: more than 65536 arrivals in a turn, the most that an engine is told of": {Stages: plan.Hold(1e6, time.Second), Open: true, InFlight: 64},
		"2000 callers; an engine takes at most 1024":                                       {Stages: plan.Hold(10, time.Second), Open: true, InFlight: 2000},
		"the load has no arrivals":                                                         {Stages: plan.Hold(0, time.Second), Open: true},
		"an engine makes calls by number or by schedule, not for a time":                   {Stages: plan.Hold(1, time.Second)},
	} {
		if _, err := crowd.Run(t.Context(), l); err == nil || err.Error() != name {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

func TestAnEngineThatCantBeBelievedGivesNoNumbers(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]asker{
		"lies":   reply(`{"id":ID,"ns":[1],"elapsed_ns":3600000000000,"checked":1}`),
		"error":  reply(`{"id":ID,"error":"no such case"}`),
		"gone":   func(context.Context, []byte) ([]byte, error) { return nil, io.EOF },
		"silent": func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		s := new(record.Shard)
		_, err := load.RunEngine(t.Context(), &driver.Engine{Asker: engine, Case: "x"}, 1, 1, time.Millisecond, s)
		if err == nil || s.Ops() != 0 {
			t.Errorf("%s: %d calls, %v", name, s.Ops(), err)
		}
		if name == "gone" && record.KindOf(err) != record.Crashed || name == "silent" && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
