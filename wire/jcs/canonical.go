package jcs

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits bound a document; each zero value means its default.
type Limits struct {
	Bytes int // 16 MiB
	Depth int // objects and arrays within one another: 1000
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 16 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 1000
	}
	return l
}

// Append appends the canonical form of src to dst. Its error is an *[Error], and then dst is as it was.
func Append(dst, src []byte, limits Limits) ([]byte, error) {
	var c Canonicalizer
	c.Limits = limits
	return c.Append(dst, src)
}

// A Canonicalizer keeps its working memory from document to document. It is not safe for concurrent use.
type Canonicalizer struct {
	Limits Limits

	src   []byte
	at    int
	text  []byte // canonical scalars and names, in the order of the document
	names []byte // names with their escapes resolved
	nodes []node
	sort  []int32
	limit Limits
}

// A node is a value; the members or elements of a container are a list.
type node struct {
	kind        byte // '{', '[' or 0 for a scalar
	first, next int32
	text        span // of a scalar
	quoted      span // of the name of a member, in text
	name        span // the same in names
	offset      int  // of the name in the document
}

type span struct{ from, to int }

// Append appends the canonical form of src to dst. Its error is an *[Error], and then dst is as it was. The time it takes
// grows with the size of src, whatever the nesting, but for the sorting of names.
func (c *Canonicalizer) Append(dst, src []byte) ([]byte, error) {
	c.src, c.at, c.limit = src, 0, c.Limits.withDefaults()
	c.text, c.names, c.nodes = c.text[:0], c.names[:0], c.nodes[:0]
	defer func() { c.src = nil }()
	if len(src) > c.limit.Bytes {
		return dst, fail(TooLarge, c.limit.Bytes)
	}
	if bytes.HasPrefix(src, []byte("\xEF\xBB\xBF")) {
		return dst, fail(BOM, 0)
	}
	c.space()
	if c.at == len(src) {
		return dst, fail(Empty, c.at)
	}
	root, err := c.value(0)
	if err != nil {
		return dst, err
	}
	if c.space(); c.at < len(src) {
		return dst, fail(Trailing, c.at)
	}
	return c.emit(dst, root), nil
}

func (c *Canonicalizer) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// peek returns the next byte that is no space, or an error at the end.
func (c *Canonicalizer) peek() (byte, error) {
	if c.space(); c.at == len(c.src) {
		return 0, fail(UnexpectedEnd, c.at)
	}
	return c.src[c.at], nil
}

func (c *Canonicalizer) add(n node) int32 {
	c.nodes = append(c.nodes, n)
	return int32(len(c.nodes) - 1)
}

func (c *Canonicalizer) value(depth int) (int32, error) {
	b, err := c.peek()
	if err != nil {
		return 0, err
	}
	if (b == '{' || b == '[') && depth >= c.limit.Depth {
		return 0, fail(TooDeep, c.at)
	}
	from := len(c.text)
	switch {
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.array(depth)
	case b == '"':
		err = c.string(false)
	case b == '-' || b >= '0' && b <= '9' || b == '+' || b == '.':
		err = c.number()
	default:
		err = c.literal()
	}
	return c.add(node{first: -1, next: -1, text: span{from, len(c.text)}}), err
}

func (c *Canonicalizer) literal() error {
	for _, word := range [...]string{"null", "true", "false"} {
		rest := c.src[c.at:]
		n := 0
		for n < len(word) && n < len(rest) && rest[n] == word[n] {
			n++
		}
		switch {
		case n == len(word):
			c.text = append(c.text, word...)
			c.at += n
			return nil
		case n > 0 && n == len(rest):
			return fail(UnexpectedEnd, len(c.src))
		case n > 0:
			return fail(Syntax, c.at+n)
		}
	}
	return fail(Syntax, c.at)
}

func (c *Canonicalizer) array(depth int) (int32, error) {
	self, last := c.add(node{kind: '[', first: -1, next: -1}), int32(-1)
	c.at++
	for {
		b, err := c.peek()
		switch {
		case err != nil:
			return 0, err
		case b == ']' && last < 0:
			c.at++
			return self, nil
		}
		v, err := c.value(depth + 1)
		if err != nil {
			return 0, err
		}
		c.link(self, &last, v)
		if more, err := c.more(']'); err != nil || !more {
			return self, err
		}
	}
}

// link puts v behind last, the last of self's list.
func (c *Canonicalizer) link(self int32, last *int32, v int32) {
	if *last < 0 {
		c.nodes[self].first = v
	} else {
		c.nodes[*last].next = v
	}
	*last = v
}

// more consumes a comma, or the end of a container.
func (c *Canonicalizer) more(end byte) (bool, error) {
	b, err := c.peek()
	switch {
	case err != nil:
		return false, err
	case b == ',':
		c.at++
		return true, nil
	case b == end:
		c.at++
		return false, nil
	}
	return false, fail(Syntax, c.at)
}

func (c *Canonicalizer) object(depth int) (int32, error) {
	self, last := c.add(node{kind: '{', first: -1, next: -1}), int32(-1)
	c.at++
	sorted := true
	for {
		b, err := c.peek()
		switch {
		case err != nil:
			return 0, err
		case b == '}' && last < 0:
			c.at++
			return self, nil
		case b != '"':
			return 0, fail(Syntax, c.at)
		}
		v, err := c.member(depth)
		if err != nil {
			return 0, err
		}
		sorted = sorted && (last < 0 || compare(c.nameOf(last), c.nameOf(v)) < 0)
		c.link(self, &last, v)
		more, err := c.more('}')
		if err != nil {
			return 0, err
		}
		if !more {
			break
		}
	}
	if sorted {
		return self, nil
	}
	return self, c.arrange(self)
}

// member reads a name and its value.
func (c *Canonicalizer) member(depth int) (int32, error) {
	m := node{offset: c.at}
	m.quoted.from, m.name.from = len(c.text), len(c.names)
	if err := c.string(true); err != nil {
		return 0, err
	}
	m.quoted.to, m.name.to = len(c.text), len(c.names)
	b, err := c.peek()
	switch {
	case err != nil:
		return 0, err
	case b != ':':
		return 0, fail(Syntax, c.at)
	}
	c.at++
	v, err := c.value(depth + 1)
	if err != nil {
		return 0, err
	}
	n := &c.nodes[v]
	n.quoted, n.name, n.offset = m.quoted, m.name, m.offset
	return v, nil
}

func (c *Canonicalizer) nameOf(n int32) []byte {
	s := c.nodes[n].name
	return c.names[s.from:s.to]
}

// arrange sorts the members of self. Two of one name are an error at the second of them that comes first in the document.
func (c *Canonicalizer) arrange(self int32) error {
	all := c.sort[:0]
	for m := c.nodes[self].first; m >= 0; m = c.nodes[m].next {
		all = append(all, m)
	}
	c.sort = all
	slices.SortStableFunc(all, func(a, b int32) int { return compare(c.nameOf(a), c.nameOf(b)) })
	twice := -1
	for i, m := range all {
		c.nodes[m].next = -1
		if i == 0 {
			c.nodes[self].first = m
			continue
		}
		c.nodes[all[i-1]].next = m
		if at := c.nodes[m].offset; bytes.Equal(c.nameOf(all[i-1]), c.nameOf(m)) && (twice < 0 || at < twice) {
			twice = at
		}
	}
	if twice >= 0 {
		return fail(DuplicateName, twice)
	}
	return nil
}

// string reads a string into text in canonical form, and into names without escapes if it is a name.
func (c *Canonicalizer) string(name bool) error {
	c.at++
	c.text = append(c.text, '"')
	for {
		from := c.at
		for c.at < len(c.src) {
			b := c.src[c.at]
			if b == '"' || b == '\\' || b < ' ' {
				break
			}
			if b < utf8.RuneSelf {
				c.at++
				continue
			}
			r, n := utf8.DecodeRune(c.src[c.at:])
			if r == utf8.RuneError && n == 1 {
				return fail(BadUTF8, c.at)
			}
			c.at += n
		}
		c.text = append(c.text, c.src[from:c.at]...)
		if name {
			c.names = append(c.names, c.src[from:c.at]...)
		}
		switch {
		case c.at == len(c.src):
			return fail(UnexpectedEnd, c.at)
		case c.src[c.at] == '"':
			c.at++
			c.text = append(c.text, '"')
			return nil
		case c.src[c.at] < ' ':
			return fail(ControlChar, c.at)
		}
		r, err := c.escape()
		if err != nil {
			return err
		}
		if r < utf8.RuneSelf && (r < ' ' || r == '"' || r == '\\') {
			c.text = appendEscape(c.text, byte(r))
		} else {
			c.text = utf8.AppendRune(c.text, r)
		}
		if name {
			c.names = utf8.AppendRune(c.names, r)
		}
	}
}

// escape reads an escape, both halves of a surrogate pair at once.
func (c *Canonicalizer) escape() (rune, error) {
	at := c.at
	if at+1 == len(c.src) {
		return 0, fail(UnexpectedEnd, len(c.src))
	}
	c.at += 2
	switch b := c.src[at+1]; b {
	case '"', '\\', '/':
		return rune(b), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, fail(BadEscape, at)
	}
	r, err := c.hex4(at)
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if r >= 0xDC00 || !bytes.HasPrefix(c.src[c.at:], []byte(`\u`)) {
		return 0, fail(LoneSurrogate, at)
	}
	second := c.at
	c.at += 2
	low, err := c.hex4(second)
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, fail(LoneSurrogate, at)
	}
	return r, nil
}

// hex4 reads the four digits of the escape that starts at esc.
func (c *Canonicalizer) hex4(esc int) (r rune, err error) {
	for range 4 {
		if c.at == len(c.src) {
			return 0, fail(UnexpectedEnd, c.at)
		}
		b := c.src[c.at]
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b >= 'a' && b <= 'f':
			b -= 'a' - 10
		case b >= 'A' && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, fail(BadEscape, esc)
		}
		r = r<<4 | rune(b)
		c.at++
	}
	return r, nil
}

// number reads a number by the grammar of RFC 8259 §6. Every run of bytes that looks like one is taken, so that 01 and 1_0
// are numbers with a wrong byte rather than two values.
func (c *Canonicalizer) number() error {
	from := c.at
	digits := func() int {
		n := c.at
		for c.at < len(c.src) && c.src[c.at] >= '0' && c.src[c.at] <= '9' {
			c.at++
		}
		return c.at - n
	}
	at := func(set string) bool { return c.at < len(c.src) && bytes.IndexByte([]byte(set), c.src[c.at]) >= 0 }
	if at("-") {
		c.at++
	}
	first := c.at
	if n := digits(); n == 0 {
		return c.noDigit()
	} else if n > 1 && c.src[first] == '0' {
		return fail(BadNumber, first)
	}
	if at(".") {
		c.at++
		if digits() == 0 {
			return c.noDigit()
		}
	}
	if at("eE") {
		c.at++
		if at("+-") {
			c.at++
		}
		if digits() == 0 {
			return c.noDigit()
		}
	}
	if c.at < len(c.src) && !at(" \t\n\r,]}") {
		return fail(BadNumber, c.at)
	}
	return c.float(c.src[from:c.at], from)
}

// noDigit is a number that lacks a digit where it stands.
func (c *Canonicalizer) noDigit() error {
	if c.at == len(c.src) {
		return fail(UnexpectedEnd, c.at)
	}
	return fail(BadNumber, c.at)
}

func (c *Canonicalizer) float(text []byte, from int) error {
	if len(text) <= 15 && isPlain(text) { // an integer that a float64 holds and prints as it stands
		c.text = append(c.text, text...)
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fail(NumberRange, from)
	}
	c.text, err = AppendFloat(c.text, f)
	return err
}

// isPlain reports whether a number is digits alone.
func isPlain(text []byte) bool {
	for _, b := range text {
		if b < '0' || b > '9' {
			return false
		}
	}
	return true
}

// emit appends a value. Its recursion is bounded by Limits.Depth.
func (c *Canonicalizer) emit(dst []byte, at int32) []byte {
	n := &c.nodes[at]
	if n.kind == 0 {
		return append(dst, c.text[n.text.from:n.text.to]...)
	}
	dst = append(dst, n.kind)
	for i := n.first; i >= 0; {
		child := &c.nodes[i]
		if n.kind == '{' {
			dst = append(append(dst, c.text[child.quoted.from:child.quoted.to]...), ':')
		}
		dst = c.emit(dst, i)
		if i = child.next; i >= 0 {
			dst = append(dst, ',')
		}
	}
	return append(dst, n.kind+2) // { } and [ ] are two apart
}
