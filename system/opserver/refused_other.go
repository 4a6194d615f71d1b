//go:build !linux && !windows

package opserver

import "syscall"

// refused is what dialling a socket that nobody listens on gives.
const refused = syscall.ECONNREFUSED
