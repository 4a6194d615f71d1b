package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"toll/cli"
	"toll/contender/limits"
)

// TestMain makes the test binary toll itself: contenders of ours are started by the path of the running program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"serve", "receipt", "hop-shuttle", "run", "worker"}, os.Args[1]) || os.Getenv(asToll) != "" {
		os.Exit(toll())
	}
	testscript.Main(m, map[string]func(){
		"toll":      func() { os.Exit(toll()) },
		"misbehave": misbehave,
		"site":      site,
	})
}

// asToll makes the test binary toll whatever its arguments are.
const asToll = "TOLL_TEST_AS_TOLL"

func toll() int { return cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":     exits,
			"only":      only,
			"norunning": noRunning,
		},
		Condition:           condition,
		RequireExplicitExec: true,
	})
}

// condition knows [limits]: this machine can hold a process tree to a memory limit.
func condition(cond string) (bool, error) {
	if cond != "limits" {
		return false, fmt.Errorf("condition %s is not known", cond)
	}
	g, err := limits.Open(limits.Limits{Memory: 64 << 20})
	if err != nil {
		return false, nil
	}
	return true, g.Close()
}

// exits runs a command and wants an exit code: exits CODE COMMAND ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var status interface{ ExitCode() int }
	if errors.As(err, &status) {
		code = status.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%v: exit code %d, want %s", args[1:], code, args[0])
	}
}

// only renames the one match of a pattern: only PATTERN NAME. Result folders have the time in their names.
func only(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	if err != nil || len(found) != 1 {
		ts.Fatalf("%s matches %v, want one; %v", args[0], found, err)
	}
	ts.Check(os.Rename(found[0], ts.MkAbs(args[1])))
}

// noRunning fails when a process of this script is left: norunning TEXT, where TEXT stands in its command line. What is
// not Linux has no /proc to look in.
func noRunning(ts *testscript.TestScript, neg bool, args []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range lines {
		text, err := os.ReadFile(f)
		if err == nil && strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), ts.MkAbs(args[0])) {
			ts.Fatalf("left running: %q", text)
		}
	}
}

// misbehave serves POST /v1/note wrongly, in the way that its argument names.
func misbehave() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	how := os.Args[1]
	var hoard [][]byte
	if how == "greedy" {
		eat(&hoard, 512<<20)
	}
	var seen atomic.Int64
	fmt.Printf("{\"ready\":\"http://%s\",\"version\":\"1\"}\n", l.Addr())
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID   int64  `json:"id"`
			Note string `json:"note"`
		}
		json.NewDecoder(r.Body).Decode(&in)
		reply := fmt.Sprintf(`{"id":%d,"note":%q,"status":"done","owner":"x"}`, in.ID, in.Note)
		switch how {
		case "wrong_id":
			reply = strings.Replace(reply, fmt.Sprint(in.ID), fmt.Sprint(in.ID+1), 1)
		case "wrong_content":
			reply = strings.Replace(reply, in.Note, in.Note[1:], 1)
		case "error_field":
			reply = `{"error":{"code":"busy","message":"later"}}`
		case "bad_reply":
			reply = reply[:10]
		case "status":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "sometimes":
			if seen.Add(1)%10 == 0 {
				reply = strings.Replace(reply, in.Note, in.Note[1:], 1)
			}
		case "dies":
			if seen.Add(1) > 50 {
				fmt.Fprintln(os.Stderr, "out of luck")
				os.Exit(7)
			}
		case "hangs":
			if seen.Add(1) > 50 {
				<-r.Context().Done()
			}
		case "hungry":
			if seen.Add(1) > 50 {
				eat(&hoard, 512<<20)
			}
		case "short_body":
			w.Header().Set("Content-Length", fmt.Sprint(len(reply)+5))
		}
		fmt.Fprint(w, reply)
	}))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(`{"heap":1}`)
	}
}

// eat takes so many bytes, and touches each page of them.
func eat(hoard *[][]byte, n int) {
	for range n >> 20 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		*hoard = append(*hoard, b)
	}
}

// site serves GET in the way that its argument names; the first two requests, which are a probe's, are always answered well.
func site() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("{\"ready\":\"http://%s\",\"version\":\"1\"}\n", l.Addr())
	var seen atomic.Int64
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := seen.Add(1)
		switch how := os.Args[1]; {
		case how == "slow":
			<-time.After(3 * time.Millisecond)
		case how == "varying":
			fmt.Fprintf(w, `{"n":%d,"ok":true}`, n)
			return
		case n <= 2:
		case how == "flaky" && n%10 < 3:
			http.Error(w, "no", http.StatusInternalServerError)
			return
		case how == "dies" && n > 40:
			os.Exit(1)
		case how == "never":
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"ok":true}`)
	}))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(`{"heap":1}`)
	}
}
