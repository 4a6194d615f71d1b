// Command toll measures what an agent pays to call an operation, and says how far the number can be trusted.
package main

import (
	"os"

	"toll/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
