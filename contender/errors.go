package contender

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	// ErrMissing is for contenders that can't be started because something is not on this machine. Nothing went wrong: it
	// makes a gap with the error's text as its reason.
	ErrMissing = errors.New("missing")

	// ErrNoContainerRuntime is the ErrMissing of an image where neither docker nor podman answers.
	ErrNoContainerRuntime = errors.New("no container runtime")

	// ErrNotReady is for contenders that were started and did not come to be ready.
	ErrNotReady = errors.New("not ready")

	// ErrNoStats is for processes that do not answer the line stats, which outsiders need not.
	ErrNoStats = errors.New("no answer to stats")

	// ErrUnsupported is for figures that this operating system does not give us.
	ErrUnsupported = errors.New("not supported on this system")
)

// A missingError is an ErrMissing whose text is the reason of a gap.
type missingError struct {
	reason string
	kind   error // ErrMissing or ErrNoContainerRuntime
}

func missing(format string, args ...any) error {
	return &missingError{fmt.Sprintf(format, args...), ErrMissing}
}

// Error returns the reason.
func (e *missingError) Error() string { return e.reason }

// Is makes e an ErrMissing of its kind.
func (e *missingError) Is(target error) bool { return target == ErrMissing || target == e.kind }

// A notReadyError is an ErrNotReady that says why.
type notReadyError struct {
	name  string
	cause error
}

// Error returns one sentence.
func (e *notReadyError) Error() string { return e.name + ": " + e.cause.Error() }

// Unwrap returns ErrNotReady and the cause.
func (e *notReadyError) Unwrap() []error { return []error{ErrNotReady, e.cause} }

// A CrashError is a contender that ended by itself, before anybody stopped it.
type CrashError struct {
	Name   string
	Status string // such as "exit status 1" or "signal: killed"
	Stderr string // the end of what it wrote to stderr
}

// Error names the status and the line of stderr that says most.
func (e *CrashError) Error() string {
	return fmt.Sprintf("%s: ended by itself (%s)%s", e.Name, e.Status, lastWords(e.Stderr))
}

// Is makes e an io.EOF for who was talking to the process.
func (e *CrashError) Is(target error) bool { return target == io.EOF }

// A LeakError names the processes that outlived a contender's stop. They have been killed, unless it says otherwise.
type LeakError struct {
	Name      string
	Processes []Leaked
	Surviving bool // not even SIGKILL ended them
}

// Leaked is a process that a contender left running.
type Leaked struct {
	PID     int
	Command string
}

// Error names each process.
func (e *LeakError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: left %d running after it was stopped, killed", e.Name, len(e.Processes))
	if e.Surviving {
		b.WriteString(" in vain")
	}
	for i, p := range e.Processes {
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "pid %d %s", p.PID, quote([]byte(p.Command)))
	}
	return b.String()
}

// maxQuote bounds what an error quotes of a child's output.
const maxQuote = 200

// quote quotes the beginning of what a child said.
func quote(b []byte) string {
	if len(b) > maxQuote {
		return fmt.Sprintf("%q…", b[:maxQuote])
	}
	return fmt.Sprintf("%q", b)
}

// lastWords returns the line of stderr that says most, ready to stand behind a sentence: the last one that begins with
// what looks like the name of an error (Node puts a stack behind it, Go a list of goroutines), else the last one.
func lastWords(stderr string) string {
	telling := regexp.MustCompile(`(?i)^\S*(error|exception|panic|fatal)\b`)
	var last, named []byte
	for line := range bytes.Lines([]byte(stderr)) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		last = line
		if telling.Match(line) {
			named = line
		}
	}
	if named != nil {
		last = named
	}
	if last == nil {
		return ""
	}
	return "; on stderr: " + quote(last)
}
