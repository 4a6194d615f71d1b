package contender_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"toll/contender"
)

// actName makes the test binary play a contender when it is in the environment.
const actName = "CONTENDER_TEST_ACT"

func TestMain(m *testing.M) {
	name := os.Getenv(actName)
	if name == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0") // else each act takes a second to end
		os.Exit(m.Run())
	}
	os.Unsetenv(actName)
	act, ok := acts()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no act %q\n", name)
		os.Exit(2)
	}
	act()
}

// spec is the test binary in one of its acts.
func spec(t *testing.T, act string, args ...string) contender.Spec {
	t.Helper()
	return contender.Spec{
		Name:    act,
		Command: append([]string{testBinary(t)}, args...),
		Env:     []string{actName + "=" + act, "CONTENDER_TEST=" + rand.Text()},
	}
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func acts() map[string]func() {
	return map[string]func(){
		"good": func() { serve(listen(), answer) },
		"crash": func() {
			fmt.Fprintln(os.Stderr, "Error: no configuration\n    at main (app.js:1)\n\nNode.js v99")
			os.Exit(3)
		},
		"hungry": func() {
			serve(listen(), func(string) string {
				hoard := make([]byte, 200<<20)
				for i := range hoard {
					hoard[i] = byte(i)
				}
				return string(hoard[:1])
			})
		},
		"silent":  forever,
		"rubbish": func() { fmt.Println("Listening on port 80"); forever() },
		"huge":    func() { fmt.Println(strings.Repeat("x", 3<<20)); forever() },
		"zero":    func() { announce("http://127.0.0.1:0"); forever() },
		"empty":   func() { fmt.Println("{}"); forever() },
		"closed":  func() { os.Stdout.Close(); forever() },
		"brief":   func() { announce("tcp://127.0.0.1:1"); os.Exit(0) },
		"mute":    func() { serve(listen(), func(string) string { return "" }) },
		"slow": func() {
			serve(listen(), func(q string) string {
				if q == "stats" {
					<-time.After(300 * time.Millisecond)
				}
				return answer(q)
			})
		},
		"dies": func() {
			serve(listen(), func(q string) string {
				if q == "stats" {
					return answer(q)
				}
				fmt.Fprintln(os.Stderr, "panic: the end")
				os.Exit(7)
				return ""
			})
		},
		"chatty": func() {
			serve(listen(), func(q string) string {
				fmt.Println("GET / 200\n" + `{"level":"info"}`)
				return answer(q)
			})
		},
		"flood": func() {
			announce(listen())
			for range 2000 {
				fmt.Println(strings.Repeat("o", 4000))
				fmt.Fprintln(os.Stderr, strings.Repeat("e", 4000))
			}
			converse(answer)
		},
		"long": func() {
			serve(listen(), func(string) string { return `{"id":1,"x":"` + strings.Repeat("y", 3<<20) + `"}` })
		},
		"stubborn": func() { signal.Ignore(syscall.SIGTERM); announce(listen()); forever() },
		"termed":   func() { announce(listen()); forever() },
		"deaf":     func() { announce("stdio:"); forever() },
		"burns":    func() { serve("stdio:", burn) },
		"http":     serveHTTP,
		"mcp": func() {
			converse(func(q string) string {
				fmt.Println("a log line")
				if strings.Contains(q, "ping") {
					return `{"jsonrpc":"2.0","id":0,"result":{}}`
				}
				return answer(q)
			})
		},
		"late": func() {
			fmt.Fprintln(os.Stderr, "starting")
			fmt.Fprintln(os.Stderr, "ready, listening on it")
			forever()
		},
		"family":   func() { stdin := runChild("good", nil); serve("stdio:", answer); stdin.Close() },
		"orphan":   forever,
		"middle":   func() { runChild("orphan", detached()) },
		"leaks":    func() { middle(); serve("stdio:", answer) },
		"leaves":   func() { runChild("orphan", nil); serve("stdio:", answer) },
		"bares":    func() { runBare(); serve("stdio:", answer) },
		"crashing": func() { middle(); fmt.Fprintln(os.Stderr, "no luck"); os.Exit(4) },
		"toll":     actToll,
	}
}

func forever() { <-time.After(time.Hour) }

func listen() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, http.NotFoundHandler())
	return "tcp://" + l.Addr().String()
}

func announce(addr string) {
	fmt.Printf(`{"ready":%q,"version":"1.2","name":"act","language":"go","sdk":"none","gomaxprocs":%d,"extra":[1]}`+"\n", addr, runtime.GOMAXPROCS(0))
}

// serve keeps the contract.
func serve(addr string, answer func(string) string) {
	announce(addr)
	converse(answer)
}

func converse(answer func(string) string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if a := answer(in.Text()); a != "" {
			fmt.Println(a)
		}
	}
}

func answer(q string) string {
	if q == "stats" {
		return `{"allocs":11,"alloc_bytes":1100,"heap":100,"gc":1,"gomaxprocs":2}`
	}
	return `{"id":7,"heap":1,"asked":` + q + `}`
}

// burn uses as many milliseconds of CPU time as it is told to, here or in a child that has ended by the time of the answer.
func burn(q string) string {
	var n struct {
		Here, Child int
	}
	json.Unmarshal([]byte(q), &n)
	if n.Child > 0 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), actName+"=burns")
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"here":%d}`, n.Child))
		if err := cmd.Run(); err != nil {
			panic(err)
		}
	}
	for until := used() + time.Duration(n.Here)*time.Millisecond; used() < until; {
	}
	return answer("1")
}

func serveHTTP() {
	fmt.Println("this is no ready line")
	http.HandleFunc("/up", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up") })
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
	os.Exit(1)
}

// runChild returns the child's stdin.
func runChild(act string, attr *syscall.SysProcAttr) io.Closer {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actName+"="+act)
	cmd.SysProcAttr = attr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		panic(err)
	}
	return stdin
}

// middle starts a process that starts an orphan and ends, so that the orphan belongs to nobody.
func middle() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actName+"=middle")
	cmd.SysProcAttr = detached()
	if err := cmd.Run(); err != nil {
		panic(err)
	}
}

// runBare starts a process in its own session whose environment says nothing.
func runBare() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{actName + "=orphan"}
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// actToll is a program that uses contender: it starts a child that only a signal ends, and says its pid.
func actToll() {
	p, err := contender.Start(context.Background(), contender.Spec{
		Name: "child", Command: []string{os.Args[0]}, Env: []string{actName + "=stubborn"},
	})
	if err != nil {
		panic(err)
	}
	u, err := p.Usage()
	if err != nil {
		panic(err)
	}
	announce("stdio:")
	converse(func(string) string { return fmt.Sprintf(`{"id":%d}`, u.PIDs[0]) })
}

// cannot skips a test that needs what this machine does not have. CI sets TOLL_RUN_ALL, and there it is a failure.
func cannot(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("TOLL_RUN_ALL") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
