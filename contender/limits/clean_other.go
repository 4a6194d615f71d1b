//go:build !linux

package limits

import "toll/contender/owner"

// Clean finds nothing: there are no groups on this system.
func Clean() []owner.Found { return nil }
