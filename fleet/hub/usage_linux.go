package hub

import (
	_ "unsafe" // for go:linkname

	_ "github.com/nats-io/nats-server/v2/server/pse" // whose variable it is
)

// usageFile is the file in which the server's package looks, once a second and from the start of every program that contains it, at
// what the program uses. There is no option that turns this off; a look that fails is the last one.
//
//go:linkname usageFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var usageFile string

// LeaveUsage ends the server package's look at its own process once a second, which costs nearly as much as a worker's word to its
// server (docs/decisions/0103). It is to be called when a program begins: the first look comes
// after a second. The name only loses its last letter, so that whoever reads it meanwhile finds the old one or the new.
//
//go:norace
//go:noinline
func LeaveUsage() {
	if n := len(usageFile); n > 0 && usageFile[n-1] == 't' {
		usageFile = usageFile[:n-1]
	}
}
