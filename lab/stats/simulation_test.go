package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"toll/lab/stats"
)

// A machine is one on which other things happen: its speed wanders around its level (AR(1)), the level now and then changes
// for good, and 3 % of the calls meet something.
type machine struct {
	r       *rand.Rand
	wanders float64 // standard deviation of the logarithm
	keeps   float64 // how much of the wander is left from one call to the next
	drift   float64
	changed float64
}

// at returns the machine at the beginning of another history.
func (m machine) at(seed uint64) machine {
	m.r = rand.New(rand.NewPCG(seed, 77))
	return m
}

// op is the log of one call's time.
func (m *machine) op() float64 {
	m.drift = m.keeps*m.drift + m.wanders*math.Sqrt(1-m.keeps*m.keeps)*m.r.NormFloat64()
	if m.r.Float64() < .001 {
		m.changed += .1 * m.r.NormFloat64()
	}
	t := m.changed + m.drift + .08*m.r.NormFloat64()
	if m.r.Float64() < .03 {
		t += m.r.ExpFloat64()
	}
	return t
}

// stretch is the median of 50 calls that each take factor times as long.
func (m *machine) stretch(factor float64) float64 {
	ops := make([]float64, 50)
	for i := range ops {
		ops[i] = factor * math.Exp(m.op())
	}
	return stats.Median(ops)
}

const simBlocks = 20

// interleaved measures two contenders in shuffled blocks.
func (m machine) interleaved(factor float64) stats.Ratio {
	var a, b [simBlocks]float64
	for i := range simBlocks {
		if m.r.IntN(2) == 0 {
			a[i], b[i] = m.stretch(factor), m.stretch(1)
		} else {
			b[i], a[i] = m.stretch(1), m.stretch(factor)
		}
	}
	return stats.PairedRatio(a[:], b[:], .95)
}

// sequential measures one contender after the other.
func (m machine) sequential() stats.Ratio {
	var both [2 * simBlocks]float64
	for i := range both {
		both[i] = m.stretch(1)
	}
	return stats.PairedRatio(both[:simBlocks], both[simBlocks:], .95)
}

func excludesOne(q stats.Ratio) bool { return q.Lo > 1 || q.Hi < 1 }

// On a machine that drifts, blocks keep the promise of their interval, and one after the other does not.
func TestInterleavedBlocksKeepTheirPromiseOnADriftingMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		machine machine
	}{
		{"memory of 20 calls", machine{wanders: .03, keeps: .95}},
		{"memory of 500 calls", machine{wanders: .05, keeps: .998}},
		{"memory of 20 blocks", machine{wanders: .05, keeps: math.Pow(.95, 1./100)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			promise(t, c.machine)
		})
	}
}

func promise(t *testing.T, m machine) {
	const seeds = 500
	var alarms, found, sequential int
	for seed := uint64(1); seed <= seeds; seed++ {
		alarms += count(excludesOne(m.at(seed).interleaved(1)))
		found += count(m.at(seed).interleaved(1.05).Lo > 1)
		sequential += count(excludesOne(m.at(seed).sequential()))
	}
	share := func(n int) float64 { return 100 * float64(n) / seeds }
	t.Logf("A/A false alarms %.1f %%, +5 %% found %.1f %%, sequential false alarms %.1f %%", share(alarms), share(found), share(sequential))
	if share(alarms) > 7 {
		t.Errorf("%.1f %% of the interleaved A/A comparisons claim a difference; at most 7 %% may", share(alarms))
	}
	if share(found) < 99 {
		t.Errorf("a true +5 %% was found in %.1f %%; at least 99 %% must be", share(found))
	}
	if share(sequential) < 25 {
		t.Errorf("only %.1f %% of the sequential A/A comparisons claim a difference: no drift that would show why blocks exist", share(sequential))
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
