package fleet_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"toll/fleet"
)

// running returns a worker whose load began at a time of its clock.
func running(t *testing.T, at time.Duration) *fleet.Worker {
	t.Helper()
	w := fleet.NewWorker("w1", fleet.Hello{Life: "a"}, 0)
	sum := sha256.Sum256([]byte("plan"))
	digest := hex.EncodeToString(sum[:])
	w.Handle(0, fleet.Message{Run: "run", To: "w1", Plan: &fleet.Assignment{Text: []byte("plan"), Digest: digest, Rejoin: fleet.Span(15 * time.Second), Slices: 100}})
	w.Prepared(0, nil)
	w.Handle(0, fleet.Message{Run: "run", To: "w1", Calibrate: true})
	w.Calibrated(0, fleet.Calibration{}, nil)
	w.Handle(0, fleet.Message{Run: "run", To: "w1", Arm: digest})
	w.Armed(0, nil)
	w.Handle(0, fleet.Message{Run: "run", To: "w1", Go: &fleet.Go{At: at}})
	w.Started(at)
	if w.Phase() != fleet.Running {
		t.Fatalf("the worker is %s", w.Phase())
	}
	return w
}

// beats counts the messages among what a worker wants done.
func beats(all []fleet.Work) (n int) {
	for _, k := range all {
		if k.Send != nil {
			n++
		}
	}
	return n
}

func TestASliceStandsForABeat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored bool          // the stream confirms each slice
		late   time.Duration // a slice comes so long after its time was over
		want   int
	}{
		"slices arrive":             {true, 10 * time.Millisecond, 0},
		"slices may be lost":        {false, 10 * time.Millisecond, 4},
		"calls take seconds to end": {true, 3 * time.Second, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const begin = 10 * time.Second
			w := running(t, begin)
			n := 0
			for i := range 10 {
				ends := time.Duration(i+1) * time.Second
				now := begin + ends + c.late
				w.Handle(now, fleet.Message{Run: "run", To: "w1", Stop: ""}) // a word, so that it goes on
				w.Sliced(now, i, ends, []byte{byte(i)}, 0, .5)
				n += beats(w.Tick(now, 0))
				if c.stored {
					w.Stored(i)
				}
			}
			if n < c.want || c.want == 0 && n > 0 {
				t.Errorf("%d beats beside 10 slices, want %d at least, and none if that is 0", n, c.want)
			}
		})
	}
}

// Half a second apart, as in a fault's test, and between two beats.
func TestAStepOfTheWallClockIsToldAtOnce(t *testing.T) {
	t.Parallel()
	w := running(t, time.Second)
	now := 1100 * time.Millisecond
	if n := beats(w.Tick(now, 0)); n != 0 {
		t.Fatalf("%d beats though nothing changed", n)
	}
	for i, want := range []struct {
		stepped time.Duration
		beats   int
	}{{5 * time.Second, 1}, {5 * time.Second, 0}, {-5 * time.Second, 1}, {-5*time.Second + 10*time.Millisecond, 0}} {
		now += 100 * time.Millisecond
		if n := beats(w.Tick(now, want.stepped)); n != want.beats {
			t.Errorf("look %d, wall clock set by %v: %d beats, want %d", i+1, want.stepped, n, want.beats)
		}
	}
}
