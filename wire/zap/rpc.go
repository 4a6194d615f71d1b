package zap

import (
	"encoding/binary"
	"fmt"
)

// ZAP-RPC: a frame is its length, four bytes little-endian that count a direction byte and a message of version 2, the
// direction, and the message. Calls have numbers and share a connection.

const (
	rpcHeader   = 5
	rpcFlags    = 200 << 8
	directionTo = 1 // a request
	directionFr = 2 // a response

	requestSize  = 28
	responseSize = 20
)

// The statuses of an RPC response.
const (
	StatusOK           = 200
	StatusBadRequest   = 400
	StatusUnauthorized = 401
	StatusForbidden    = 403
	StatusNotFound     = 404
	StatusInternal     = 500
)

// An RPCRequest is a call: Method is an ordinal from 1, Promise the call's number, Target the promise that it is made on,
// 0 for none.
type RPCRequest struct {
	Method, Promise, Target uint32
	Capability, Payload     []byte
}

// An RPCResponse answers the call with the same promise.
type RPCResponse struct {
	Status, Promise uint32
	Body            []byte
}

// AppendMessage appends r as a message without its frame.
func (r *RPCRequest) AppendMessage(dst []byte) []byte {
	w := Build(dst, Version2, rpcFlags)
	w.Object(requestSize)
	w.Uint32(0, r.Method)
	w.Uint32(4, r.Promise)
	w.Uint32(8, r.Target)
	w.Bytes(12, r.Capability)
	w.Bytes(20, r.Payload)
	return w.End()
}

// AppendMessage appends r as a message without its frame.
func (r *RPCResponse) AppendMessage(dst []byte) []byte {
	w := Build(dst, Version2, rpcFlags)
	w.Object(responseSize)
	w.Uint32(0, r.Status)
	w.Uint32(4, r.Promise)
	w.Bytes(12, r.Body)
	return w.End()
}

// Append appends r as a frame.
func (r *RPCRequest) Append(dst []byte) []byte {
	at := len(dst)
	return closeRPC(r.AppendMessage(append(dst, 0, 0, 0, 0, directionTo)), at)
}

// Append appends r as a frame.
func (r *RPCResponse) Append(dst []byte) []byte {
	at := len(dst)
	return closeRPC(r.AppendMessage(append(dst, 0, 0, 0, 0, directionFr)), at)
}

func closeRPC(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// Parse reads r from a frame.
func (r *RPCRequest) Parse(frame []byte) error {
	m, err := parseRPC(frame, directionTo)
	if err != nil {
		return err
	}
	o := m.Root()
	r.Method, r.Promise, r.Target = o.Uint32(0), o.Uint32(4), o.Uint32(8)
	r.Capability, r.Payload = o.Bytes(12), o.Bytes(20)
	return o.Err()
}

// Parse reads r from a frame.
func (r *RPCResponse) Parse(frame []byte) error {
	m, err := parseRPC(frame, directionFr)
	if err != nil {
		return err
	}
	o := m.Root()
	r.Status, r.Promise, r.Body = o.Uint32(0), o.Uint32(4), o.Bytes(12)
	return o.Err()
}

func parseRPC(frame []byte, direction byte) (Message, error) {
	if len(frame) < rpcHeader {
		return Message{}, fmt.Errorf("zap: frame of %d bytes: %w", len(frame), ErrTruncated)
	}
	if frame[4] != direction {
		return Message{}, fmt.Errorf("zap: direction %d instead of %d: %w", frame[4], direction, ErrDirection)
	}
	m, err := parseExact(frame[rpcHeader:])
	if err == nil && m.Type() != rpcFlags>>8 {
		err = fmt.Errorf("zap: type %d instead of %d: %w", m.Type(), rpcFlags>>8, ErrType)
	}
	return m, err
}

// An RPCCall is a call to be made with a mux.Conn whose framing is RPCFraming. The connection numbers it. Status and Body
// are the response's; Body is the call's own memory and is used again by the next.
type RPCCall struct {
	RPCRequest
	Status uint32
	Body   []byte
}

// AppendRequest appends the request as the call of that number.
func (c *RPCCall) AppendRequest(dst []byte, id uint32) []byte {
	c.Promise = id
	return c.RPCRequest.Append(dst)
}

// Reply takes the response.
func (c *RPCCall) Reply(frame []byte) error {
	var r RPCResponse
	err := r.Parse(frame)
	c.Status, c.Body = r.Status, append(c.Body[:0], r.Body...)
	return err
}

// RPCFraming is ZAP-RPC as a mux.Framing: Max bounds a frame, MaxMessage when 0.
type RPCFraming struct{ Max int }

// Header returns 4: the length.
func (RPCFraming) Header() int { return 4 }

// Length returns the length of the frame that begins so.
func (f RPCFraming) Length(header []byte) (int, error) {
	n, err := frameLength(binary.LittleEndian.Uint32(header), f.Max, 1+headerSize)
	return 4 + n, err
}

// ID returns the promise that a response frame answers.
func (RPCFraming) ID(frame []byte) (uint32, error) {
	m, err := parseRPC(frame, directionFr)
	if err != nil {
		return 0, err
	}
	o := m.Root()
	return o.Uint32(4), o.Err()
}
