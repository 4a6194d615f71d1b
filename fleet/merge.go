package fleet

import (
	"fmt"
	"time"

	"toll/lab/record"
)

// mergedGroups is into how many parts of time the merged slices are folded at most, the stages' borders apart.
const mergedGroups = 120

// A Group is merged slices that follow each other.
type Group struct {
	Time
	Warm  bool
	First int // slice
	Shard *record.Shard
}

// HandleSlice takes a slice from the stream. It keeps body.
func (c *Coordinator) HandleSlice(now time.Duration, body []byte) []Action {
	s, _, err := decodeHead(body)
	w := c.members[s.Worker]
	if err != nil || s.Run != c.cfg.Run || w == nil || s.N >= len(c.leg.Times) {
		c.strays++
		return nil
	}
	switch w.take(s.N, body) {
	case contradicts:
		c.refuse(now, w.id, fmt.Errorf("two different slices came as its slice %d", s.N))
	case taken:
		c.advance(now)
	}
	if c.started { // however old it is, its worker lived when its time was over
		c.hear(now, w, min(now, c.goAt+c.leg.Times[s.N].To))
	}
	out := []Action(nil)
	if c.stopping != "" && rank(w.phase) < rank(Done) {
		out = c.lead(now, w)
	}
	if w.phase == Done && w.totals != nil && w.got >= w.totals.Slices {
		out = c.collect(now, w)
	}
	return c.keep(append(out, c.conclude(now)...))
}

// limit is how many slices may be merged: those that every worker delivered which has not been lost, or whose loss ends the run.
func (c *Coordinator) limit() int {
	n := len(c.leg.Times)
	for _, m := range c.order {
		if !m.lost && !m.short || c.cfg.OnLoss == Invalidate {
			n = min(n, m.have)
		}
	}
	if len(c.order) < c.cfg.Workers {
		return 0
	}
	return n
}

// advance merges what all have delivered.
func (c *Coordinator) advance(now time.Duration) {
	for limit := c.limit(); c.mark < limit && c.refused == nil; c.mark++ {
		for _, m := range c.order {
			if m.have <= c.mark {
				continue
			}
			if err := c.merge(m); err != nil {
				c.refuse(now, m.id, err)
				return
			}
		}
	}
}

// merge adds a worker's slice at the mark.
func (c *Coordinator) merge(m *member) error {
	s, err := DecodeSlice(m.waiting[c.mark])
	if err != nil {
		return fmt.Errorf("slice %d: %w", c.mark, err)
	}
	t := c.leg.Times[c.mark]
	if s.From != t.From || s.To != t.To {
		return fmt.Errorf("slice %d is of %v to %v; in this plan it is of %v to %v", c.mark, s.From, s.To, t.From, t.To)
	}
	delete(m.waiting, c.mark)
	m.merged = c.mark + 1
	g := c.group()
	g.Shard.Merge(s.Shard)
	m.all.add(s.Shard)
	if c.mark < c.leg.Warm {
		return nil
	}
	m.window.add(s.Shard)
	m.latency.Merge(&s.Shard.Latency)
	m.late.Merge(&s.Shard.Late)
	m.cpu += s.CPU
	if h := &s.Shard.Late; h.Count() > 0 && !timely(time.Duration(h.Quantile(.99))) {
		m.limited++
	}
	return nil
}

// group returns the group that the slice at the mark belongs to.
func (c *Coordinator) group() *Group {
	t, warm := c.leg.Times[c.mark], c.mark < c.leg.Warm
	if n := len(c.groups); n > 0 {
		g := &c.groups[n-1]
		if g.First == c.mark || g.Stage == t.Stage && g.Warm == warm && c.mark-g.First < c.perOne {
			g.To = t.To
			return g
		}
	}
	c.groups = append(c.groups, Group{t, warm, c.mark, new(record.Shard)})
	return &c.groups[len(c.groups)-1]
}
