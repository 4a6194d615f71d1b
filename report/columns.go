package report

import (
	"fmt"
	"strings"

	"toll/lab/result"
)

// A column is one figure of a table's rows. What no row of a group has is no column of its table.
type column struct {
	id   string // names the rule that makes the figure
	over string // stands above the heads of neighbours that share it
	head string
	rank int // the terminal leaves out those of the highest rank first
	left bool
	cell func(*result.Row, *result.Group) string
}

func at[T any](pick func(*result.Row) *T, then func(*T) *float64) func(*result.Row, *result.Group) string {
	return func(r *result.Row, _ *result.Group) string {
		if p := pick(r); p != nil {
			return figure(then(p))
		}
		return none
	}
}

func sampled(pick func(*result.Latency) *float64, least int64) func(*result.Row, *result.Group) string {
	return func(r *result.Row, _ *result.Group) string { return quantile(r, pick, least) }
}

func server(r *result.Row) *result.ServerCost   { return r.Server }
func backend(r *result.Row) *result.ServerCost  { return r.Backend }
func clientOf(r *result.Row) *result.ClientCost { return &r.Client }

// columns lists every figure that a table can show, in the order of the columns.
func columns() []column {
	return []column{
		{id: "rank", head: "rank", left: true, cell: func(r *result.Row, _ *result.Group) string { return r.Rank }},
		{id: "contender", head: "contender", left: true, cell: func(r *result.Row, _ *result.Group) string { return name(r) }},
		{id: "ratio", head: "ratio (95 %)", left: true, cell: func(r *result.Row, _ *result.Group) string { return ratioText(r) }},
		{id: "min", over: "µs", head: "min", rank: 5, cell: sampled(func(l *result.Latency) *float64 { return &l.Min }, 1)},
		{id: "p50", over: "µs", head: "p50", cell: sampled(func(l *result.Latency) *float64 { return &l.P50 }, 1)},
		{id: "p99", over: "µs", head: "p99", cell: sampled(func(l *result.Latency) *float64 { return l.P99 }, 1000)},
		{id: "service", over: "µs", head: "service", rank: 1, cell: func(r *result.Row, _ *result.Group) string {
			if r.Service == nil {
				return none
			}
			return digits(r.Service.P50)
		}},
		{id: "throughput", over: "", head: "calls/s", rank: 2, cell: func(r *result.Row, _ *result.Group) string { return figure(r.Throughput) }},
		{id: "dropped", over: "", head: "dropped", rank: 1, cell: func(r *result.Row, _ *result.Group) string {
			if r.Dropped == 0 {
				return none
			}
			return fmt.Sprint(r.Dropped)
		}},
		{id: "floor", over: "above", head: "floor", rank: 8, cell: func(r *result.Row, g *result.Group) string { return figure(aboveFloor(r, g)) }},
		{id: "cpu", over: "CPU µs/op", head: "client", cell: at(clientOf, func(c *result.ClientCost) *float64 { return c.CPU })},
		{id: "cpu", over: "CPU µs/op", head: "server", cell: at(server, cpuOf)},
		{id: "cpu", over: "CPU µs/op", head: "backend", rank: 1, cell: at(backend, cpuOf)},
		{id: "rss", over: "RSS", head: "MB", rank: 3, cell: at(server, rssOf)},
		{id: "allocs", over: "allocs/op", head: "cli", rank: 4, cell: func(r *result.Row, _ *result.Group) string { return count(r.Client.Allocs) }},
		{id: "allocs", over: "allocs/op", head: "srv", rank: 4, cell: func(r *result.Row, _ *result.Group) string { return count(serverCost(r, allocsOf)) }},
		{id: "wire", over: "wire B", head: "out/in", rank: 7, cell: func(r *result.Row, _ *result.Group) string { return wire(r) }},
	}
}

// none stands for a figure that is not there.
const none = "–"

// A table is the columns of a group that hold anything, and their cells row by row.
type table struct {
	columns []column
	rows    [][]string
}

// tableOf fills the table of a group whose rows are shown in the order given.
func tableOf(g *result.Group, rows []*result.Row, all []column) table {
	t := table{rows: make([][]string, len(rows))}
	for _, c := range all {
		cells := make([]string, len(rows))
		some := false
		for i, r := range rows {
			cells[i] = c.cell(r, g)
			some = some || cells[i] != none && cells[i] != ""
		}
		if !some {
			continue
		}
		t.columns = append(t.columns, c)
		for i := range rows {
			t.rows[i] = append(t.rows[i], cells[i])
		}
	}
	return t
}

// widths returns how wide each column must be, its head and what stands over it included.
func (t table) widths() []int {
	out := make([]int, len(t.columns))
	for i, c := range t.columns {
		out[i] = runes(c.head)
		for _, r := range t.rows {
			out[i] = max(out[i], runes(r[i]))
		}
	}
	for i, from := 0, 0; i < len(t.columns); i++ {
		if t.columns[i].over != t.columns[from].over {
			from = i
		}
		if i+1 < len(t.columns) && t.columns[i+1].over == t.columns[from].over {
			continue
		}
		room := i - from
		for _, w := range out[from : i+1] {
			room += w
		}
		out[i] += max(runes(t.columns[from].over)-room, 0)
	}
	return out
}

// fit leaves out the columns that matter least until a line holds at most most characters.
func (t table) fit(most int) table {
	for {
		total, last := len(t.columns)-1, 0
		for i, w := range t.widths() {
			total += w
			if t.columns[i].rank >= t.columns[last].rank {
				last = i
			}
		}
		if total <= most || t.columns[last].rank == 0 {
			return t
		}
		t = t.without(last)
	}
}

func (t table) without(i int) table {
	cut := table{columns: append(append([]column(nil), t.columns[:i]...), t.columns[i+1:]...)}
	for _, r := range t.rows {
		cut.rows = append(cut.rows, append(append([]string(nil), r[:i]...), r[i+1:]...))
	}
	return cut
}

// overs is the line above the heads: each text stands once, to the right over the columns that share it.
func (t table) overs(width []int) string {
	var out strings.Builder
	for i := 0; i < len(t.columns); {
		j, w := i, -1
		for ; j < len(t.columns) && t.columns[j].over == t.columns[i].over; j++ {
			w += width[j] + 1
		}
		text := t.columns[i].over
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(padded(text, w, false))
		i = j
	}
	return strings.TrimRight(out.String(), " ")
}
