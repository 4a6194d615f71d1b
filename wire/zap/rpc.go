package zap

import (
	"encoding/binary"
	"errors"
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
	w := begin(dst, Version2, rpcFlags)
	w.object(requestSize)
	binary.LittleEndian.PutUint32(w.at(0), r.Method)
	binary.LittleEndian.PutUint32(w.at(4), r.Promise)
	binary.LittleEndian.PutUint32(w.at(8), r.Target)
	w.slot(12, r.Capability)
	w.slot(20, r.Payload)
	return w.end()
}

// AppendMessage appends r as a message without its frame.
func (r *RPCResponse) AppendMessage(dst []byte) []byte {
	w := begin(dst, Version2, rpcFlags)
	w.object(responseSize)
	binary.LittleEndian.PutUint32(w.at(0), r.Status)
	binary.LittleEndian.PutUint32(w.at(4), r.Promise)
	w.slot(12, r.Body)
	return w.end()
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
func (r *RPCRequest) Parse(frame []byte) (err error) {
	m, err := parseRPC(frame, directionTo)
	if err != nil {
		return err
	}
	b, err := m.fixed(0, 12)
	if err != nil {
		return err
	}
	r.Method, r.Promise, r.Target = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	if r.Capability, err = m.bytes(12); err != nil {
		return err
	}
	r.Payload, err = m.bytes(20)
	return err
}

// Parse reads r from a frame.
func (r *RPCResponse) Parse(frame []byte) (err error) {
	m, err := parseRPC(frame, directionFr)
	if err != nil {
		return err
	}
	b, err := m.fixed(0, 8)
	if err != nil {
		return err
	}
	r.Status, r.Promise = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	r.Body, err = m.bytes(12)
	return err
}

var errDirection = errors.New("unexpected direction")

func parseRPC(frame []byte, direction byte) (Message, error) {
	if len(frame) < rpcHeader {
		return Message{}, fmt.Errorf("zap: frame of %d bytes: %w", len(frame), ErrTruncated)
	}
	if frame[4] != direction {
		return Message{}, fmt.Errorf("zap: direction %d instead of %d: %w", frame[4], direction, errDirection)
	}
	m, err := Parse(frame[rpcHeader:])
	switch {
	case err != nil:
		return m, err
	case len(m.b) != len(frame)-rpcHeader:
		return m, fmt.Errorf("zap: message of %d bytes in a frame of %d: %w", len(m.b), len(frame)-rpcHeader, ErrSize)
	case m.Type() != rpcFlags>>8:
		return m, fmt.Errorf("zap: type %d instead of %d: %w", m.Type(), rpcFlags>>8, ErrType)
	}
	return m, nil
}

// RPCFraming is ZAP-RPC as a mux.Framing: Max bounds a frame, MaxMessage when 0.
type RPCFraming struct{ Max int }

// Header returns 4: the length.
func (RPCFraming) Header() int { return 4 }

// Length returns the length of the frame that begins so.
func (f RPCFraming) Length(header []byte) (int, error) {
	limit := uint32(f.Max)
	if f.Max <= 0 || f.Max > MaxMessage {
		limit = MaxMessage
	}
	n := binary.LittleEndian.Uint32(header)
	switch {
	case n > limit:
		return 0, fmt.Errorf("zap: frame of %d bytes, at most %d: %w", n, limit, ErrTooLarge)
	case n < 1+headerSize:
		return 0, fmt.Errorf("zap: frame of %d bytes is less than a header: %w", n, ErrTruncated)
	}
	return 4 + int(n), nil
}

// ID returns the promise that a response frame answers.
func (RPCFraming) ID(frame []byte) (uint32, error) {
	var r RPCResponse
	err := r.Parse(frame)
	return r.Promise, err
}
