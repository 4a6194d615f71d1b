package receipt

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The frame protocol of the unix sockets. A request is
//
//	length u32, of all that follows | call u32 | operation u8 | body
//
// and a reply is
//
//	length u32 | call u32 | status u16, as HTTP's | body
//
// with numbers big-endian. Replies come in any order. wire/mux multiplexes a connection's calls.
const (
	opSign     = 1 // an arrival in JSON: 201 and the receipt
	opAccept   = 2 // the same: 202, and the receipt follows
	opNotarize = 3 // a group's record payload: 200 and the checkpoint's signature
)

const (
	frameHead = 4 + 4 + 1
	replyHead = 4 + 4 + 2
	maxFrame  = maxRecord + frameHead
)

// framing tells mux where frames end.
type framing struct{ most int }

// Header is the length's own bytes.
func (framing) Header() int { return 4 }

// Length is that of the whole frame.
func (f framing) Length(head []byte) (int, error) {
	n := int(binary.BigEndian.Uint32(head))
	if n < frameHead-4 || n > f.most-4 {
		return 0, fmt.Errorf("a frame of %d bytes; want %d to %d", n, frameHead-4, f.most-4)
	}
	return 4 + n, nil
}

var errFrame = errors.New("a frame is too short to be a reply")

// ID is the number of the call that a reply answers.
func (framing) ID(frame []byte) (uint32, error) {
	if len(frame) < replyHead {
		return 0, errFrame
	}
	return binary.BigEndian.Uint32(frame[4:]), nil
}

// appendRequest appends a request.
func appendRequest(dst []byte, id uint32, op byte, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(frameHead-4+len(body)))
	dst = append(binary.BigEndian.AppendUint32(dst, id), op)
	return append(dst, body...)
}

// appendReply appends the reply to a request.
func appendReply(dst, request []byte, status int, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(replyHead-4+len(body)))
	dst = append(dst, request[4:8]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(status))
	return append(dst, body...)
}

// An exchange is one call of a client.
type exchange struct {
	op     byte
	body   []byte
	status int
	reply  []byte
}

// AppendRequest is called by mux.
func (x *exchange) AppendRequest(dst []byte, id uint32) []byte {
	return appendRequest(dst, id, x.op, x.body)
}

// Reply keeps a copy of the reply.
func (x *exchange) Reply(frame []byte) error {
	x.status = int(binary.BigEndian.Uint16(frame[8:]))
	x.reply = append(x.reply[:0], frame[replyHead:]...)
	return nil
}
