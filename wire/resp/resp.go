package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Bounds of a reply.
const (
	maxBulk  = 8 << 20 // bytes of one text
	maxItems = 1 << 20 // of one array
	maxDepth = 8       // arrays within arrays
	maxLine  = 64 << 10
)

// A Value is one reply: a text, a whole number or a list of values. Null is a text or a list that is not there.
type Value struct {
	Text string
	Int  int64
	List []Value
	Null bool
}

// An Error is a reply that is an error of the server's.
type Error string

// Error returns what the server said.
func (e Error) Error() string { return "the server says: " + string(e) }

// AppendCommand appends a command's words to dst as the array of texts that a server takes.
func AppendCommand(dst []byte, words ...string) []byte {
	dst = strconv.AppendInt(append(dst, '*'), int64(len(words)), 10)
	dst = append(dst, "\r\n"...)
	for _, w := range words {
		dst = strconv.AppendInt(append(dst, '$'), int64(len(w)), 10)
		dst = append(append(append(dst, "\r\n"...), w...), "\r\n"...)
	}
	return dst
}

// Read reads one reply. Its error is an Error when that is what the server replied; after any other the connection is of no
// use.
func Read(r *bufio.Reader) (Value, error) {
	v, err := read(r, 0)
	if _, said := errors.AsType[Error](err); err != nil && !said {
		return v, fmt.Errorf("reply: %w", err)
	}
	return v, err
}

func read(r *bufio.Reader, depth int) (Value, error) {
	line, err := readLine(r)
	if err != nil {
		return Value{}, err
	}
	rest := string(line[1:])
	switch line[0] {
	case '+':
		return Value{Text: rest}, nil
	case '-':
		return Value{}, Error(rest)
	case ':':
		n, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			return Value{}, fmt.Errorf("%.40q is no whole number", rest)
		}
		return Value{Int: n}, nil
	case '$':
		return readText(r, rest)
	case '*':
		return readList(r, rest, depth)
	}
	return Value{}, fmt.Errorf("begins with %.40q, which is no type of version 2", line)
}

// readLine reads to the next CRLF; the line is not empty.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("a line of more than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, broken(err, len(line) > 0)
		}
		break
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("the line %.40q has no type or does not end in CRLF", line)
	}
	return line[:len(line)-2], nil
}

// broken makes an end within a reply an unexpected one.
func broken(err error, begun bool) error {
	if begun && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// length parses a length, of which -1 says that nothing is there.
func length(text, what string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > most {
		return 0, fmt.Errorf("%.40q is no length of %s, up to %d", text, what, most)
	}
	return n, nil
}

func readText(r *bufio.Reader, size string) (Value, error) {
	n, err := length(size, "a text", maxBulk)
	if err != nil || n < 0 {
		return Value{Null: true}, err
	}
	buf := make([]byte, min(n+2, 64<<10))
	var text []byte
	for left := n + 2; left > 0; { // room is made as bytes arrive
		k := min(left, len(buf))
		if _, err := io.ReadFull(r, buf[:k]); err != nil {
			return Value{}, broken(err, true)
		}
		if left == k && len(text) == 0 {
			text = buf[:k]
		} else {
			text = append(text, buf[:k]...)
		}
		left -= k
	}
	if string(text[n:]) != "\r\n" {
		return Value{}, errors.New("a text that is longer than it says")
	}
	return Value{Text: string(text[:n])}, nil
}

func readList(r *bufio.Reader, size string, depth int) (Value, error) {
	n, err := length(size, "a list", maxItems)
	if err != nil || n < 0 {
		return Value{Null: true}, err
	}
	if depth == maxDepth {
		return Value{}, fmt.Errorf("lists within lists, more than %d deep", maxDepth)
	}
	v := Value{List: make([]Value, 0, min(n, 1024))}
	var failed error // an element that is an error does not end the list
	for range n {
		e, err := read(r, depth+1)
		if _, said := errors.AsType[Error](err); said {
			failed = errors.Join(failed, err)
		} else if err != nil {
			return Value{}, broken(err, true)
		}
		v.List = append(v.List, e)
	}
	return v, failed
}
