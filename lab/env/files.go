package env

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// maxText bounds what is read of one file; /proc/cpuinfo of a large machine is about 1 MB.
const maxText = 4 << 20

// readText returns a file's content without the space around it.
func readText(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	return strings.TrimSpace(string(b)), err
}

// why says in our own words what went wrong with a file.
func why(name string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no /" + name
	case errors.Is(err, fs.ErrPermission):
		return "not allowed to read /" + name
	case errors.Is(err, errMalformed):
		return "not understood: /" + name
	}
	return "/" + name + " can't be read"
}

var errMalformed = errors.New("malformed")

// text reads a file for a field; a file that can't be read or is empty is a miss.
func (r *reader) text(field, name string) string {
	s, err := readText(r.root, name)
	switch {
	case err != nil:
		r.miss(field, why(name, err))
		return ""
	case s == "":
		r.miss(field, "/"+name+" is empty")
	}
	return s
}

// parsed reads a file for a field and parses it; nil is a miss.
func parsed[T any](r *reader, field, name string, parse func(string) (T, error)) *T {
	s := r.text(field, name)
	if s == "" {
		return nil
	}
	v, err := parse(s)
	if err != nil {
		r.miss(field, why(name, err))
		return nil
	}
	return &v
}

// parseSwitch reads the 0 or 1 of a kernel switch.
func parseSwitch(s string) (bool, error) {
	switch s {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("switch %q: %w", s, errMalformed)
}

func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("number %q: %w", s, errMalformed)
	}
	return n, nil
}

// countList counts the members of a kernel list such as "0-3,8".
func countList(s string) (int, error) {
	n := 0
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err := parseInt(from)
		if err != nil {
			return 0, err
		}
		hi, err := parseInt(to)
		if err != nil {
			return 0, err
		}
		if lo < 0 || hi < lo {
			return 0, fmt.Errorf("list %q: %w", s, errMalformed)
		}
		n += hi - lo + 1
	}
	return n, nil
}

// colonLine cuts a line such as "model name : AMD EPYC" of /proc/cpuinfo or /proc/meminfo.
func colonLine(line string) (name, value string) {
	name, value, _ = strings.Cut(line, ":")
	return strings.TrimSpace(name), strings.TrimSpace(value)
}
