package agent_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"toll/system/agent"
	"toll/wire/envelope"
)

// floorAgent is a goroutine and a channel: what an ask can't do without.
type question struct {
	v     any
	reply chan any
}

func floorAgent() (ask chan question, stop func()) {
	ask = make(chan question)
	go func() {
		for q := range ask {
			q.reply <- q.v
		}
	}()
	return ask, func() { close(ask) }
}

func echo() agent.Handler {
	return agent.HandlerFunc(func(_ *agent.Context, m *envelope.Message) (any, error) { return m.Payload, nil })
}

func BenchmarkAsk(b *testing.B) {
	for _, callers := range []int{1, 50} {
		b.Run("floor/"+strconv.Itoa(callers), func(b *testing.B) {
			ask, stop := floorAgent()
			defer stop()
			each(b, callers, func() func() {
				reply, v := make(chan any, 1), any(1)
				return func() { ask <- question{v, reply}; <-reply }
			})
		})
		for name, inline := range map[string]bool{"toll": false, "inline": true} {
			b.Run(name+"/"+strconv.Itoa(callers), func(b *testing.B) {
				rt := agent.New(agent.Config{})
				r, err := rt.Spawn(context.Background(), "echo", echo(), agent.Spec{Inline: inline})
				if err != nil {
					b.Fatal(err)
				}
				each(b, callers, func() func() {
					ctx, cancel := context.WithCancel(context.Background())
					b.Cleanup(cancel)
					m := &envelope.Message{Type: "echo", Payload: 1}
					return func() {
						if _, err := r.Ask(ctx, m); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

// each has callers share b.N calls.
func each(b *testing.B, callers int, caller func() func()) {
	var n atomic.Int64
	n.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		call := caller()
		wg.Go(func() {
			for n.Add(-1) >= 0 {
				call()
			}
		})
	}
	wg.Wait()
}

type started struct{ n *atomic.Int64 }

func (s started) Start(*agent.Context) error { s.n.Add(1); return nil }

func (s started) Handle(_ *agent.Context, m *envelope.Message) (any, error) { return m.Payload, nil }

func BenchmarkSpawn(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ch := make(chan struct{})
			go func() {
				ch <- struct{}{} // ready
				<-ch             // stop
				ch <- struct{}{} // gone
			}()
			<-ch
			ch <- struct{}{}
			<-ch
		}
	})
	for _, live := range []int{0, 100_000} {
		for name, inline := range map[string]bool{"toll": false, "inline": true} {
			b.Run(name+"/"+strconv.Itoa(live), func(b *testing.B) {
				var n atomic.Int64
				rt := agent.New(agent.Config{})
				d, err := rt.SuperviseDynamic(agent.DynamicSpec{Name: "d", Classes: map[string]agent.Class{
					"c": {New: func(map[string]any) (agent.Handler, error) { return started{&n}, nil }, Spec: agent.Spec{Inline: inline}},
				}})
				if err != nil {
					b.Fatal(err)
				}
				ctx := context.Background()
				for i := range live {
					if _, err := d.Spawn(ctx, &agent.SpawnRequest{Class: "c", Name: "live" + strconv.Itoa(i)}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					name := "c" + strconv.Itoa(i)
					if _, err := d.Spawn(ctx, &agent.SpawnRequest{Class: "c", Name: name}); err != nil {
						b.Fatal(err)
					}
					if err := d.Despawn(ctx, name); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
