package driver

import "bytes"

// An eventScanner takes a whole event stream (HTML, 9.2.6) apart. It allocates only for an event whose data has several
// lines and is longer than all before it.
type eventScanner struct {
	rest    []byte
	scratch []byte
}

// scan begins at the start of a stream.
func (e *eventScanner) scan(stream []byte) { e.rest = bytes.TrimPrefix(stream, []byte("\ufeff")) }

// next returns the data of the next event that has any and is of the type message. The data of an event that the stream
// breaks off in is dropped, as the standard says.
func (e *eventScanner) next() (data []byte, ok bool) {
	kind, lines := []byte(nil), 0
	for {
		line, more := e.line()
		if !more {
			return nil, false
		}
		if len(line) == 0 {
			if len(data) > 0 && (len(kind) == 0 || string(kind) == "message") {
				return data, true
			}
			data, kind, lines = nil, nil, 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			kind = value
		case "data":
			if lines++; lines == 1 {
				data = value
				continue
			}
			if lines == 2 {
				e.scratch = append(e.scratch[:0], data...)
			}
			e.scratch = append(append(e.scratch, '\n'), value...)
			data = e.scratch
		}
	}
}

// line returns the next line; more is false when the stream ends before its end.
func (e *eventScanner) line() (line []byte, more bool) {
	i := bytes.IndexAny(e.rest, "\r\n")
	if i < 0 {
		e.rest = nil
		return nil, false
	}
	line = e.rest[:i]
	if e.rest[i] == '\r' && i+1 < len(e.rest) && e.rest[i+1] == '\n' {
		i++
	}
	e.rest = e.rest[i+1:]
	return line, true
}
