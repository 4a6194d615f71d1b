package report

import (
	"fmt"
	"strings"

	"toll/lab/result"
)

// retainedText says what the contenders of a table held on to for sessions that were left behind, nothing where none were.
func retainedText(g *result.Group) string {
	var parts []string
	idle := 0.0
	for _, r := range ordered(g) {
		if r.Retained != nil {
			idle = r.Retained.IdleS
			parts = append(parts, fmt.Sprintf("%s %s, then %s", name(r), kilobytes(r.Retained.Bytes), kilobytes(r.Retained.BytesAfterIdle)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("held for each session left behind, then %.0f s after the last call (forget after %.0f s): %s", 2*idle, idle, strings.Join(parts, "; "))
}

// kilobytes prints bytes in kB, what is less than a byte a session as nothing.
func kilobytes(bytes float64) string { return fmt.Sprintf("%.1f kB", bytes/1000) }
