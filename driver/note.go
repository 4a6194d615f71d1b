package driver

import (
	"fmt"
	"strings"
	"sync/atomic"

	"toll/lab/record"
)

// ids gives every VU of a target its own range of call ids, from a place that the seed decides. They have 16 digits, so
// that requests are of one length, and stay below 2^53, so that any language's JSON keeps them.
type ids struct{ opened atomic.Int64 }

const (
	firstID   = 1e15
	idsPerVU  = 1 << 32
	rangesOfU = 1 << 20 // how many VUs have ranges of their own
)

// next returns the id before the first of a fresh range.
func (r *ids) next(seed uint64) int64 {
	// The finalizer of SplitMix64 spreads neighbouring seeds.
	seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	seed = (seed ^ seed>>27) * 0x94d049bb133111eb
	vu := (seed>>32 + uint64(r.opened.Add(1))) % rangesOfU
	return firstID + int64(vu*idsPerVU)
}

// noteText returns the note of n bytes: printable ASCII that JSON need not escape.
func noteText(n int) string {
	const letters = "the quick brown fox jumps over the lazy dog 0123456789. "
	return strings.Repeat(letters, n/len(letters)+1)[:n]
}

// A noteCall is what one VU asks for and how it judges the answers, whatever client carries them.
type noteCall struct {
	id   int64
	step int64 // 0 keeps the id constant
	note string
}

func (r *REST) noteCall() noteCall {
	if r.ConstantID != 0 {
		return noteCall{r.ConstantID, 0, noteText(r.Note)}
	}
	return noteCall{r.ids.next(r.Seed), 1, noteText(r.Note)}
}

// judge returns nil if a decoded reply answers the call: no error member, the id, the note and the status. Who owns the
// note is the callee's affair.
func (n *noteCall) judge(failed bool, id int64, note, done bool) error {
	switch {
	case failed:
		return record.Fail(record.ErrorField, fmt.Errorf("call %d: an error member under a status that says success", n.id))
	case id != n.id:
		return record.Fail(record.WrongID, fmt.Errorf("call %d: a reply to %d", n.id, id))
	case !note:
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: not the note of %d bytes that was sent", n.id, len(n.note)))
	case !done:
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: status is not %q", n.id, statusDone))
	}
	return nil
}

const statusDone = "done"

// checkStatus fails any status but 2xx.
func checkStatus(status int, body []byte) error {
	if status >= 200 && status < 300 {
		return nil
	}
	return record.Fail(record.Status, fmt.Errorf("status %d: %q", status, excerpt(body)))
}

// NoteReply returns the whole HTTP reply to the call of note with the given id and a note of n bytes, for a null target:
// with [REST].ConstantID set to the id, it passes for an answer.
func NoteReply(id int64, n int) []byte {
	body := appendNote(nil, id, []byte(noteText(n)))
	body = append(body[:len(body)-1], `,"status":"done","owner":"toll"}`...)
	return CannedReply(string(body))
}

// CannedReply is a whole HTTP reply with a JSON body, as a null target gives it.
func CannedReply(body string) []byte {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n%s"
	return fmt.Appendf(nil, head, len(body), body)
}
