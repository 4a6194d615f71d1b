//go:build !linux

package hop

import "toll/contender/owner"

// Clean finds nothing: there are no links on this system.
func Clean() []owner.Found { return nil }
