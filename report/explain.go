package report

// An explanation says how a figure is made, and where in the document it stands.
type explanation struct {
	ID, Name, Text, Field string
}

// explanations lists how each figure of a report is made.
func explanations() []explanation {
	return []explanation{
		{"rank", "rank", "A range of places. Two contenders share one when the interval of their ratio, adjusted after Holm for the number of pairs, holds 1: which of them is faster could not be shown.", "rows[].rank"},
		{"contender", "contender", "What answered. “= 1” marks the baseline that the others are divided by; (A/A) the baseline entered a second time, as a process of its own; (socket) a bare socket that no contender can be faster than; (lab's own) the client against a canned reply.", "rows[].contender, rows[].role"},
		{"ratio", "ratio (95 %)", "The contender's median divided by the baseline's in the same block: the Hodges–Lehmann estimate over all blocks with its exact interval from Wilcoxon's signed ranks. Below 1 is faster. Fewer than six blocks give no interval. Ratios never cross cases, phases, concurrencies or machines.", "rows[].ratio, from rows[].rounds[].blocks[]"},
		{"band", "noise floor", "The interval of the A/A control. The same program was entered twice, so whatever lies within it is noise of this run: a smaller difference is no difference shown. One run in twenty it excludes 1 by chance.", "rows[role=control].ratio"},
		{"min", "min", "The fastest success.", "rows[].latency_us.min"},
		{"p50", "p50", "The median of the successes, from a histogram whose values are exact to 0.2 %. A failure is never a latency.", "rows[].latency_us.p50, rows[].histogram"},
		{"p99", "p99", "Ninety-nine of a hundred successes were as fast or faster. It needs 1,000 successes, p90 100, p95 200, p99.9 10,000; with fewer, the cell says n<1000.", "rows[].latency_us.p99"},
		{"service", "service", "Open model only: the median from when a call was sent. p50 and p99 count from when it was due, so that a stall is seen by every call that it delayed.", "rows[].service_us"},
		{"throughput", "calls/s", "Successes divided by the time from the first call of a block to its last reply, set-up left out. In the closed model it follows from latency and the number of callers.", "rows[].throughput_per_s"},
		{"dropped", "dropped", "Arrivals that found no free worker. They are counted, and the row is saturated.", "rows[].dropped"},
		{"floor", "above floor", "The row's p50 less the bare socket's.", "rows[].latency_us.p50"},
		{"cpu", "CPU µs/op", "Processor time per operation: of this program while it called (client), of the contender's process and its children (server), and of what stands behind it (backend). An engine times itself, and has no client. These figures survive a change of machine better than times do.", "rows[].client, server, backend .cpu_us_per_op"},
		{"rss", "RSS MB", "The largest resident memory of the contender's processes, MiB.", "rows[].server.rss_peak_mb"},
		{"allocs", "allocs/op", "Heap objects per operation, from each side's own counters in a pass of its own.", "rows[].client, server .allocs_per_op"},
		{"wire", "wire B", "Bytes that one operation puts on its connection, there and back, from a pass of its own.", "rows[].wire_bytes"},
		{"parts", "parts", "Named shares of one operation's time, as the contender gives them; the bar adds their means.", "rows[].parts_us"},
		{"curve", "percentiles", "Every success of the row: how long the slowest share of the calls took. The axis stretches the tail: each step to the right is ten times rarer.", "rows[].histogram"},
		{"strip", "time over blocks", "Each block's median against the row's own middle one. A line that leans is drift; ratios are paired within blocks and survive it. Shaded rounds were marked as outliers; they are kept.", "rows[].rounds[].blocks[].p50_us"},
		{"knee", "knee", "The highest rate of an open load at which a quantile of the response time, counted from when each call was due, holds a bound while nothing fails and nothing is dropped. Each block searches for it, from below and from above in turn, by stretches on both sides; the two last sides are tried twice and lie within 3 %, or up to 15 % where a rate held once and missed once. The figure is the Hodges–Lehmann estimate over the searches with Wilcoxon's interval. A stretch that misses while the client itself was late says nothing of the contender. A ratio of knees divides the times per call, so below 1 is better.", "rows[].knee"},
		{"bend", "bend", "Where throughput divided by latency is largest (Kleinrock's power): more callers than that buy less throughput than they cost in waiting.", "rows[].throughput_per_s, latency_us.p50"},
		{"little", "Little's law", "Calls in flight = rate × mean time. A ratio outside 0.95–1.05 means that time passed outside the calls, and the row says so.", "rows[].little"},
	}
}
