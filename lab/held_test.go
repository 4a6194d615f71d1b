package lab_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"toll/lab"
	"toll/lab/load"
	"toll/lab/record"
	"toll/lab/result"
)

// A keeper holds 1000 bytes for each call until it was idle for long enough.
type keeper struct {
	fakeProcess
	calls *int
	last  *time.Time
	idle  time.Duration
	mute  bool
}

func (k keeper) Collect(context.Context) (lab.Counters, error) {
	if k.mute {
		return lab.Counters{}, errors.New("it is mute")
	}
	if time.Since(*k.last) >= k.idle {
		*k.calls = 0
	}
	held := int64(1000 * *k.calls)
	return lab.Counters{Heap: 5000 + held/2, Stack: 700 + held/2}, nil
}

// keepers opens one keeper, twice.
type keepers struct {
	house house
	takes time.Duration
	mute  bool
}

func (h *keepers) Open(_ context.Context, s lab.Setting) (lab.Set, error) {
	var set lab.Set
	for _, role := range []string{result.Baseline, result.Control} {
		k := keeper{fakeProcess{&h.house, nil, lab.Limited{}}, new(int), new(time.Time), 10 * time.Second, h.mute}
		target := load.TargetFunc(func(context.Context) (load.Caller, error) {
			return keeping(func() {
				time.Sleep(h.takes)
				*k.calls, *k.last = *k.calls+1, time.Now()
			}), nil
		})
		set.Entries = append(set.Entries, lab.Entry{
			Contender: result.Contender{Name: "rest", Language: "go"}, Role: role, Connections: "per-caller",
			Target: target, Process: k, Idle: k.idle,
		})
	}
	return set, nil
}

type keeping func()

// Call leaves something behind.
func (f keeping) Call(context.Context, record.Mark) error {
	f()
	return nil
}

func TestWhatAbandonedSessionsCost(t *testing.T) {
	for _, x := range []struct {
		name  string
		takes time.Duration
		mute  bool
		want  *result.Retained
		gap   string
	}{
		{"held, then forgotten", time.Millisecond, false, &result.Retained{Sessions: 120, IdleS: 10, Bytes: 1000}, ""},
		{"too slow to be counted", time.Second, false, nil, "the calls took longer than a session may be idle, so that some may have been forgotten before they were counted"},
		{"mute", time.Millisecond, true, nil, "it is mute"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := settings()
				s.Rounds, s.Blocks, s.Calls, s.Warmup = 2, 12, 10, 20
				o := lab.Options{Settings: s, Claimed: s, Seed: 42, Hop: result.Hop{Kind: "loopback"}}
				d, err := lab.Run(t.Context(), thePlan(), &keepers{house: house{start: time.Now()}, takes: x.takes, mute: x.mute}, o)
				if err != nil {
					t.Fatal(err)
				}
				got := row(t, d, "rest", result.Baseline)
				switch {
				case x.want == nil && got.Retained != nil, x.want != nil && got.Retained == nil:
					t.Errorf("%+v, want %+v", got.Retained, x.want)
				case x.want != nil && *got.Retained != *x.want:
					t.Errorf("%+v, want %+v", got.Retained, x.want)
				}
				found := x.gap == ""
				for _, g := range d.Gaps {
					found = found || g.Reason == x.gap && g.Row == got.ID()+": retained"
				}
				if !found {
					t.Errorf("gaps %v", d.Gaps)
				}
			})
		})
	}
}
