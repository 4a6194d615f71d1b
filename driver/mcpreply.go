package driver

import (
	"bytes"
	"errors"
	"fmt"

	"toll/lab/record"
)

// An rpcReply is what a JSON-RPC message said, as far as a caller of an MCP tool needs it. Its texts lie where those of a
// noteReply do.
type rpcReply struct {
	version    []byte // jsonrpc
	id         int64
	asked      bool // it has a method: a request or a notification of the server's
	failed     bool // there is an error member, and it is not null
	result     bool // there is a result, and it is an object
	isError    bool
	kind       []byte // resultType
	content    bool   // there is a list of content
	structured bool   // there is a structuredContent, and it is an object
	note       noteReply
	text       []byte // text of structuredContent
	tools      int
	cursor     []byte // nextCursor
}

// rpc decodes one message, as scan does a reply to note.
func (s *noteScanner) rpc(message []byte) (rpcReply, error) {
	s.b, s.i, s.scratch = message, 0, s.scratch[:0]
	var r rpcReply
	fits := true
	if s.space(); s.peek() != '{' {
		if err := s.skip(0); err != nil {
			return r, fmt.Errorf("json at byte %d: %w", s.i, err)
		}
		fits = false
	} else if err := s.message(&r, &fits); err != nil {
		return r, fmt.Errorf("json at byte %d: %w", s.i, err)
	}
	if s.space(); s.i < len(s.b) {
		return r, fmt.Errorf("json at byte %d: %w", s.i, s.unexpected("after the value"))
	}
	if !fits {
		return r, errNoteType
	}
	return r, nil
}

// message reads the object of a message.
func (s *noteScanner) message(r *rpcReply, fits *bool) error {
	return s.members(func(name []byte) (err error) {
		ok := true
		switch string(name) {
		case "jsonrpc":
			ok, err = s.text(&r.version)
		case "id":
			if s.peek() == 'n' {
				return s.skip(1) // of an error before the id was read
			}
			ok, err = s.integer(&r.id)
		case "method":
			r.asked, err = true, s.skip(1)
		case "error":
			r.failed, err = s.peek() != 'n', s.skip(1)
		case "result":
			if r.result = s.peek() == '{'; r.result {
				return s.toolResult(r, fits)
			}
			ok, err = false, s.skip(1)
		default:
			err = s.skip(1)
		}
		*fits = *fits && ok
		return err
	})
}

// toolResult reads the object of a result, of tools/call or of tools/list.
func (s *noteScanner) toolResult(r *rpcReply, fits *bool) error {
	return s.members(func(name []byte) (err error) {
		ok, null := true, s.peek() == 'n'
		switch string(name) {
		case "isError":
			if r.isError = s.peek() == 't'; !r.isError && s.peek() != 'f' {
				ok = null
			}
			err = s.skip(2)
		case "resultType":
			ok, err = s.text(&r.kind)
		case "content":
			r.content, err = s.peek() == '[', s.skip(2)
			ok = r.content
		case "structuredContent":
			if r.structured = s.peek() == '{'; r.structured {
				return s.structure(r, fits)
			}
			ok, err = null, s.skip(2)
		case "tools":
			if ok = s.peek() == '['; ok {
				return s.count(&r.tools)
			}
			err = s.skip(2)
		case "nextCursor":
			if null {
				return s.skip(2)
			}
			ok, err = s.text(&r.cursor)
		default:
			err = s.skip(2)
		}
		*fits = *fits && ok
		return err
	})
}

// structure reads the object of a structuredContent.
func (s *noteScanner) structure(r *rpcReply, fits *bool) error {
	return s.members(func(name []byte) error {
		if string(name) == "text" {
			ok, err := s.text(&r.text)
			*fits = *fits && ok
			return err
		}
		ok, err := s.member(&r.note, name)
		*fits = *fits && ok
		return err
	})
}

// count reads past the array at hand and counts its objects.
func (s *noteScanner) count(n *int) error {
	s.i++
	if s.space(); s.peek() == ']' {
		s.i++
		return nil
	}
	for {
		if s.space(); s.peek() == '{' {
			*n++
		}
		if err := s.skip(3); err != nil {
			return err
		}
		if more, err := s.more(']'); !more {
			return err
		}
	}
}

// check returns nil if r is the successful reply to the call of the given id.
func (r *rpcReply) check(id int64) error {
	switch {
	case string(r.version) != "2.0":
		return bad("no JSON-RPC 2.0 message")
	case r.failed:
		return record.Fail(record.ErrorField, fmt.Errorf("call %d: a JSON-RPC error", id))
	case r.id != id:
		return record.Fail(record.WrongID, fmt.Errorf("call %d: a reply to %d", id, r.id))
	case !r.result:
		return bad("call %d: neither result nor error", id)
	case r.isError:
		return record.Fail(record.ErrorField, fmt.Errorf("call %d: a tool's error: isError is true", id))
	case len(r.kind) > 0 && string(r.kind) != "complete":
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: its result is %q, not complete", id, excerpt(r.kind)))
	}
	return nil
}

// An rpcReader finds the reply in what an HTTP exchange brought. Its memory serves one reply at a time.
type rpcReader struct {
	json   noteScanner
	events eventScanner
}

// read returns the message that answers: the body itself, or the one event of a stream that is a reply. Requests and
// notifications of the server's before it are passed over.
func (p *rpcReader) read(media string, body []byte) (rpcReply, error) {
	switch media {
	case mediaJSON:
		r, err := p.json.rpc(body)
		if err != nil {
			return r, record.Fail(record.BadReply, err)
		}
		if r.asked {
			return r, bad("a request or notification in place of a reply")
		}
		return r, nil
	case mediaEvents:
		return p.readEvents(body)
	}
	return rpcReply{}, bad("a reply that is neither %s nor %s", mediaJSON, mediaEvents)
}

func (p *rpcReader) readEvents(stream []byte) (rpcReply, error) {
	p.events.scan(stream)
	for {
		data, ok := p.events.next()
		if !ok {
			return rpcReply{}, bad("an event stream without a reply: %q", excerpt(stream))
		}
		r, err := p.json.rpc(data)
		if err != nil {
			return r, record.Fail(record.BadReply, fmt.Errorf("event: %w", err))
		}
		if r.asked {
			continue
		}
		if more, ok := p.events.next(); ok {
			return r, bad("an event behind the reply: %q", excerpt(more))
		}
		return r, nil
	}
}

var errNoSession = errors.New("the server keeps no session: its reply to initialize has no Mcp-Session-Id")

// sessionID checks what a server gave as a session's id: visible ASCII (revision 2025-11-25, transports).
func sessionID(b []byte) (string, error) {
	if len(b) == 0 {
		return "", errNoSession
	}
	if len(b) > 1024 || bytes.ContainsFunc(b, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return "", fmt.Errorf("Mcp-Session-Id %q: want visible ASCII", excerpt(b))
	}
	return string(b), nil
}
