package plan

// A Segment is one generator's share of a load that several put on a target together: exact, so that the shares of all
// add up to the load at every moment.
type Segment struct {
	Number int `json:"number"` // from 0
	Of     int `json:"of"`
}

// Whole is the share of a generator that is alone.
func Whole() Segment { return Segment{0, 1} }

// VUs returns the stages of the segment's VUs: of those of the whole load, every Of-th one beginning with Number. They begin
// with a jump that the whole's stages do not have, and a level below zero is nobody.
func (s Segment) VUs(stages []Stage) []Stage {
	n := float64(s.Of)
	off := (n - 1 - 2*float64(s.Number)) / (2 * n)
	out := []Stage{{0, off}}
	for _, st := range stages {
		out = append(out, Stage{st.Duration, st.Target/n + off})
	}
	return out
}

// Rates returns the stages of the segment's arrivals, and where the first of them lies in its interval: of the arrivals of the
// whole load, every Of-th one beginning with Number. Of arrivals at random moments it has a process of its own, and those of
// all together are one of the whole rate.
func (s Segment) Rates(stages []Stage) (out []Stage, ahead float64) {
	for _, st := range stages {
		out = append(out, Stage{st.Duration, st.Target / float64(s.Of)})
	}
	return out, float64(s.Number) / float64(s.Of)
}

// Share returns the segment's part of a number that is dealt evenly, earlier segments first.
func (s Segment) Share(total int) int {
	n := total / s.Of
	if s.Number < total%s.Of {
		n++
	}
	return n
}
