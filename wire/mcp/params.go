package mcp

import "toll/wire/plain"

// params is what the protocol's methods take, whichever. Texts are decoded, other values are raw; nil is absent.
type params struct {
	name, uri, cursor, level, state           []byte // texts
	arguments, inputs, ref, argument, context []byte
	notifications, requestID, version         []byte
	capabilities                              []byte // of initialize

	meta meta
}

// meta is the _meta object of a request.
type meta struct {
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

// decode reads the params of any method. wrong is what is wrong with them although they are JSON.
func (p *params) decode(s *plain.Scanner) (wrong *Error, err error) {
	if s.Space() != '{' {
		return invalidParams("params is an object"), s.Skip(2)
	}
	var had uint32
	for more := s.Open('}'); more; {
		key, err := s.Key()
		if err != nil {
			return nil, err
		}
		to, bit, kind := p.member(key)
		bad, err := p.value(s, key, to, kind)
		if err != nil {
			return nil, err
		}
		if had&bit != 0 {
			bad = invalidParams("member " + string(key) + " twice")
		}
		had |= bit
		wrong = firstError(wrong, bad)
		if more, err = s.More('}'); err != nil {
			return nil, err
		}
	}
	return wrong, nil
}

// value reads the value of a member to where it belongs, if it is of its kind.
func (p *params) value(s *plain.Scanner, key []byte, to *[]byte, kind int) (wrong *Error, err error) {
	switch {
	case kind == isMeta:
		return p.meta.decode(s)
	case kind == isText && s.I < len(s.B) && s.B[s.I] == '"':
		*to, err = s.Text()
		return nil, err
	}
	raw, err := s.Value(3)
	switch {
	case err != nil:
	case kind == isText:
		wrong = invalidParams(string(key) + " is a string")
	case kind == isObject && raw[0] != '{':
		wrong = invalidParams(string(key) + " is an object")
	case kind != unknown:
		*to = raw
	}
	return wrong, err
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
func (m *meta) decode(s *plain.Scanner) (wrong *Error, err error) {
	if s.Space() != '{' {
		return invalidParams("_meta is an object"), s.Skip(3)
	}
	var had uint8
	for more := s.Open('}'); more; {
		key, err := s.Key()
		if err != nil {
			return nil, err
		}
		raw, err := s.Value(4)
		if err != nil {
			return nil, err
		}
		bit, bad := m.member(key, raw)
		if had&bit != 0 {
			bad = invalidParams("member " + string(key) + " twice")
		}
		had |= bit
		wrong = firstError(wrong, bad)
		if more, err = s.More('}'); err != nil {
			return nil, err
		}
	}
	return wrong, nil
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
	s := plain.Scanner{B: raw}
	t, err := s.Text()
	if err != nil {
		return nil, parseError(err)
	}
	return t, nil
}
