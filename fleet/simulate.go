package fleet

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// A Simulation is a run whose workers, network and time are made up. Coordinator and workers are the real ones, and every message
// between them is encoded and decoded.
type Simulation struct {
	Workers  int
	Duration time.Duration // of the load
	Calls    int           // of a worker in a second
	Loss     float64       // of a control message, of a slice on its way to the stream, of the stream's answer
	Again    float64       // of a slice or message that arrives: it comes twice
	Skew     time.Duration // the workers' clocks differ by up to so much, and run up to 50 millionths fast or slow
	Delay    time.Duration // one way; each message's own lies between it and twice as much. 1 ms when 0
	OnLoss   string
	Rejoin   time.Duration
	Seed     uint64

	Faults []SimulatedFault
}

// A SimulatedFault happens at a time of the load.
type SimulatedFault struct {
	At     time.Duration
	Kind   string        // kill | partition | step | restart | delete | lose | forge | stop
	Worker int           // of kill, partition, step, lose, forge
	For    time.Duration // of a partition or a restart: how long; of a step: by how much
	Slice  int           // of lose and forge
}

// What a simulation came to.
type Simulated struct {
	Report *Report
	Silent string // where the merged figures are not those of what was made, though the run says they are; empty when nowhere

	Took          time.Duration // virtual, from the first hello to the end
	ToCoordinator Traffic
	ToWorkers     Traffic // a message to all counts once for each
	Slices        Traffic // that reached the coordinator

	CPU         time.Duration // of the coordinator
	Memory      uint64        // that it holds in the end, bytes
	MostWaiting int           // bytes of slices that waited to be merged, at most
	WorkerCPU   time.Duration // of a worker's rules, on average
}

// Traffic is messages and their bytes.
type Traffic struct{ Messages, Bytes int64 }

func (t *Traffic) add(bytes int) { t.Messages++; t.Bytes += int64(bytes) }

// mostVirtual bounds a simulation's time behind the load's.
const mostVirtual = 30 * time.Minute

// A happening is something at a virtual time.
type happening struct {
	at  time.Duration
	seq int
	do  func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].seq, h[j].seq)) < 0
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *happenings) Push(x any) { *h = append(*h, x.(happening)) }

// Pop is for package heap.
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// A world is a simulation while it runs.
type world struct {
	Simulation
	cfg   Config
	leg   Leg
	rnd   *rand.Rand
	now   time.Duration
	seq   int
	queue happenings

	coordinator *Coordinator
	epoch       time.Duration // when the coordinator's clock began
	down        bool
	saved       *State
	workers     []*simulated
	byID        map[string]*simulated
	stream      [][]byte        // what it holds, in order
	keys        map[string]bool // that it has seen
	read        int             // so many went to the coordinator
	faulty      bool            // the faults' times have been set
	forged      bool
	out         Simulated
}

// A simulated worker has a clock of its own and makes up what it measures.
type simulated struct {
	world *world
	*Worker
	number  int
	ahead   time.Duration // of its clock
	fast    float64       // how much faster it runs
	stepped time.Duration
	cutOff  bool
	dead    bool
	stop    string
	journal [][]byte
	lost    map[int]bool // slices that its file has no more
}

// Simulate runs one. An error means that it can't be run, or did not end.
func Simulate(s Simulation) (*Simulated, error) {
	s.Delay = cmp.Or(s.Delay, time.Millisecond)
	s.Calls = cmp.Or(s.Calls, 100)
	w := &world{Simulation: s, rnd: rand.New(rand.NewPCG(s.Seed, 11)), byID: make(map[string]*simulated), keys: make(map[string]bool)}
	w.cfg = Config{
		Run: "simulated", Plan: []byte("a load that is made up"), Workers: s.Workers, OnLoss: s.OnLoss, Rejoin: s.Rejoin, Build: Build{Version: "simulated"},
		Settings: plan.Settings{Model: plan.Open, Rate: float64(s.Calls * s.Workers), Duration: plan.Duration(s.Duration), Concurrency: []int{1}, Rounds: 1, Blocks: 1},
	}.WithDefaults()
	if err := w.cfg.Check(); err != nil {
		return nil, err
	}
	if s.Loss < 0 || s.Loss > .5 || s.Again < 0 || s.Again > .5 {
		return nil, fmt.Errorf("loss %v, again %v; expected 0 to 0.5 of each", s.Loss, s.Again)
	}
	w.leg = NewLeg(w.cfg.Settings)
	w.coordinator = NewCoordinator(w.cfg)
	for i := range s.Workers {
		x := &simulated{world: w, number: i, ahead: time.Duration(w.rnd.Int64N(int64(2*s.Skew)+1)) - s.Skew, fast: (w.rnd.Float64()*2 - 1) * 50e-6, lost: make(map[int]bool)}
		hello := Hello{Build: w.cfg.Build, Host: Machine{Cores: 2, GOMAXPROCS: 2}, Life: fmt.Sprint("life-", i)}
		x.Worker = NewWorker(fmt.Sprintf("w%04d", i+1), hello, x.clock())
		w.workers = append(w.workers, x)
		w.byID[x.id] = x
		w.after(time.Duration(w.rnd.Int64N(int64(time.Second))), x.tick)
	}
	w.after(0, w.tick)
	err := w.run()
	w.weigh()
	return &w.out, err
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, happening{w.now + max(d, 0), w.seq, do})
}

// run lets things happen until the run is over and everybody knows.
func (w *world) run() error {
	most := w.Duration + mostVirtual
	for len(w.queue) > 0 {
		h := heap.Pop(&w.queue).(happening)
		if w.now = h.at; w.now > most {
			return fmt.Errorf("after %v nothing ended: %s", w.now, w.coordinator.Verdict())
		}
		h.do()
		if !w.faulty && w.coordinator.Started() {
			w.faulty = true
			for _, f := range w.Faults {
				w.after(w.coordinator.goAt-w.clock()+f.At, func() { w.fault(f) })
			}
		}
		if !w.down && w.coordinator.Over() {
			break
		}
	}
	w.out.Took = w.now
	w.out.Report = w.coordinator.Report()
	w.out.Silent = w.compare()
	return nil
}

// clock is the coordinator's.
func (w *world) clock() time.Duration { return w.now - w.epoch }

// clock is the worker's own.
func (x *simulated) clock() time.Duration {
	return x.world.now + x.ahead + time.Duration(float64(x.world.now)*x.fast)
}

// until is how long it takes until the worker's clock shows a time.
func (x *simulated) until(at time.Duration) time.Duration {
	return time.Duration(float64(at-x.clock()) / (1 + x.fast))
}

// lossy carries something one way, or not, or twice.
func (w *world) lossy(arrives func()) {
	if w.rnd.Float64() < w.Loss {
		return
	}
	delay := func() time.Duration { return w.Delay + time.Duration(w.rnd.Int64N(int64(w.Delay))) }
	w.after(delay(), arrives)
	if w.rnd.Float64() < w.Again {
		w.after(delay(), arrives)
	}
}

// spend charges f's CPU time to a sum.
func spend(sum *time.Duration, f func()) {
	before := record.ReadCPU()
	f()
	*sum += record.ReadCPU() - before
}

func (w *world) tick() {
	if w.down {
		return
	}
	spend(&w.out.CPU, func() { w.act(w.coordinator.Tick(w.clock())) })
	w.waiting()
	w.after(max(w.coordinator.Next()-w.clock(), time.Millisecond), w.tick)
}

// waiting notes how much waits to be merged.
func (w *world) waiting() {
	sum := 0
	for _, m := range w.coordinator.order {
		for _, body := range m.waiting {
			sum += len(body)
		}
	}
	w.out.MostWaiting = max(w.out.MostWaiting, sum)
}

// act does what the coordinator wants done.
func (w *world) act(actions []Action) {
	w.coordinator.StartsAt(w.clock(), wallOf(w.now))
	for _, a := range actions {
		if a.Save != nil {
			s := *a.Save
			if w.coordinator.Started() {
				s.Started = w.coordinator.startsAt
			}
			w.saved = &s
		}
		if a.Send == nil {
			continue
		}
		data := a.Send.Encode()
		for _, x := range w.workers {
			if a.Send.To != "" && a.Send.To != x.id {
				continue
			}
			w.out.ToWorkers.add(len(data))
			w.lossy(func() { x.receive(data) })
		}
	}
}

// wallOf is a virtual time on a wall clock.
func wallOf(d time.Duration) time.Time { return time.Unix(1_700_000_000, 0).Add(d) }

func (x *simulated) receive(data []byte) {
	if x.dead || x.cutOff {
		return
	}
	m, err := Decode(data)
	if err != nil {
		panic("the coordinator's own message: " + err.Error())
	}
	x.does(func() []Work { return x.Handle(x.clock(), m) })
}

func (x *simulated) tick() {
	if x.dead || x.gone {
		return
	}
	x.does(func() []Work { return x.Tick(x.clock(), x.stepped) })
	x.world.after(200*time.Millisecond, x.tick)
}

// does has the worker's rules decide, and does what they want done.
func (x *simulated) does(decide func() []Work) {
	if x.dead {
		return
	}
	w := x.world
	var all []Work
	spend(&w.out.WorkerCPU, func() { all = decide() })
	for _, k := range all {
		switch {
		case k.Send != nil:
			if !x.cutOff {
				data := k.Send.Encode()
				w.lossy(func() { w.receive(data) })
			}
		case k.Prepare != nil:
			x.later(5*time.Millisecond, func(now time.Duration) []Work { return x.Prepared(now, nil) })
		case k.Calibrate:
			x.later(2*time.Second, func(now time.Duration) []Work {
				return x.Calibrated(now, Calibration{Rate: 100 * float64(w.Calls), NoNull: "simulated"}, nil)
			})
		case k.Arm:
			x.later(10*time.Millisecond, func(now time.Duration) []Work { return x.Armed(now, nil) })
		case k.Start != nil:
			w.after(x.until(k.Start.At), func() { x.begin(k.Start.At) })
		case k.Stop != "":
			if x.stop = k.Stop; x.Phase() == Waiting {
				x.does(func() []Work { return x.Finished(x.clock(), Totals{Stopped: x.stop}, nil) })
			}
		case k.Publish != nil:
			x.publish(*k.Publish)
		}
	}
}

func (x *simulated) later(d time.Duration, f func(now time.Duration) []Work) {
	x.world.after(d, func() { x.does(func() []Work { return f(x.clock()) }) })
}

// begin starts the load.
func (x *simulated) begin(at time.Duration) {
	if x.dead || x.stop != "" {
		return
	}
	x.does(func() []Work { return x.Started(x.clock()) })
	x.slice(0, at, &Totals{StartLate: x.clock() - at})
}

// made is what a worker measured in a slice: the same whenever it is asked.
func (w *world) made(number, n int) *record.Shard {
	r := rand.New(rand.NewPCG(w.Seed+uint64(number)<<20, uint64(n)))
	s := new(record.Shard)
	t := w.leg.Times[n]
	for range int(float64(w.Calls) * (t.To - t.From).Seconds()) {
		var err error
		if r.IntN(1000) == 0 {
			err = errTimeout
		}
		s.Sent(time.Duration(math.Exp(r.NormFloat64()*.5)*1e6), time.Duration(r.IntN(100_000)), err)
	}
	return s
}

var errTimeout = record.Fail(record.Timeout, errors.New("made up"))

// slice makes slice n when its time is over, and ends the load behind the last one.
func (x *simulated) slice(n int, at time.Duration, t *Totals) {
	w := x.world
	if n == len(w.leg.Times) || x.stop != "" {
		t.Stopped, t.Elapsed, t.CPU = x.stop, x.clock()-at, time.Duration(n)*time.Second
		x.does(func() []Work { return x.Finished(x.clock(), *t, nil) })
		return
	}
	w.after(x.until(at+w.leg.Times[n].To)+time.Duration(w.rnd.Int64N(int64(20*time.Millisecond))), func() {
		if x.dead {
			return
		}
		if x.stop != "" {
			x.slice(n, at, t)
			return
		}
		s := w.made(x.number, n)
		t.OK += s.Latency.Count()
		t.SumNS += s.Latency.Sum()
		for kind, c := range s.Failures {
			if t.Failed == nil {
				t.Failed = make(map[string]int64)
			}
			t.Failed[kind] += c
		}
		t.Arrivals += s.Ops()
		body := Slice{w.cfg.Run, x.id, n, w.leg.Times[n].Stage, w.leg.Times[n].From, w.leg.Times[n].To, time.Second, s}.Encode()
		x.journal = append(x.journal, body)
		x.does(func() []Work { return x.Sliced(x.clock(), n, w.leg.Times[n].To, body, 0, .5) })
		x.slice(n+1, at, t)
	})
}

// publish puts a slice into the stream, if it gets there.
func (x *simulated) publish(c Copy) {
	if x.cutOff || x.lost[c.N] {
		return
	}
	w := x.world
	body, key := x.journal[c.N], fmt.Sprint(x.id, "/", c.N, "/", c.Time)
	w.lossy(func() {
		if !w.keys[key] {
			w.keys[key] = true
			w.stream = append(w.stream, body)
			w.deliver()
		}
		w.lossy(func() {
			if !x.dead && !x.cutOff {
				x.Stored(c.N)
			}
		})
	})
}

// deliver brings the coordinator what the stream holds. The stream keeps what it was not told to forget, so that nothing is lost
// on this way, but things may come twice.
func (w *world) deliver() {
	if w.down {
		return
	}
	for ; w.read < len(w.stream); w.read++ {
		body, epoch := w.stream[w.read], w.epoch
		arrives := func() {
			if w.down || epoch != w.epoch {
				return
			}
			w.out.Slices.add(len(body))
			spend(&w.out.CPU, func() { w.act(w.coordinator.HandleSlice(w.clock(), body)) })
		}
		w.after(w.Delay, arrives)
		if w.rnd.Float64() < w.Again {
			w.after(2*w.Delay, arrives)
		}
	}
}

func (w *world) receive(data []byte) {
	if w.down {
		return
	}
	w.out.ToCoordinator.add(len(data))
	spend(&w.out.CPU, func() {
		m, err := Decode(data)
		if err != nil {
			panic("a worker's own message: " + err.Error())
		}
		w.act(w.coordinator.Handle(w.clock(), m))
	})
}

// fault does one.
func (w *world) fault(f SimulatedFault) {
	x := w.workers[f.Worker]
	switch f.Kind {
	case "kill":
		x.dead = true
	case "partition":
		x.cutOff = true
		w.after(f.For, func() { x.cutOff = false })
	case "step":
		x.stepped += f.For
	case "restart":
		w.down = true
		w.after(f.For, w.restart)
	case "delete":
		w.stream, w.read = nil, 0
	case "lose":
		x.lost[f.Slice] = true
		w.stream = slices.DeleteFunc(w.stream, func(b []byte) bool {
			s, _, _ := decodeHead(b)
			return s.Worker == x.id && s.N == f.Slice
		})
	case "forge":
		w.forged = true
		s := w.made(x.number, f.Slice)
		s.Done(time.Second, nil)
		t := w.leg.Times[f.Slice]
		w.stream = append(w.stream, Slice{w.cfg.Run, x.id, f.Slice, t.Stage, t.From, t.To, 0, s}.Encode())
		w.deliver()
	case "stop":
		w.act(w.coordinator.Stop(w.clock(), "asked to"))
	}
}

// restart begins with a new coordinator that knows what the old one saved, and reads the stream again.
func (w *world) restart() {
	w.down, w.epoch, w.read = false, w.now, 0
	w.coordinator = NewCoordinator(w.cfg)
	if err := w.coordinator.Resume(*w.saved, w.clock(), wallOf(w.now)); err != nil {
		panic("what was saved: " + err.Error())
	}
	w.deliver()
	w.tick()
}

// compare looks for a difference between what is merged and what was made that the verdict does not tell.
func (w *world) compare() string {
	r := w.out.Report
	if r.Verdict.Word == Refused {
		return ""
	}
	want, got := new(record.Shard), new(record.Shard)
	for i, x := range w.workers {
		m := r.Members[slices.IndexFunc(r.Members, func(m MemberReport) bool { return m.ID == x.id })]
		of := new(record.Shard)
		for n := range r.Merged {
			if m.Lost == "" || r.OnLoss == Invalidate || n < m.Got {
				of.Merge(w.made(i, n))
			}
		}
		if !of.Latency.Equal(m.Latency) || of.Failed() != m.Failed {
			return fmt.Sprintf("worker %s made %d successes and %d failures; its row holds %d and %d", x.id, of.Latency.Count(), of.Failed(), m.Latency.Count(), m.Failed)
		}
		want.Merge(of)
	}
	for _, g := range r.Groups {
		got.Merge(g.Shard)
	}
	switch {
	case !got.Latency.Equal(&want.Latency) || !got.Service.Equal(&want.Service) || !got.Late.Equal(&want.Late) || got.Failed() != want.Failed():
		return fmt.Sprintf("%d successes and %d failures are merged; %d and %d were made", got.Latency.Count(), got.Failed(), want.Latency.Count(), want.Failed())
	case r.Verdict.Word == Complete && (r.SlicesGot != r.Slices || r.Merged != len(w.leg.Times) || r.WorkersComplete != r.Workers):
		return fmt.Sprintf("complete, with %d of %d slices and %d of %d workers", r.SlicesGot, r.Slices, r.WorkersComplete, r.Workers)
	}
	return ""
}

// weigh finds out what the coordinator holds.
func (w *world) weigh() {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	w.queue = nil
	if w.out.Report != nil {
		w.out.Report = w.out.Report.clone() // which shares nothing with the coordinator
	}
	with := heap()
	w.coordinator = nil
	w.out.Memory = with - min(heap(), with)
	w.out.WorkerCPU /= time.Duration(max(w.Simulation.Workers, 1))
}
