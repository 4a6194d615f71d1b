// Command libzmq is an engine of the bus benchmark: it makes round trips to a process of its own over libzmq's DEALER and
// ROUTER, times them itself and verifies every reply. It is built with the tag libzmq, because it needs a C library.
package main

import (
	"fmt"
	"os"
)

func main() {
	run := engine
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		run = worker
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func engine() error {
	e, err := start()
	if err != nil {
		return err
	}
	defer e.close()
	b := &bus{dial: e.dial}
	return b.serve(os.Stdin, os.Stdout, map[string]any{"version": version(), "name": "libzmq", "language": "c"})
}
