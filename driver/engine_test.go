package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
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
		for i := range q.Calls - 1 {
			if i > 0 {
				text += ","
			}
			text += "100"
		}
		return []byte(text + `]}`), nil
	}
}

func TestAnEngineIsAskedForStretches(t *testing.T) {
	t.Parallel()
	var asked []engine.Question
	e := &driver.Engine{Asker: stretch(&asked), Case: "ask", Input: map[string]int{"live": 3}}
	s := new(record.Shard)
	elapsed, err := load.RunEngine(t.Context(), e, 100, 5000, time.Second, s)
	if err != nil {
		t.Fatal(err)
	}
	// 4,096 calls is the most of one question, and each caller makes the same number.
	if len(asked) != 2 || asked[0].Calls != 4000 || asked[1].Calls != 1000 || asked[0].ID == asked[1].ID {
		t.Fatalf("asked %+v", asked)
	}
	if string(asked[0].Input) != `{"live":3}` || asked[0].Callers != 100 || asked[0].Case != "ask" {
		t.Errorf("asked %+v", asked[0])
	}
	if elapsed != 2*time.Millisecond || s.Latency.Count() != 4998 || s.Failures[record.WrongID] != 2 || s.Checked != 4998 {
		t.Errorf("elapsed %v, %d ok, failed %v, checked %d", elapsed, s.Latency.Count(), s.Failures, s.Checked)
	}
	if s.CPU != time.Microsecond || !s.CPUKnown || s.Allocs != 5000 || s.AllocBytes != 128 || !s.AllocsKnown {
		t.Errorf("CPU %v, %d objects, %d bytes", s.CPU, s.Allocs, s.AllocBytes)
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
