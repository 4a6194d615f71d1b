package stats

import (
	"fmt"
	"math"
	"slices"
)

const (
	steadyBlocks = 9   // fewer blocks say nothing
	unsteady     = .05 // a step of the level that is larger than this is no steady state
	trendP       = .01 // as small as changeP: the question is asked of every row of every run
)

// Steady reports whether a contender had come to its steady state, and why not: a change point with a step of more than
// 5 % lies in its blocks, or the last third is more than 5 % off the first and the blocks have a trend. With fewer than nine
// blocks it can't tell, and says so; with fewer than about sixteen it sees a trend but may miss a step, and with any number one
// that comes back (see FindChanges).
func Steady(blocks []float64) (ok bool, why string) {
	n := len(blocks)
	if n < steadyBlocks {
		return true, fmt.Sprintf("%d blocks are too few to tell; %d are needed", n, steadyBlocks)
	}
	if i := slices.IndexFunc(blocks, func(v float64) bool { return !usable(v) }); i >= 0 {
		return false, fmt.Sprintf("block %d of %d is %v, which is no level", i+1, n, blocks[i])
	}
	for _, c := range FindChanges(blocks, 3) {
		if math.Abs(c.Ratio-1) > unsteady {
			return false, fmt.Sprintf("from block %d of %d on its level is %.2f × what it was (p = %.2g)", c.At+1, n, c.Ratio, c.P)
		}
	}
	if d := FindDrift(blocks); math.Abs(d.ThirdsRatio-1) > unsteady && d.P < trendP {
		return false, fmt.Sprintf("the last third of its %d blocks took %.2f × the first (p = %.2g)", n, d.ThirdsRatio, d.P)
	}
	return true, ""
}
