package driver

import (
	"strconv"
)

// withinText is the name that stands, in a place, for the JSON that a string holds.
const withinText = "@json"

// checkJSON returns what is wrong with a JSON text. What follows its first value is not looked at.
func checkJSON(text []byte) error {
	s := noteScanner{b: text}
	s.space()
	return s.skip(0)
}

// find returns the text of the value at a place within a JSON text that was checked, without decoding what stands
// elsewhere: every reply of a run is looked into. Of two members of one name the last counts, as in encoding/json.
func find(text []byte, place []string) ([]byte, bool) {
	s := noteScanner{b: text}
	s.space()
	for i, name := range place {
		switch s.peek() {
		case '"':
			if name != withinText {
				return nil, false
			}
			s.scratch = make([]byte, 0, len(s.b)-s.i)
			inner, err := s.string()
			if err != nil || checkJSON(inner) != nil {
				return nil, false
			}
			return find(inner, place[i+1:])
		case '{':
			if !s.enterMember(name) {
				return nil, false
			}
		case '[':
			if k, err := strconv.Atoi(name); err != nil || k < 0 || !s.enterElement(k) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	start := s.i
	if s.skip(0) != nil {
		return nil, false
	}
	return s.b[start:s.i], true
}

// enterMember goes to the value of the named member of the object at hand, and reports whether there is one.
func (s *noteScanner) enterMember(name string) bool {
	at := -1
	err := s.members(func(n []byte) error {
		if string(n) == name {
			at = s.i
		}
		return s.skip(1)
	})
	s.i = max(at, 0)
	return err == nil && at >= 0
}

// enterElement goes to an element of the array at hand, and reports whether there is one.
func (s *noteScanner) enterElement(number int) bool {
	s.i++
	if s.space(); s.peek() == ']' {
		return false
	}
	for ; number > 0; number-- {
		if s.space(); s.skip(1) != nil {
			return false
		}
		if more, err := s.more(']'); err != nil || !more {
			return false
		}
	}
	s.space()
	return true
}

// says reports whether a value's text is plainly the wanted one: a string's own text, or a number or a word as JSON. A text
// that is spelled otherwise, or an object or an array, has to be decoded to be sure.
func says(value []byte, want string) bool {
	if len(value) > 0 && value[0] == '"' {
		return string(value[1:len(value)-1]) == want && plainEnd(value, 1) == len(value)-1
	}
	return string(value) == want && value[0] != '{' && value[0] != '['
}
