package receipt

import (
	"fmt"
	"strings"
)

// Pins are the gateway's own keys as others may pin them: its current one, and those that its log rotated away from.
func (gw *Gateway) Pins() *Pins {
	p := &Pins{Gateway: gw.cfg.Name}
	for _, k := range append(gw.keys, gw.cfg.Key) {
		if p.find(k.KID) == nil {
			p.Keys = append(p.Keys, PinOf(k.Public))
		}
	}
	return p
}

// Health is nil while arrivals are taken, and says why not otherwise.
func (gw *Gateway) Health() error {
	gw.mu.Lock()
	closed := gw.closed
	gw.mu.Unlock()
	if closed {
		return errClosed
	}
	if gw.queue != nil && len(gw.queue) == cap(gw.queue) {
		return refuse(Unavailable, "%d batches wait for the notary", len(gw.queue))
	}
	gw.commit.Lock()
	defer gw.commit.Unlock()
	if gw.log != nil && gw.log.broken != nil {
		return refuse(Unavailable, "the log is closed to writing: %v", gw.log.broken)
	}
	return nil
}

// Counts are what a gateway did since it was opened.
type Counts struct {
	Frozen, Receipts, Repeated, Conflicts, Refused, Groups, Replayed, TornBytes int64
	Unsigned                                                                    int // groups that wait for the notary
}

// Counts returns them.
func (gw *Gateway) Counts() Counts {
	c := &gw.counts
	return Counts{
		c.frozen.Load(), c.receipts.Load(), c.repeated.Load(), c.conflicts.Load(), c.refused.Load(), c.groups.Load(),
		c.replayed.Load(), c.torn.Load(), len(gw.queue),
	}
}

// AppendMetrics appends the counts in Prometheus' text format.
func (gw *Gateway) AppendMetrics(dst []byte) []byte {
	c := gw.Counts()
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"receipt_frozen_total", "counter", "Envelopes that got their place in the sequence.", c.Frozen},
		{"receipt_receipts_total", "counter", "Receipts that were made, repeated ones included.", c.Receipts},
		{"receipt_repeated_total", "counter", "Arrivals that were the same request once more.", c.Repeated},
		{"receipt_conflicts_total", "counter", "Arrivals whose id was taken by another hash.", c.Conflicts},
		{"receipt_refused_total", "counter", "Arrivals that found too many waiting.", c.Refused},
		{"receipt_groups_total", "counter", "Groups that were made durable together.", c.Groups},
		{"receipt_replayed_total", "counter", "Envelopes that were acknowledged before the last start and signed after it.", c.Replayed},
		{"receipt_torn_bytes_total", "counter", "Bytes behind the last whole record that were cut off at the last start.", c.TornBytes},
		{"receipt_unsigned_groups", "gauge", "Groups that wait for the notary.", int64(c.Unsigned)},
	} {
		dst = fmt.Appendf(dst, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
	return dst
}

// isTilePath reports whether a path is one of C2SP tlog-tiles: /tile/L/N, /tile/entries/N, with .p/W behind a partial one.
func isTilePath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/tile/")
	level, rest, more := strings.Cut(rest, "/")
	if !ok || !more || level != "entries" && !isNumber(level, 2) {
		return false
	}
	rest, width, partial := strings.Cut(rest, ".p/")
	if partial && !isNumber(width, 3) {
		return false
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		if i < len(parts)-1 {
			if p, ok = strings.CutPrefix(p, "x"); !ok {
				return false
			}
		}
		if len(p) != 3 || !isNumber(p, 3) {
			return false
		}
	}
	return true
}

func isNumber(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
