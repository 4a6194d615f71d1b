package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The worker's times.
const (
	beatEvery    = 1500 * time.Millisecond // when nobody asks
	publishEvery = 2 * time.Second
	mostPublish  = 64               // slices that are published again at once
	stillFor     = 2 * time.Second  // without a tick: the process itself stood still
	lingerFor    = 10 * time.Minute // with what was measured and nobody to hand it to
)

// A Work is something that a worker wants done: one of the fields is given.
type Work struct {
	Send      *Message
	Prepare   *Assignment // read the plan; then Prepared
	Calibrate bool        // then Calibrated
	Arm       bool        // connect to the target; then Armed
	Start     *Go         // run the load from that time on; then Sliced for each slice, and Finished
	Stop      string      // end the load early; Finished follows
	Publish   *Copy       // put a slice into the stream; then Stored
	Leave     *Farewell
}

// A Copy is a slice to be published, for the so manieth time.
type Copy struct{ N, Time int }

// A Farewell ends a worker.
type Farewell struct {
	Why string
	OK  bool // everything that was measured is with the coordinator
}

// A Worker is the rules of one generator. Its methods must not be called at the same time; now is always its monotonic clock.
type Worker struct {
	id    string
	hello Hello

	run    string
	phase  string
	plan   *Assignment
	heard  time.Duration // of the coordinator
	beaten time.Duration
	ticked time.Duration
	goAt   time.Duration
	failed string
	gone   bool

	calibration *Calibration
	elapsed     time.Duration
	lag         time.Duration
	cpu         float64
	stepped     time.Duration
	told        time.Duration // stepped, in the last beat
	chain       chain
	made        int
	unstored    map[int]*copied
	totals      *Totals
}

// copied is how often and when a slice was published.
type copied struct {
	times int
	last  time.Duration
}

// NewWorker makes one.
func NewWorker(id string, h Hello, now time.Duration) *Worker {
	return &Worker{id: id, hello: h, phase: Joining, heard: now, beaten: now - beatEvery, unstored: make(map[int]*copied)}
}

// Phase is where it is.
func (w *Worker) Phase() string { return w.phase }

// Assignment is the worker's part of the plan, nil before there is one.
func (w *Worker) Assignment() *Assignment { return w.plan }

// Run is the run that the worker takes part in, empty before it does.
func (w *Worker) Run() string { return w.run }

// Fail says that the worker can't go on.
func (w *Worker) Fail(now time.Duration, why string) []Work { return w.fail(now, why) }

func (w *Worker) message(now time.Duration) Message {
	return Message{From: w.id, Run: w.run, Beat: w.beat(now)}
}

func (w *Worker) beat(now time.Duration) *Beat {
	w.told = w.stepped
	if w.phase == Running || w.phase == Waiting {
		w.elapsed = max(now-w.goAt, 0)
	}
	b := &Beat{
		Phase: w.phase, Life: w.hello.Life, Elapsed: w.elapsed, Slices: w.made, Unstored: len(w.unstored), Lag: w.lag, CPU: w.cpu,
		Stepped: w.stepped, Failed: w.failed, Totals: w.totals,
	}
	if w.plan != nil {
		b.Plan = w.plan.Digest
	}
	if w.phase == Calibrated {
		b.Calibration = w.calibration
	}
	return b
}

// tell sends a beat now.
func (w *Worker) tell(now time.Duration) []Work {
	w.beaten = now
	m := w.message(now)
	if w.phase == Joining {
		m.Hello = &w.hello
	}
	return []Work{{Send: &m}}
}

// Next is when Tick wants to be called.
func (w *Worker) Next() time.Duration { return w.beaten + beatEvery }

// Tick is to be called when its time has come, and may be at any time. stepped is how far the wall clock was set since the
// worker started.
func (w *Worker) Tick(now, stepped time.Duration) []Work {
	if w.gone {
		return nil
	}
	w.stepped = stepped
	if gap := now - w.ticked; w.ticked != 0 && gap >= stillFor { // this process did not run, so it could not hear anything
		w.heard += gap
	}
	w.ticked = now
	var out []Work
	if set := stepped - w.told; now >= w.Next() || max(set, -set) >= leastStep {
		out = w.tell(now)
	}
	if w.phase == Running || w.phase == Waiting {
		if quiet := now - w.heard; quiet >= patience(time.Duration(w.plan.Rejoin)) {
			out = append(out, w.stop(now, fmt.Sprintf("no word from the coordinator for %s", seconds(quiet)))...)
		}
	}
	if w.phase == Done && now-w.heard >= lingerFor {
		return append(out, w.leave("nobody took what was measured", false)...)
	}
	return append(out, w.publish(now)...)
}

// patience is for how long a worker goes on without a word of its coordinator, whose last one may have been due a while before it
// went away.
func patience(rejoin time.Duration) time.Duration { return rejoin + calm(rejoin) - tickEvery }

// publish puts those slices into the stream again that it has not confirmed for a while.
func (w *Worker) publish(now time.Duration) []Work {
	var out []Work
	for _, n := range slices.Sorted(maps.Keys(w.unstored)) {
		c := w.unstored[n]
		if now-c.last < publishEvery {
			continue
		}
		if len(out) >= mostPublish {
			break
		}
		c.times++
		c.last = now
		out = append(out, Work{Publish: &Copy{n, c.times}})
	}
	return out
}

func (w *Worker) leave(why string, ok bool) []Work {
	w.gone, w.phase = true, Left
	return []Work{{Leave: &Farewell{why, ok}}}
}

func (w *Worker) stop(now time.Duration, why string) []Work {
	if w.phase == Waiting || w.phase == Running {
		return []Work{{Stop: why}}
	}
	return w.leave(why, false)
}

// Handle takes a message.
func (w *Worker) Handle(now time.Duration, m Message) []Work {
	if w.gone || m.From != "" || m.To != "" && m.To != w.id || m.Run != "" && w.run != "" && m.Run != w.run {
		return nil
	}
	if m.To == "" && w.run == "" {
		return nil // what is told to all is not for us before we are one of them
	}
	w.heard = now
	switch {
	case m.Refuse != "":
		return w.leave(m.Refuse, false)
	case m.Bye != "":
		return w.leave(m.Bye, w.phase == Done)
	case m.Clock != nil:
		w.beaten = now
		out := w.message(now)
		out.Clock = &Clock{T1: m.Clock.T1, T2: now, T3: now}
		return []Work{{Send: &out}}
	case m.Plan != nil && w.phase == Joining && w.plan == nil:
		if sum := sha256.Sum256(m.Plan.Text); hex.EncodeToString(sum[:]) != m.Plan.Digest {
			return w.fail(now, "the plan that arrived is not of the digest that came with it")
		}
		w.run, w.plan = m.Run, m.Plan
		return []Work{{Prepare: m.Plan}}
	case m.Calibrate && w.phase == Planned:
		w.phase = Calibrating
		return append(w.tell(now), Work{Calibrate: true})
	case m.Arm != "" && w.phase == Calibrated:
		if m.Arm != w.plan.Digest {
			return w.fail(now, fmt.Sprintf("the plan to start is %.12s; this worker has %.12s", m.Arm, w.plan.Digest))
		}
		w.phase = Arming
		return append(w.tell(now), Work{Arm: true})
	case m.Go != nil && w.phase == Armed:
		w.phase, w.goAt = Waiting, m.Go.At
		return append(w.tell(now), Work{Start: m.Go})
	case m.Stop != "":
		return w.stopOnce(now, m.Stop)
	case m.Resend != nil && w.phase == Done:
		return w.resend(now, m.Resend)
	}
	return nil
}

func (w *Worker) stopOnce(now time.Duration, why string) []Work {
	if w.phase == Done {
		return nil
	}
	return w.stop(now, why)
}

// resend publishes slices that did not arrive though the stream confirmed them.
func (w *Worker) resend(now time.Duration, numbers []int) []Work {
	var out []Work
	for _, n := range numbers {
		if n < 0 || n >= w.made {
			continue
		}
		c := w.unstored[n]
		if c == nil {
			c = &copied{times: 1}
			w.unstored[n] = c
		}
		c.times, c.last = c.times+1, now
		out = append(out, Work{Publish: &Copy{n, c.times}})
	}
	return out
}

func (w *Worker) fail(now time.Duration, why string) []Work {
	w.failed = why
	return w.tell(now)
}

// next goes on to a phase, or says why not.
func (w *Worker) next(now time.Duration, phase string, err error) []Work {
	if err != nil {
		return w.fail(now, err.Error())
	}
	w.phase = phase
	return w.tell(now)
}

// Prepared is the outcome of Prepare.
func (w *Worker) Prepared(now time.Duration, err error) []Work { return w.next(now, Planned, err) }

// Calibrated is the outcome of Calibrate.
func (w *Worker) Calibrated(now time.Duration, c Calibration, err error) []Work {
	w.calibration = &c
	return w.next(now, Calibrated, err)
}

// Armed is the outcome of Arm.
func (w *Worker) Armed(now time.Duration, err error) []Work { return w.next(now, Armed, err) }

// Started says that the load has begun.
func (w *Worker) Started(now time.Duration) []Work { return w.next(now, Running, nil) }

// Sliced says that a slice, which ends so long after the start, was made and is in the worker's own file; late is the p99 of its
// lateness, cpu what of its cores the worker used.
//
// A slice on its way says that its worker lived when its time was over, so there is no beat beside it, unless one before it may not
// have arrived.
func (w *Worker) Sliced(now time.Duration, n int, ends time.Duration, body []byte, late time.Duration, cpu float64) []Work {
	w.chain.add(body)
	w.made = n + 1
	w.lag, w.cpu = late, cpu
	if len(w.unstored) == 0 {
		w.beaten = max(w.beaten, w.goAt+ends)
	}
	w.unstored[n] = &copied{times: 1, last: now}
	return []Work{{Publish: &Copy{n, 1}}}
}

// Stored says that the stream has confirmed a slice.
func (w *Worker) Stored(n int) { delete(w.unstored, n) }

// Finished says that the load is over. Slices and Digest of the totals are filled in here.
func (w *Worker) Finished(now time.Duration, t Totals, err error) []Work {
	t.Slices, t.Digest, t.Stepped = w.made, w.chain.text(), w.stepped
	w.totals, w.phase = &t, Done
	if err != nil {
		w.failed = err.Error()
	}
	return w.tell(now)
}
