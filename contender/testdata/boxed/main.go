// Command boxed is a contender that a container image is made of for a test.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "crash" {
		fmt.Fprintln(os.Stderr, "Error: no luck in the box")
		os.Exit(3)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf(`{"ready":"tcp://%s","name":%q}`+"\n", l.Addr(), os.Getenv("GREETING"))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() == "stats" {
			fmt.Println(`{"allocs":1,"alloc_bytes":2,"heap":3}`)
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "stay" {
		select {}
	}
}
