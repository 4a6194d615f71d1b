// Command boxed is a contender that a container image is made of for a test.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
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
		switch in.Text() {
		case "stats":
			fmt.Println(`{"allocs":1,"alloc_bytes":2,"heap":3}`)
		case "spin":
			spin(100 * time.Millisecond)
			fmt.Println(`{"spun":true}`)
		case "eat":
			eat(200 << 20)
			fmt.Println(`{"eaten":true}`)
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "stay" {
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		for { // with nobody to wake it, select {} would be the end
			time.Sleep(time.Hour)
		}
	}
}

// spin uses CPU time.
func spin(d time.Duration) {
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for until := used() + d; used() < until; {
	}
}

// eat touches memory.
func eat(bytes int) {
	b := make([]byte, bytes)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Fprintln(os.Stderr, "ate", len(b))
}
