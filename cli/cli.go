// Package cli holds toll's verbs: it parses the command line, calls the packages that do the work and turns what they say
// into text and an exit code. It measures nothing itself.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"toll/fleet/hub"
)

// The exit codes of every verb.
const (
	exitOK             = 0
	exitMissed         = 1 // a threshold or a gate was missed
	exitUsage          = 2 // bad flags, plan, manifest or document
	exitNotMeasured    = 3 // something that was asked for could not be measured
	exitNotPublishable = 4 // measured, but a rule is broken (run --strict, result check)
)

// An exitError ends the program with a code and, unless it is empty, a message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exit(code int, err error) error { return &exitError{code, err} }

// usage makes an error of the command line, or of a file that a person wrote.
func usage(format string, args ...any) error { return exit(exitUsage, fmt.Errorf(format, args...)) }

// streams are what a verb reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

type grammar struct {
	Run       runCmd       `cmd:"" help:"Measure: run benchmarks or plan files and print an honest table."`
	Load      loadCmd      `cmd:"" help:"Put a load on a URL, or compare two: latency, throughput and how far to trust them."`
	Worker    workerCmd    `cmd:"" help:"Take part in a run that is spread over many machines."`
	Serve     serveCmd     `cmd:"" help:"Serve a reference system until stdin closes or a signal comes."`
	Shuttle   shuttleCmd   `cmd:"" name:"hop-shuttle" hidden:"" help:"Carry packets for a hop with a delay."`
	Contender contenderCmd `cmd:"" help:"List, build, check and run contenders: anyone's systems."`
	Compare   compareCmd   `cmd:"" help:"Say what changed between two results, and gate on it."`
	Report    reportCmd    `cmd:"" help:"Render a result as text, Markdown or CSV."`
	View      viewCmd      `cmd:"" help:"Show a folder of results in a browser: list, trends, reports, comparisons, runs that go on."`
	Audit     auditCmd     `cmd:"" help:"Say what somebody's numbers can mean: a harness' output, a published table, a result."`
	Result    resultCmd    `cmd:"" help:"Check a result document, or set other harnesses' outputs beside it."`
	Receipt   receiptCmd   `cmd:"" help:"Sign, serve, verify and audit receipts of arriving requests."`
	List      listCmd      `cmd:"" help:"List the benchmarks, their cases and contenders."`
	Doctor    doctorCmd    `cmd:"" help:"Try what this machine can show, and say which difference is too small."`
	Env       envCmd       `cmd:"" help:"Show what toll can see of this machine."`
	Version   versionFlag  `help:"Print the version and exit."`
}

// serveGrammar is the part of the grammar that a contender of ours needs. To build the whole takes a fifth of the time in which
// one starts, and a run starts hundreds.
type serveGrammar struct {
	Serve   serveCmd    `cmd:"" help:"Serve a reference system until stdin closes or a signal comes."`
	Version versionFlag `help:"Print the version and exit."`
}

// grammarFor returns what these arguments are parsed by.
func grammarFor(args []string) any {
	if len(args) > 0 && args[0] == "serve" {
		return new(serveGrammar)
	}
	return new(grammar)
}

type versionFlag bool

// BeforeReset prints the version: kong calls it before it validates the rest of the line.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	v := version()
	fmt.Fprintf(app.Stdout, "toll %s %s %s\n", v.Version, v.Commit, v.Go)
	app.Exit(exitOK)
	return nil
}

// exited is thrown by kong's exit hook, so that --help and --version end Main and not the process.
type exited int

// words are what the grammar's help and enumerations are filled in with.
func words() kong.Vars { return kong.Vars{"systems": strings.Join(systems(), ",")} }

// Main runs toll with the arguments behind its name and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exited)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	hub.LeaveUsage()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &streams{stdin, stdout, stderr}
	parser, err := kong.New(grammarFor(args),
		kong.Name("toll"),
		kong.Description("toll measures what an agent pays to call an operation, and says how far the number can be trusted."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(c int) { panic(exited(c)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
		words(),
	)
	if err != nil {
		panic("the command line's grammar: " + err.Error())
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "toll: %v\n", err)
		return exitUsage
	}
	return conclude(stderr, k.Run())
}

// conclude prints err, if it has something to say, and returns its exit code.
func conclude(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(stderr, "toll: %s\n", text)
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitNotMeasured
}
