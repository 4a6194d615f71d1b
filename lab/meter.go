package lab

import (
	"context"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// meterCalls is how many calls the metering pass makes per VU, and meterWarm how many before it.
const (
	meterCalls = 200
	meterWarm  = 20
)

// meterTime is about how long a metering pass may take where calls are long; it still makes leastMetered of them.
const (
	meterTime    = time.Second
	leastMetered = 20
)

// metering returns how many calls the metering pass of a row makes.
func (s *rowState) metering() int {
	p50 := time.Duration(s.shard.Latency.Quantile(.5))
	if p50 <= meterTime/meterCalls {
		return meterCalls
	}
	return max(int(meterTime/p50), leastMetered)
}

// metered is what the metering pass found, in sums over its calls.
type metered struct {
	calls       int64
	p50         time.Duration // of one caller alone
	client      record.Meter
	out, in     int64
	wire        bool
	server      Counters
	serverKnown bool
	serverGap   string
}

// meter makes a short pass of its own over one connection and reads what both sides allocated and what went over the
// wire. It is apart from the timed blocks because counting disturbs what it counts.
func (r *run) meter(ctx context.Context, s Setting, l *lane) {
	m := &l.row.metered
	if m.calls > 0 {
		return
	}
	if l.engine() != nil {
		r.meterEngine(ctx, s, l)
		return
	}
	if l.entry.Watched {
		m.serverGap = "toll did not start this process and has no way to ask it"
	}
	if l.entry.Client != "" && l.row.shard.Out > 0 && (l.entry.Process == nil || l.entry.Watched) {
		return // the client counted its bytes in the window, and there is no server to ask
	}
	target := l.entry.Metered
	if target == nil {
		target = l.entry.Target
	}
	c, err := target.Open(ctx)
	if err != nil {
		r.gap(r.rowName(s, l.entry)+": metering", err.Error())
		return
	}
	defer load.Close(c)
	timeout := time.Duration(r.o.Settings.Timeout)
	calls := l.row.metering()
	if _, err := load.Count(ctx, c, min(meterWarm, calls/2), timeout); err != nil {
		r.gap(r.rowName(s, l.entry)+": metering", err.Error())
		return
	}
	var out0, in0 int64
	if l.entry.Wire != nil {
		out0, in0 = l.entry.Wire()
	}
	start, own, serverErr := r.countersBefore(ctx, l)
	got, err := load.Count(ctx, c, calls, timeout)
	if err != nil {
		r.gap(r.rowName(s, l.entry)+": metering", err.Error())
		return
	}
	m.calls, m.p50 = got.Shard.Ops(), time.Duration(got.Shard.Latency.Quantile(.5))
	m.client = got.Meter
	if l.entry.Wire != nil {
		out1, in1 := l.entry.Wire()
		m.out, m.in, m.wire = out1-out0, in1-in0, true
	}
	if got.Shard.AllocsKnown {
		m.server, m.serverKnown = Counters{Allocs: got.Shard.Allocs, AllocBytes: got.Shard.AllocBytes}, true
		return
	}
	if serverErr == nil && l.entry.Process != nil {
		var end Counters
		if end, serverErr = l.entry.Process.Counters(ctx); serverErr == nil {
			end.Allocs -= start.Allocs + own.Allocs
			end.AllocBytes -= start.AllocBytes + own.AllocBytes
			m.server, m.serverKnown = end, true
		}
	}
	if serverErr != nil {
		m.serverGap = serverErr.Error()
	}
}

// meterEngine reads what an engine's process says of itself. What its operations cost was counted by the engine, around each
// stretch.
func (r *run) meterEngine(ctx context.Context, s Setting, l *lane) {
	m := &l.row.metered
	if l.entry.Process == nil {
		return
	}
	now, err := l.entry.Process.Counters(ctx)
	m.server.Heap, m.server.GOMAXPROCS = now.Heap, now.GOMAXPROCS // known or 0, even when allocations are not counted
	if err != nil && now.Heap == 0 {
		r.gap(r.rowName(s, l.entry)+": server.heap_used_mb", err.Error())
	}
}

// countersBefore reads the contender's counters and what reading them itself allocates.
func (r *run) countersBefore(ctx context.Context, l *lane) (start, own Counters, err error) {
	if l.entry.Process == nil {
		return start, own, nil
	}
	first, err := l.entry.Process.Counters(ctx)
	if err != nil {
		return start, own, err
	}
	start, err = l.entry.Process.Counters(ctx)
	own.Allocs, own.AllocBytes = start.Allocs-first.Allocs, start.AllocBytes-first.AllocBytes
	return start, own, err
}
