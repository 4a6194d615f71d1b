// Command suture is the supervision library thejerf/suture as an engine behind toll's stdio door: it answers a question for a
// stretch of spawns or asks with one time per call, on its own clock.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/thejerf/suture/v4"
)

func main() {
	e, err := newEngine(os.Stdout)
	if err == nil {
		err = ready(os.Stdout, "stdio:", "github.com/thejerf/suture/v4")
	}
	if err == nil {
		err = obey(os.Stdin, os.Stdout, e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suture:", err)
		os.Exit(1)
	}
}

// A service says that it runs, answers asks, and ends with its context.
type service struct {
	up  chan struct{}
	ask chan question
	n   *atomic.Int64
}

type question struct {
	payload any
	reply   chan any
}

// Serve runs until ctx ends.
func (s *service) Serve(ctx context.Context) error {
	s.n.Add(1)
	s.up <- struct{}{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case q := <-s.ask:
			q.reply <- q.payload
		}
	}
}

// An engine answers questions; each line written to it is one.
type engine struct {
	out     io.Writer
	super   *suture.Supervisor
	live    []suture.ServiceToken
	started atomic.Int64
	echo    *service
}

func newEngine(out io.Writer) (*engine, error) {
	e := &engine{out: out, super: suture.New("children", suture.Spec{EventHook: func(suture.Event) {}})}
	e.super.ServeBackground(context.Background())
	e.echo, _ = e.add(true)
	return e, nil
}

// add starts a service and waits until it runs.
func (e *engine) add(asks bool) (*service, suture.ServiceToken) {
	s := &service{up: make(chan struct{}), n: &e.started}
	if asks {
		s.ask = make(chan question)
	}
	token := e.super.Add(s)
	<-s.up
	return s, token
}

// gone bounds the wait for a service that was removed.
const gone = 10 * time.Second

type asked struct {
	ID    int64  `json:"id"`
	Case  string `json:"case"`
	Input struct {
		Live int `json:"live"`
	} `json:"input"`
	Calls   int `json:"calls"`
	Callers int `json:"callers"`
}

// Write answers one question.
func (e *engine) Write(line []byte) (int, error) {
	if len(strings.TrimSpace(string(line))) == 0 {
		return len(line), nil
	}
	var q asked
	answer := map[string]any{}
	err := json.Unmarshal(line, &q)
	if err == nil {
		answer, err = e.run(q)
	}
	if err != nil {
		answer = map[string]any{"error": err.Error()}
	}
	answer["id"] = q.ID
	return len(line), json.NewEncoder(e.out).Encode(answer)
}

// call returns what one call of the case is.
func (e *engine) call(q asked) (func(caller int) error, int, error) {
	name, _, _ := strings.Cut(q.Case, "@")
	if name == "ask" {
		mine := make([]question, q.Callers)
		for i := range mine {
			mine[i] = question{&mine[i], make(chan any, 1)}
		}
		return func(caller int) error {
			m := &mine[caller]
			e.echo.ask <- *m
			if v := <-m.reply; v != m.payload {
				return errors.New("another's answer")
			}
			return nil
		}, 0, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, "spawn/"))
	if err != nil || n < 1 || n > 1024 {
		return nil, 0, fmt.Errorf("case %q is none of this engine; expected ask or spawn/N", q.Case)
	}
	tokens := make([][]suture.ServiceToken, q.Callers)
	return func(caller int) error {
		tokens[caller] = tokens[caller][:0]
		for range n {
			_, t := e.add(false)
			tokens[caller] = append(tokens[caller], t)
		}
		for _, t := range tokens[caller] {
			if err := e.super.RemoveAndWait(t, gone); err != nil {
				return err
			}
		}
		return nil
	}, n, nil
}

func (e *engine) keep(n int) error {
	for len(e.live) < n {
		_, t := e.add(false)
		e.live = append(e.live, t)
	}
	for len(e.live) > n {
		if err := e.super.RemoveAndWait(e.live[len(e.live)-1], gone); err != nil {
			return err
		}
		e.live = e.live[:len(e.live)-1]
	}
	return nil
}

// run makes a stretch.
func (e *engine) run(q asked) (map[string]any, error) {
	if q.Calls < 1 || q.Calls > 1<<16 || q.Callers < 1 || q.Callers > 1024 || q.Input.Live < 0 || q.Input.Live > 1<<20 {
		return nil, errors.New("calls, callers or live is out of range")
	}
	call, n, err := e.call(q)
	if err != nil {
		return nil, err
	}
	if err := e.keep(q.Input.Live); err != nil {
		return nil, err
	}
	callers := min(q.Callers, q.Calls)
	times := make([][]int64, callers)
	errs := make([]error, callers)
	for i := range times {
		times[i] = make([]int64, 0, q.Calls/callers+1)
	}
	before := e.started.Load()
	cost, begin := meter(), time.Now()
	together(callers, func(c int) {
		for i := c; i < q.Calls && errs[c] == nil; i += callers {
			start := time.Now()
			if errs[c] = call(c); errs[c] == nil {
				times[c] = append(times[c], int64(time.Since(start)))
			}
		}
	})
	elapsed := time.Since(begin)
	answer := cost()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if got := e.started.Load() - before; got != int64(q.Calls*n) {
		return nil, fmt.Errorf("%d services ran, %d were added", got, q.Calls*n)
	}
	var ns []int64
	for _, t := range times {
		ns = append(ns, t...)
	}
	answer["ns"], answer["elapsed_ns"], answer["checked"] = ns, int64(elapsed), len(ns)
	return answer, nil
}

// together runs f for each of n callers and waits: inline for one.
func together(n int, f func(int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// meter begins to count what the process spends and returns what ends it.
func meter() func() map[string]any {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := processCPU()
	return func() map[string]any {
		spent := processCPU() - cpu
		runtime.ReadMemStats(&after)
		return map[string]any{
			"cpu_ns": spent, "allocs": int64(after.Mallocs - before.Mallocs), "alloc_bytes": int64(after.TotalAlloc - before.TotalAlloc),
		}
	}
}

func processCPU() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
