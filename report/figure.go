package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"toll/lab/result"
)

// figure prints v with three significant digits and no exponent; "–" when it is not there.
func figure(v *float64) string {
	if v == nil {
		return none
	}
	return digits(*v)
}

func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// count prints a small number of objects: one decimal below ten, unless it is whole.
func count(v *float64) string {
	if v == nil {
		return none
	}
	if r := math.Round(*v); math.Abs(*v-r) < .05 || *v >= 10 {
		return strconv.FormatFloat(r, 'f', 0, 64)
	}
	return strconv.FormatFloat(*v, 'f', 1, 64)
}

// quantile prints a quantile, or how many successes it would have needed.
func quantile(r *result.Row, pick func(*result.Latency) *float64, least int64) string {
	if r.Latency == nil {
		return none
	}
	if v := pick(r.Latency); v != nil {
		return digits(*v)
	}
	return fmt.Sprintf("n<%d", least)
}

// ratioText prints a ratio with its interval, and says so when there is none.
func ratioText(r *result.Row) string {
	switch q := r.Ratio; {
	case r.Role == result.Baseline:
		return "1"
	case q == nil:
		return none
	case q.Lo == nil || q.Hi == nil:
		return fmt.Sprintf("%.2f no interval", q.Value)
	default:
		return fmt.Sprintf("%.2f (%.2f–%.2f)", q.Value, *q.Lo, *q.Hi)
	}
}

// aboveFloor is the row's p50 less the floor's.
func aboveFloor(r *result.Row, g *result.Group) *float64 {
	f := g.Floor()
	if f == nil || r.Latency == nil || r.Role == result.Floor {
		return nil
	}
	return result.Ptr(r.Latency.P50 - f.Latency.P50)
}

// serverCost picks a figure of the server's, nil when there is no server process.
func serverCost(r *result.Row, pick func(*result.ServerCost) *float64) *float64 {
	if r.Server == nil {
		return nil
	}
	return pick(r.Server)
}

func wire(r *result.Row) string {
	if r.WireBytes == nil {
		return none
	}
	return fmt.Sprintf("%.0f/%.0f", r.WireBytes.Out, r.WireBytes.In)
}

// ordered returns the group's rows as they are shown: ranked ones by their ratio, then control, floor and null.
func ordered(g *result.Group) []*result.Row {
	rows := slices.Clone(g.Rows)
	slices.SortStableFunc(rows, func(a, b *result.Row) int {
		if d := tier(a) - tier(b); d != 0 {
			return d
		}
		switch x, y := weight(a), weight(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return rows
}

func tier(r *result.Row) int {
	switch r.Role {
	case result.Control:
		return 1
	case result.Floor:
		return 2
	case result.Null:
		return 3
	}
	return 0
}

func weight(r *result.Row) float64 {
	switch {
	case r.Role == result.Baseline:
		return 1
	case r.Ratio != nil:
		return r.Ratio.Value
	}
	return math.Inf(1)
}
