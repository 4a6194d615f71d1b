package system

import (
	"context"
	"fmt"
	"sync/atomic"

	"toll/wire/engine"
)

// spawnFloor is what no agent can do without, as an engine: a goroutine and a channel, without a name, a mailbox, a supervisor
// or a deadline.
func spawnFloor() engine.Bench {
	f := &bareGoroutines{stop: make(chan struct{})}
	return func(_ context.Context, q engine.Question) (engine.Work, error) {
		n, in, err := parseSpawn(q)
		if err != nil {
			return engine.Work{}, err
		}
		f.keep(in.Live)
		if n == 0 {
			return f.asks(q), nil
		}
		return f.spawns(q, n), nil
	}
}

type bareGoroutines struct {
	stop    chan struct{} // receives from as many as live
	live    int
	started atomic.Int64
}

func (f *bareGoroutines) keep(n int) {
	for ; f.live < n; f.live++ {
		up := make(chan struct{})
		go func() {
			close(up)
			<-f.stop
		}()
		<-up
	}
	for ; f.live > n; f.live-- {
		f.stop <- struct{}{}
	}
}

type floorAsk struct {
	payload any
	reply   chan any
}

func (f *bareGoroutines) asks(q engine.Question) engine.Work {
	ask := make(chan floorAsk)
	go func() {
		for a := range ask {
			a.reply <- a.payload
		}
	}()
	mine := make([]floorAsk, q.Callers)
	for i := range mine {
		mine[i] = floorAsk{&mine[i], make(chan any, 1)}
	}
	return engine.Work{
		Call: func(_ context.Context, caller, _ int, _ *engine.Parts) error {
			a := &mine[caller]
			ask <- *a
			if v := <-a.reply; v != a.payload {
				return &engine.Failure{Kind: "wrong_content", Err: fmt.Errorf("got %v", v)}
			}
			return nil
		},
		Close: func() error { close(ask); return nil },
	}
}

// spawns prepares calls that start n goroutines, each of which says that it runs, is told to stop, and says that it has.
func (f *bareGoroutines) spawns(q engine.Question, n int) engine.Work {
	before := f.started.Load()
	children := make([][]chan struct{}, q.Callers)
	return engine.Work{
		Call: func(_ context.Context, caller, _ int, _ *engine.Parts) error {
			children[caller] = children[caller][:0]
			for range n {
				c := make(chan struct{})
				go func() {
					f.started.Add(1)
					c <- struct{}{} // ready
					<-c             // stop
					c <- struct{}{} // gone
				}()
				<-c
				children[caller] = append(children[caller], c)
			}
			for _, c := range children[caller] {
				c <- struct{}{}
				<-c
			}
			clear(children[caller])
			return nil
		},
		Check: func() (int, error) {
			if got := f.started.Load() - before; got != int64(q.Calls*n) {
				return 0, fmt.Errorf("%d goroutines ran, %d were started", got, q.Calls*n)
			}
			return q.Calls, nil
		},
	}
}
