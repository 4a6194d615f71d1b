package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"toll/lab/stats"
)

// A machine is one on which other things happen: its speed wanders (AR(1) with a memory of 500 calls), now and then changes for
// good, and 3 % of the calls meet something.
type machine struct {
	r     *rand.Rand
	drift float64
	level float64
}

// op is the log of one call's time.
func (m *machine) op() float64 {
	m.drift = .998*m.drift + .003*m.r.NormFloat64()
	if m.r.Float64() < .001 {
		m.level += .1 * m.r.NormFloat64()
	}
	t := m.level + m.drift + .08*m.r.NormFloat64()
	if m.r.Float64() < .03 {
		t += m.r.ExpFloat64()
	}
	return t
}

// block is the median of 51 calls that each take factor times as long.
func (m *machine) block(factor float64) float64 {
	ops := make([]float64, 51)
	for i := range ops {
		ops[i] = factor * math.Exp(m.op())
	}
	return stats.Median(ops)
}

const simBlocks = 20

// interleaved measures two contenders in shuffled blocks, sequential one after the other.
func interleaved(seed uint64, factor float64) stats.Ratio {
	m := &machine{r: rand.New(rand.NewPCG(seed, 77))}
	var a, b []float64
	for range simBlocks {
		if m.r.IntN(2) == 0 {
			a = append(a, m.block(factor))
			b = append(b, m.block(1))
		} else {
			b = append(b, m.block(1))
			a = append(a, m.block(factor))
		}
	}
	return stats.PairedRatio(a, b, .95)
}

func sequential(seed uint64) stats.Ratio {
	m := &machine{r: rand.New(rand.NewPCG(seed, 77))}
	var a, b []float64
	for range simBlocks {
		a = append(a, m.block(1))
	}
	for range simBlocks {
		b = append(b, m.block(1))
	}
	return stats.PairedRatio(a, b, .95)
}

func excludesOne(q stats.Ratio) bool { return q.Lo > 1 || q.Hi < 1 }

// On a machine that drifts, blocks keep the promise of their interval, and one after the other does not.
func TestInterleavedBlocksKeepTheirPromiseOnADriftingMachine(t *testing.T) {
	t.Parallel()
	const seeds = 500
	var falseAlarms, found, sequentialAlarms int
	for seed := range uint64(seeds) {
		if excludesOne(interleaved(seed+1, 1)) {
			falseAlarms++
		}
		if q := interleaved(seed+1, 1.05); q.Lo > 1 {
			found++
		}
		if excludesOne(sequential(seed + 1)) {
			sequentialAlarms++
		}
	}
	t.Logf("A/A false alarms %.1f %%, +5 %% found %.1f %%, sequential false alarms %.1f %%",
		100*float64(falseAlarms)/seeds, 100*float64(found)/seeds, 100*float64(sequentialAlarms)/seeds)
	if falseAlarms > seeds*7/100 {
		t.Errorf("%d of %d interleaved A/A comparisons claim a difference; at most 7 %% may", falseAlarms, seeds)
	}
	if found < seeds*99/100 {
		t.Errorf("a true +5 %% was found in %d of %d; at least 99 %% must be", found, seeds)
	}
	if sequentialAlarms < seeds/4 {
		t.Errorf("only %d of %d sequential A/A comparisons claim a difference; the machine does not drift enough to show why blocks exist", sequentialAlarms, seeds)
	}
}
