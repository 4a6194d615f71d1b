package report

import (
	"fmt"

	"toll/lab/result"
)

// ladderLines shows the steps of a ladder, group by group: one change a line, then their product beside the whole.
func ladderLines(d *result.Document) []string {
	var out []string
	group, product := "", 1.0
	for _, r := range d.Ladder {
		if name := fmt.Sprintf("where the difference comes from: %s %s ×%d", r.Case, r.Phase, r.Concurrency); name != group {
			if group != "" {
				out = append(out, "")
			}
			group, product = name, 1
			out = append(out, name, fmt.Sprintf("  %-12s %-34s %s", "step", "from → to", "ratio (95 %)"))
		}
		out = append(out, fmt.Sprintf("  %-12s %-34s %s", r.Step, r.From+" → "+r.To, rungText(r)))
		if r.Step == result.Whole {
			out = append(out, fmt.Sprintf("  %-12s %-34s %.2f", "", "product of the steps on the way", product))
		} else if onTheWay(d, r) {
			product *= r.Value
		}
	}
	if len(out) > 0 {
		out = append(out, "")
	}
	return out
}

// onTheWay reports whether a step leads to the end of its ladder: another begins where it ends, or the whole ends there.
func onTheWay(d *result.Document, r result.Rung) bool {
	for _, o := range d.Ladder {
		if o.Case != r.Case || o.Phase != r.Phase || o.Concurrency != r.Concurrency {
			continue
		}
		if o.Step == result.Whole && o.To == r.To || o.Step != result.Whole && o.From == r.To {
			return true
		}
	}
	return false
}

func rungText(r result.Rung) string {
	if r.Lo == nil || r.Hi == nil {
		return fmt.Sprintf("%.2f no interval", r.Value)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", r.Value, *r.Lo, *r.Hi)
}
