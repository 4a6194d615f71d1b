package driver

import "toll/lab/load"

// Age makes a session's connection as old as one that is no longer trusted.
func Age(c load.Caller) { c.(*session).last = c.(*session).last.Add(-2 * keptIdle) }
