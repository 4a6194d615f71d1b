//go:build !unix

package env

import "time"

// childrenCPU is not counted by this system.
func childrenCPU() time.Duration { return 0 }
