package lab

import (
	"cmp"
	"fmt"

	"toll/lab/check"
	"toll/lab/plan"
	"toll/lab/result"
)

// costs fills in what both sides spent.
func (r *run) costs(s *rowState, row *result.Row) {
	ops, m := float64(row.Ops-row.Dropped), s.metered
	if ops == 0 {
		return
	}
	procs := s.procs
	if s.engine() {
		row.Processes = []result.Process{{Role: "client", GOMAXPROCS: &procs, Processors: s.entry.ClientOn}}
		name := r.rowName(s.setting, s.entry)
		r.gap(name+": wire_bytes", "nothing of the operation passes between the lab and an engine")
		switch {
		case s.entry.Process == nil:
		case s.entry.Calling:
			r.callingCosts(s, row, name)
		default:
			r.gap(name+": client", "an engine is its own client: what it spent is in the server's figures")
			r.engineCosts(s, row, name)
		}
		return
	}
	row.Client.CPU = result.Ptr(micros(float64(s.clientCPU) / ops))
	row.Client.Kind = s.entry.Client
	client := result.Process{Role: "client", GOMAXPROCS: &procs, Processors: s.entry.ClientOn}
	cores := min(s.setting.Concurrency, procs)
	if n := s.threads(); n > 0 {
		client.Threads = &n
		cores = min(cores, n)
	}
	if r.o.Settings.Model == plan.Open {
		cores = procs
		if client.Threads != nil {
			cores = min(procs, *client.Threads)
		}
	}
	away := s.elsewhere()
	if away != nil {
		cores = max(away.Cores, 1)
	}
	if share := s.clientCPU.Seconds() / s.elapsed.Seconds() / float64(cores); share > check.ClientBound {
		row.Warnings = append(row.Warnings, fmt.Sprintf("client-bound: the client used %.0f %% of its cores", 100*share))
	}
	row.Processes = []result.Process{client}
	name := r.rowName(s.setting, s.entry)
	if away != nil && !away.Allocs {
		r.gap(name+": client.allocs_per_op", "the machines that drove the VUs do not say what they allocated")
	} else if len(s.outcomes) > 0 {
		row.Client.Allocs = result.Ptr(result.Round3(float64(s.spent.Allocs) / ops))
		row.Client.AllocBytes = result.Ptr(result.Round3(float64(s.spent.AllocBytes) / ops))
	} else if m.calls > 0 {
		row.Client.Allocs = result.Ptr(result.Round3(float64(m.client.Allocs) / float64(m.calls)))
		row.Client.AllocBytes = result.Ptr(result.Round3(float64(m.client.AllocBytes) / float64(m.calls)))
	} else {
		r.gap(name+": client.allocs_per_op", notMetered)
	}
	switch {
	case s.shard.Out > 0:
		row.WireBytes = &result.WireBytes{Out: result.Round3(float64(s.shard.Out) / ops), In: result.Round3(float64(s.shard.In) / ops)}
	case m.calls == 0:
		r.gap(name+": wire_bytes", notMetered)
	case !m.wire:
		r.gap(name+": wire_bytes", "this driver does not count bytes")
	default:
		row.WireBytes = &result.WireBytes{
			Out: result.Round3(float64(m.out) / float64(m.calls)), In: result.Round3(float64(m.in) / float64(m.calls)),
		}
	}
	switch {
	case s.entry.Process != nil:
		r.serverCosts(s, row, name)
	case s.entry.Unseen != "":
		r.gap(name+": server", s.entry.Unseen)
	}
}

// notMetered is why figures of the metering pass are not there: the run or the contender ended before it.
const notMetered = "there was no metering pass"

// limited adds what the contender met in one round.
func (s *rowState) limited(before, after Limited) { addLimited(&s.server.Limited, before, after) }

func addLimited(sum *Limited, before, after Limited) {
	sum.Mechanism, sum.Known = after.Mechanism, after.Known
	sum.Throttled += after.Throttled - before.Throttled
	sum.OOMKills += after.OOMKills - before.OOMKills
	sum.MemoryPeak = max(sum.MemoryPeak, after.MemoryPeak)
}

// limitCosts says what the limits in force did to a process tree.
func limitCosts(l Limited, c *result.ServerCost) {
	if !l.Known {
		return
	}
	c.ThrottledMS = result.Ptr(result.Round3(l.Throttled.Seconds() * 1000))
	c.OOMKills = result.Ptr(l.OOMKills)
	if l.MemoryPeak > 0 {
		c.MemoryPeakMB = result.Ptr(result.Round3(float64(l.MemoryPeak) / (1 << 20)))
	}
}

func (r *run) serverCosts(s *rowState, row *result.Row, name string) {
	row.Server = new(result.ServerCost)
	server := result.Process{Role: "server", Processors: s.entry.ServerOn}
	if s.serverOK {
		*row.Server = costOf(s.server, row.Ops-row.Dropped)
		server.Threads = result.Ptr(s.server.Threads)
		limitCosts(s.server.Limited, row.Server)
	}
	backendCosts(s, row)
	m := s.metered
	if m.serverKnown {
		row.Server.Allocs = result.Ptr(max(result.Round3(float64(m.server.Allocs)/float64(m.calls)), 0))
		row.Server.AllocBytes = result.Ptr(max(result.Round3(float64(m.server.AllocBytes)/float64(m.calls)), 0))
		if m.server.Heap > 0 {
			row.Server.HeapMB = result.Ptr(result.Round3(float64(m.server.Heap) / (1 << 20)))
		}
		if m.server.GOMAXPROCS > 0 {
			server.GOMAXPROCS = result.Ptr(m.server.GOMAXPROCS)
		}
	} else {
		r.gap(name+": server.allocs_per_op", cmp.Or(m.serverGap, notMetered))
	}
	row.Processes = append(row.Processes, server)
}

// backendCosts fills in what stood behind the contender: each backend by its name, and all of them together.
func backendCosts(s *rowState, row *result.Row) {
	if len(s.behind) == 0 {
		return
	}
	var all Usage
	row.Backends = make(map[string]result.ServerCost)
	for i, u := range s.behind {
		c := costOf(u, row.Ops-row.Dropped)
		limitCosts(u.Limited, &c)
		row.Backends[s.entry.Backends[i].Name] = c
		row.Processes = append(row.Processes, result.Process{Role: "backend", Threads: result.Ptr(u.Threads)})
		all.CPU, all.User, all.System, all.RSSPeak = all.CPU+u.CPU, all.User+u.User, all.System+u.System, all.RSSPeak+u.RSSPeak
	}
	sum := costOf(all, row.Ops-row.Dropped)
	row.Backend = &sum
}

// costOf is what a process tree used, for an operation.
func costOf(u Usage, ops int64) result.ServerCost {
	return result.ServerCost{
		CPU:       result.Ptr(micros(float64(u.CPU) / float64(ops))),
		UserMS:    result.Ptr(result.Round3(u.User.Seconds() * 1000)),
		SystemMS:  result.Ptr(result.Round3(u.System.Seconds() * 1000)),
		RSSPeakMB: result.Ptr(result.Round3(float64(u.RSSPeak) / (1 << 20))),
	}
}

// engineCosts fills in what an engine says that its stretches cost, its own set-up left out. The lab only asked over a pipe.
func (r *run) engineCosts(s *rowState, row *result.Row, name string) {
	ops := float64(row.Ops)
	row.Server = new(result.ServerCost)
	server := result.Process{Role: "server", Processors: s.entry.ServerOn}
	if s.serverOK {
		row.Server.RSSPeakMB = result.Ptr(result.Round3(float64(s.server.RSSPeak) / (1 << 20)))
		server.Threads = result.Ptr(s.server.Threads)
	}
	if s.shard.UserKnown {
		row.Server.UserMS = result.Ptr(result.Round3(s.shard.User.Seconds() * 1000))
		row.Server.SystemMS = result.Ptr(result.Round3((s.shard.CPU - s.shard.User).Seconds() * 1000))
	}
	if s.shard.CPUKnown {
		row.Server.CPU = result.Ptr(micros(float64(s.shard.CPU) / ops))
	} else {
		r.gap(name+": server.cpu_us_per_op", "the engine does not say")
	}
	if s.shard.AllocsKnown {
		row.Server.Allocs = result.Ptr(result.Round3(float64(s.shard.Allocs) / ops))
		row.Server.AllocBytes = result.Ptr(result.Round3(float64(s.shard.AllocBytes) / ops))
	} else {
		r.gap(name+": server.allocs_per_op", "the engine does not say")
	}
	if s.metered.server.Heap > 0 {
		row.Server.HeapMB = result.Ptr(result.Round3(float64(s.metered.server.Heap) / (1 << 20)))
	}
	if n := s.metered.server.GOMAXPROCS; n > 0 {
		server.GOMAXPROCS = &n
	}
	row.Processes = append(row.Processes, server)
}

// callingCosts are those of an engine that calls others: what it says it spent is the client's, and what else its tree used
// between the first and the last stretch of each round is the server's.
func (r *run) callingCosts(s *rowState, row *result.Row, name string) {
	r.engineCosts(s, row, name)
	engine := *row.Server
	row.Client = result.ClientCost{CPU: engine.CPU, Allocs: engine.Allocs, AllocBytes: engine.AllocBytes}
	if engine.Allocs == nil {
		r.gap(name+": client.allocs_per_op", "the engine does not say")
	}
	client := &row.Processes[0]
	client.GOMAXPROCS = row.Processes[1].GOMAXPROCS
	if s.entry.Away {
		row.Server, row.Processes = nil, row.Processes[:1]
		r.gap(name+": server", "what it calls is on another machine")
		return
	}
	row.Server = &result.ServerCost{RSSPeakMB: engine.RSSPeakMB}
	row.Processes[1] = result.Process{Role: "server", Threads: row.Processes[1].Threads, GOMAXPROCS: client.GOMAXPROCS, Processors: s.entry.ServerOn}
	r.gap(name+": server.allocs_per_op", "the engine does not ask those that it calls")
	if !s.serverOK || engine.CPU == nil {
		r.gap(name+": server.cpu_us_per_op", "the use of its process tree is not known")
		return
	}
	row.Server.CPU = result.Ptr(max(0, micros(float64(s.server.CPU-s.shard.CPU)/float64(row.Ops))))
	if client.GOMAXPROCS == nil {
		return
	}
	cores := float64(min(row.Concurrency, *client.GOMAXPROCS))
	if share := s.shard.CPU.Seconds() / s.elapsed.Seconds() / cores; share > check.ClientBound {
		row.Warnings = append(row.Warnings, fmt.Sprintf("client-bound: the client used %.0f %% of its cores", 100*share))
	}
}
