package bus

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
	"toll/wire/zmtp"
)

// opToken is of the first frame on a connection where a token is wanted; its body is the token.
const opToken = reserved + "token"

// LongestToken bounds a token, bytes: ZeroMQ's PLAIN takes no more.
const LongestToken = 255

// longestIntroduction bounds what a stranger can make us read.
const longestIntroduction = 1 << 10

// ErrRefused is for a connection whose token is missing or wrong.
var ErrRefused = errors.New("refused: this bus wants a token, and the one given is missing or wrong")

// admits compares in a time that does not tell how much of the token is right, nor how long it is.
func (c Config) admits(token []byte) bool {
	want, got := sha256.Sum256([]byte(c.Token)), sha256.Sum256(token)
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// admit reads the token on a connection that has just come, and answers it; a stranger hears why it is closed.
func (c Config) admit(nc net.Conn) error {
	if c.Token == "" {
		return nil
	}
	if err := nc.SetDeadline(time.Now().Add(c.Write)); err != nil {
		return err
	}
	b, err := readFrame(nc, longestIntroduction)
	if err != nil {
		return err
	}
	var q frame.Received
	if err := q.Parse(b); err != nil {
		return err
	}
	if len(q.To) != 0 || string(q.Op) != opToken || !c.admits(q.Body) {
		_, err := nc.Write(frame.AppendFailure(nil, q.ID, uint8(envelope.Unreachable), ErrRefused.Error()))
		return errors.Join(ErrRefused, err)
	}
	if _, err := nc.Write(frame.AppendReply(nil, q.ID, nil)); err != nil {
		return err
	}
	return nc.SetDeadline(time.Time{})
}

// show sends our token on a new connection and returns when it was taken.
func (c Config) show(ctx context.Context, nc net.Conn) error {
	if c.Token == "" {
		return nil
	}
	until := time.Now().Add(c.Write)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	if err := nc.SetDeadline(until); err != nil {
		return err
	}
	q := frame.Request{Header: frame.Header{Kind: frame.Ask}, Op: opToken, Body: []byte(c.Token)}
	if _, err := nc.Write(q.Append(nil, 1)); err != nil {
		return err
	}
	b, err := readFrame(nc, longestIntroduction)
	if err != nil {
		return fmt.Errorf("showing the token: %w", err)
	}
	switch _, _, failed, err := frame.ParseReply(b); {
	case err != nil:
		return fmt.Errorf("showing the token: %w", err)
	case failed:
		return ErrRefused
	}
	return nc.SetDeadline(time.Time{})
}

// plain is the token as ZeroMQ's mechanism PLAIN has it.
func (c Config) plain(own *zmtp.Plain) *zmtp.Plain {
	if own != nil || c.Token == "" {
		return own
	}
	return &zmtp.Plain{User: "bus", Password: c.Token, Accept: func(_, password string) error {
		if !c.admits([]byte(password)) {
			return ErrRefused
		}
		return nil
	}}
}
