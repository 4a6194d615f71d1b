package mcp

import (
	"unicode/utf8"
)

// A message is one decoded JSON-RPC 2.0 message: a request, a notification or a response. Its bytes are part of what was
// decoded.
type message struct {
	id     []byte // as it came, a string or an integer; nil without one
	method []byte // nil in a response
	params params
	result []byte // of a response
	error  []byte // of a response
}

// params is what the protocol's methods take, whichever. Texts are decoded, other values are raw; nil is absent.
type params struct {
	raw []byte // the whole object, nil without params

	name, uri, cursor, level, state           []byte // texts
	arguments, inputs, ref, argument, context []byte
	notifications, requestID, version         []byte
	capabilities                              []byte // of initialize

	meta meta
}

// meta is the _meta object of a request.
type meta struct {
	there        bool
	progress     []byte // raw: a string or an integer
	version      []byte // text
	capabilities []byte // raw object
	level        []byte // text
}

// Names of the protocol's own members of _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLevel        = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
)

func (m *message) request() bool      { return m.method != nil && m.id != nil }
func (m *message) notification() bool { return m.method != nil && m.id == nil }

// decode reads one message. The error says whether it is no JSON (parse error) or no message (invalid request, invalid
// params); m.id is then set if it could be read.
func (m *message) decode(b []byte) *Error {
	*m = message{}
	if !utf8.Valid(b) {
		return parseError(errUTF8)
	}
	s := scanner{b: b}
	switch s.space() {
	case '{':
	case '[':
		if err := s.skip(1); err != nil {
			return parseError(err)
		}
		return invalidRequest("a batch, which this revision does not have")
	default:
		if err := s.skip(1); err != nil {
			return parseError(err)
		}
		return invalidRequest("a message is an object")
	}
	e := m.envelope(&s)
	if e == nil || e.Code != CodeParseError {
		if err := s.end(); err != nil {
			return parseError(err)
		}
	}
	return e
}

// envelope reads the message's members. It reads on behind one that is wrong: an error that has the request's id is worth
// more, and what is not JSON further on is a parse error.
func (m *message) envelope(s *scanner) (wrong *Error) {
	var seen, jsonrpc, hasMethod bool
	note := func(e *Error) {
		if wrong == nil {
			wrong = e
		}
	}
	var had uint8
	once := func(bit uint8, name string) {
		if had&bit != 0 {
			note(invalidRequest("member " + name + " twice"))
		}
		had |= bit
	}
	for more := s.open('}'); more; {
		key, err := s.key()
		if err != nil {
			return parseError(err)
		}
		start := s.i
		seen = true
		switch string(key) {
		case "jsonrpc":
			once(1, "jsonrpc")
			raw, err := s.value(2)
			if err != nil {
				return parseError(err)
			}
			jsonrpc = string(raw) == `"2.0"`
		case "id":
			once(2, "id")
			raw, err := s.value(2)
			if err != nil {
				return parseError(err)
			}
			if !isID(raw) {
				note(invalidRequest("id is a string or an integer"))
				break
			}
			m.id = raw
		case "method":
			once(4, "method")
			hasMethod = true
			if s.i < len(s.b) && s.b[s.i] == '"' {
				if m.method, err = s.text(); err != nil {
					return parseError(err)
				}
				break
			}
			if err := s.skip(2); err != nil {
				return parseError(err)
			}
			note(invalidRequest("method is a string"))
		case "params":
			once(8, "params")
			e := m.params.decode(s)
			if e != nil && e.Code == CodeParseError {
				return e
			}
			if e != nil {
				note(e)
			}
		case "result":
			if err := s.skip(2); err != nil {
				return parseError(err)
			}
			m.result = s.b[start:s.i]
		case "error":
			if err := s.skip(2); err != nil {
				return parseError(err)
			}
			m.error = s.b[start:s.i]
		default:
			if err := s.skip(2); err != nil {
				return parseError(err)
			}
		}
		if more, err = s.more('}'); err != nil {
			return parseError(err)
		}
	}
	if !seen || !jsonrpc {
		note(invalidRequest(`jsonrpc is "2.0"`))
	}
	if !hasMethod && (m.id == nil || (m.result == nil) == (m.error == nil)) {
		note(invalidRequest("neither a request nor a response"))
	}
	return wrong
}

// isID reports whether raw is a string or an integer.
func isID(raw []byte) bool {
	if len(raw) == 0 || raw[0] == '"' {
		return len(raw) > 0
	}
	for i, c := range raw {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

// decode reads the params of any method.
func (p *params) decode(s *scanner) (wrong *Error) {
	start := s.i
	if s.space() != '{' {
		if err := s.skip(2); err != nil {
			return parseError(err)
		}
		return invalidParams("params is an object")
	}
	var had uint32
	for more := s.open('}'); more; {
		key, err := s.key()
		if err != nil {
			return parseError(err)
		}
		to, bit, kind := p.member(key)
		from := s.i
		switch {
		case kind == isMeta:
			e := p.meta.decode(s)
			if e != nil && e.Code == CodeParseError {
				return e
			}
			if e != nil && wrong == nil {
				wrong = e
			}
		case kind == isText && s.i < len(s.b) && s.b[s.i] == '"':
			if *to, err = s.text(); err != nil {
				return parseError(err)
			}
		default:
			if err := s.skip(3); err != nil {
				return parseError(err)
			}
			switch raw := s.b[from:s.i]; {
			case kind == isText:
				wrong = firstError(wrong, invalidParams(string(key)+" is a string"))
			case kind == isObject && raw[0] != '{':
				wrong = firstError(wrong, invalidParams(string(key)+" is an object"))
			case kind != unknown:
				*to = raw
			}
		}
		if had&bit != 0 {
			wrong = firstError(wrong, invalidParams("member "+string(key)+" twice"))
		}
		had |= bit
		if more, err = s.more('}'); err != nil {
			return parseError(err)
		}
	}
	p.raw = s.b[start:s.i]
	return wrong
}

func firstError(a, b *Error) *Error {
	if a != nil {
		return a
	}
	return b
}

// What a member of params is.
const (
	unknown = iota
	isText
	isObject
	isAny
	isMeta
)

// member says where a member of params goes, which bit marks it as seen and what it must be. A member that belongs to none
// of our methods has no bit and goes nowhere.
func (p *params) member(key []byte) (to *[]byte, bit uint32, kind int) {
	switch string(key) {
	case "name":
		return &p.name, 1, isText
	case "arguments":
		return &p.arguments, 2, isObject
	case "_meta":
		return nil, 4, isMeta
	case "uri":
		return &p.uri, 8, isText
	case "cursor":
		return &p.cursor, 16, isText
	case "level":
		return &p.level, 32, isText
	case "requestState":
		return &p.state, 64, isText
	case "inputResponses":
		return &p.inputs, 128, isObject
	case "ref":
		return &p.ref, 256, isObject
	case "argument":
		return &p.argument, 512, isObject
	case "context":
		return &p.context, 1024, isObject
	case "notifications":
		return &p.notifications, 2048, isObject
	case "requestId":
		return &p.requestID, 4096, isAny
	case "protocolVersion":
		return &p.version, 8192, isText
	case "capabilities":
		return &p.capabilities, 16384, isObject
	}
	return nil, 0, unknown
}

// decode reads a _meta object.
func (m *meta) decode(s *scanner) (wrong *Error) {
	if s.space() != '{' {
		if err := s.skip(3); err != nil {
			return parseError(err)
		}
		return invalidParams("_meta is an object")
	}
	m.there = true
	var had uint8
	for more := s.open('}'); more; {
		key, err := s.key()
		if err != nil {
			return parseError(err)
		}
		raw, err := s.value(4)
		if err != nil {
			return parseError(err)
		}
		bit, e := m.member(key, raw)
		if had&bit != 0 {
			e = invalidParams("member " + string(key) + " twice")
		}
		had |= bit
		wrong = firstError(wrong, e)
		if more, err = s.more('}'); err != nil {
			return parseError(err)
		}
	}
	return wrong
}

func (m *meta) member(key, raw []byte) (bit uint8, wrong *Error) {
	switch string(key) {
	case "progressToken":
		m.progress, bit = raw, 1
		if !isID(raw) {
			m.progress, wrong = nil, invalidParams("progressToken is a string or an integer")
		}
	case metaVersion:
		bit = 2
		m.version, wrong = metaText(key, raw)
	case metaCapabilities:
		m.capabilities, bit = raw, 4
		if raw[0] != '{' {
			m.capabilities, wrong = nil, invalidParams(metaCapabilities+" is an object")
		}
	case metaLevel:
		bit = 8
		m.level, wrong = metaText(key, raw)
	case metaClientInfo:
		bit = 16
		if raw[0] != '{' {
			wrong = invalidParams(metaClientInfo + " is an object")
		}
	}
	return bit, wrong
}

func metaText(key, raw []byte) ([]byte, *Error) {
	if raw[0] != '"' {
		return nil, invalidParams(string(key) + " is a string")
	}
	s := scanner{b: raw}
	t, err := s.text()
	if err != nil {
		return nil, parseError(err)
	}
	return t, nil
}
