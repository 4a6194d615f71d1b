package report

import (
	"fmt"
	"math"
	"strings"
)

// An axis is logarithmic; places on it are hundredths of its width.
type axis struct{ lo, hi float64 }

// logAxis holds the values and 5 % beyond them on both sides.
func logAxis(values []float64) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 1) {
			a.lo, a.hi = min(a.lo, v), max(a.hi, v)
		}
	}
	if a.lo >= a.hi {
		a.lo, a.hi = a.lo/2, a.hi*2
	}
	more := math.Pow(a.hi/a.lo, .05)
	return axis{a.lo / more, a.hi * more}
}

func (a axis) place(v float64) float64 {
	return 100 * math.Log(v/a.lo) / math.Log(a.hi/a.lo)
}

func (a axis) at(v float64) string { return percent(a.place(v)) }

func (a axis) span(lo, hi float64) string { return percent(a.place(hi) - a.place(lo)) }

// ticks marks round values, the densest set that leaves at least a tenth of the axis between two.
func (a axis) ticks() []tick {
	for _, steps := range [][]float64{{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}, {1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 8}, {1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}} {
		var out []tick
		last, close := math.Inf(-1), false
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			for _, s := range steps {
				v := s * math.Pow(10, e)
				at := a.place(v)
				if at < 1 || at > 99 {
					continue
				}
				close = close || at-last < 9
				last = at
				out = append(out, tick{percent(at), round(v)})
			}
		}
		if !close {
			return out
		}
	}
	return nil
}

// round prints the round values of an axis: 0.15, 20, 5000, 20k, 1M.
func round(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.1f", v), "0"), ".")
}
