package receipt

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"toll/wire/jcs"
)

// An Arrival is what is known of a request: never its content.
type Arrival struct {
	RequestID     string // 1 to 128 bytes of UTF-8 without control characters
	RequestHash   string // SHA-256 of the request: 64 lower-case hex digits
	Tenant        string // this and the following: 1 to 64 bytes
	Namespace     string
	PolicyID      string
	PolicyVersion int64 // 0 to 2^53-1
}

// The bounds of an arrival.
const (
	maxID       = 128
	maxName     = 64
	hashDigits  = 64
	MaxArrival  = 16 << 10 // bytes of JSON
	maxNesting  = 32
	MaxBulk     = 1024 // arrivals in one call
	maxEnvelope = 2048 // no arrival within the bounds gives more
)

// check returns the first member that is out of bounds.
func (a *Arrival) check() error {
	for _, f := range [...]struct {
		pointer, value string
		most           int
	}{
		{"/request_id", a.RequestID, maxID}, {"/tenant", a.Tenant, maxName},
		{"/namespace", a.Namespace, maxName}, {"/policy/id", a.PolicyID, maxName},
	} {
		if why := badName(f.value, f.most); why != "" {
			return invalid(f.pointer, "%s", why)
		}
	}
	if !isHash(a.RequestHash) {
		return invalid("/request_hash", "want %d lower-case hex digits", hashDigits)
	}
	if a.PolicyVersion < 0 || a.PolicyVersion > jcs.MaxInt {
		return invalid("/policy/version", "want an integer from 0 to 2^53-1")
	}
	return nil
}

// badName says what is wrong with a name, "" when nothing is.
func badName(s string, most int) string {
	if s == "" {
		return "is empty"
	}
	if len(s) > most {
		return fmt.Sprintf("has %d bytes; at most %d", len(s), most)
	}
	if !isPrintable(s) {
		return badText(s)
	}
	return ""
}

// isPrintable reports whether a text is of the characters from space to tilde, eight at a time: it is asked for every name of
// every request. A wrong no costs time only.
func isPrintable(s string) bool {
	const each = 0x0101010101010101
	for ; len(s) >= 8; s = s[8:] {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if (w|(w-' '*each)|(w+each))&(0x80*each) != 0 { // beyond ASCII, below space, delete
			return false
		}
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// badText is badName of a text beyond ASCII.
func badText(s string) string {
	for _, r := range s {
		if r < ' ' || r >= 0x7F && r < 0xA0 {
			return "has a control character"
		}
	}
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	return ""
}

func isHash(s string) bool {
	if len(s) != hashDigits {
		return false
	}
	bad := byte(0)
	for i := range len(s) {
		bad |= notHex[s[i]]
	}
	return bad == 0
}

// notHex is 0 for the lower-case hex digits.
var notHex = func() (t [256]byte) {
	for c := range t {
		if !strings.ContainsRune("0123456789abcdef", rune(c)) {
			t[c] = 1
		}
	}
	return t
}()

// A parser reads arrivals and keeps its memory. It is not safe for concurrent use.
type parser struct {
	canon jcs.Canonicalizer
	buf   []byte
}

// ParseArrival reads one arrival. Its error is a *[Refusal]: malformed with the byte, or invalid with the member.
func ParseArrival(text []byte) (Arrival, error) {
	var p parser
	return p.parse(text)
}

func (p *parser) parse(text []byte) (a Arrival, err error) {
	p.canon.Limits = jcs.Limits{Bytes: MaxArrival, Depth: maxNesting}
	if p.buf, err = p.canon.Append(p.buf[:0], text); err != nil {
		return a, malformed(err)
	}
	if err := closed(p.buf, "", []field{
		{"namespace", into(&a.Namespace)},
		{"policy", func(v []byte) error {
			return closed(v, "/policy", []field{{"id", into(&a.PolicyID)}, {"version", intoInt(&a.PolicyVersion)}})
		}},
		{"request_hash", into(&a.RequestHash)},
		{"request_id", into(&a.RequestID)},
		{"tenant", into(&a.Tenant)},
	}); err != nil {
		return a, err
	}
	return a, a.check()
}

// A field is a member that an object must have. An error of read is a *Refusal, which has its own pointer, or what is wrong
// with the value.
type field struct {
	name string
	read func(value []byte) error
}

var (
	errWantString = errors.New("want a string")
	errWantInt    = errors.New("want an integer within 2^53-1")
)

func into(to *string) func([]byte) error {
	return func(v []byte) error {
		text, ok := jcs.Text(v)
		if !ok {
			return errWantString
		}
		*to = string(text)
		return nil
	}
}

func intoInt(to *int64) func([]byte) error {
	return func(v []byte) error {
		n, ok := jcs.Int(v)
		if !ok {
			return errWantInt
		}
		*to = n
		return nil
	}
}

// closed reads an object in canonical form that must have exactly the fields, which come in canonical order.
func closed(object []byte, at string, fields []field) error {
	if len(object) == 0 || object[0] != '{' {
		return invalid(at, "want an object")
	}
	i := 0
	for name, value := range jcs.Members(object) {
		text, _ := jcs.Text(name)
		if i == len(fields) || string(text) < fields[i].name {
			return invalid(at+"/"+pointer(text), "there is no such member; the schema is closed")
		}
		if string(text) != fields[i].name {
			return invalid(at+"/"+fields[i].name, "is missing")
		}
		var inner *Refusal
		if err := fields[i].read(value); errors.As(err, &inner) {
			return inner
		} else if err != nil {
			return invalid(at+"/"+fields[i].name, "%v", err)
		}
		i++
	}
	if i < len(fields) {
		return invalid(at+"/"+fields[i].name, "is missing")
	}
	return nil
}

// pointer escapes a name for a JSON pointer (RFC 6901 §3), cut to a bound.
func pointer(name []byte) string {
	if len(name) > maxName {
		name = name[:maxName]
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(string(name), "\uFFFD"))
}
