package driver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"toll/lab/load"
	"toll/lab/record"
)

// Receipt asks a receipt gateway for one receipt a call: POST /v1/receipts over HTTP/1.1, or a frame over a unix socket. Each
// call is a request of its own. In the window the reply's status, request id and hash are looked at; Keep is given the whole
// receipt, to be verified when the clock has stopped. It must not be copied once it has opened.
type Receipt struct {
	Addr   string // http://host:port, or unix:/path for frames
	Accept bool   // ask for the promise of a receipt only
	Seed   uint64 // decides the ids
	Tenant string
	Keep   func(receipt []byte) // gets a copy of each receipt; nil for none
	Wire   *Wire                // counts bytes; nil in a timed pass
	// Null makes every call the same and takes any answer: it is for a null target.
	Null bool

	next atomic.Uint64
}

// Open connects one VU.
func (r *Receipt) Open(ctx context.Context) (load.Caller, error) {
	c := &receiptCall{Receipt: r}
	path, unix := strings.CutPrefix(r.Addr, "unix:")
	if !unix {
		conn, err := Dial(ctx, ConnConfig{Addr: r.Addr, Wire: r.Wire})
		if err != nil {
			return nil, err
		}
		c.http = conn
		c.req = RawRequest{Method: "POST", Path: "/v1/receipts", Header: "Content-Type: application/json\r\n"}
		if r.Accept {
			c.req.Header += "Prefer: respond-async\r\n"
		}
		return c, nil
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, record.Fail(record.Connect, err)
	}
	c.nc = r.Wire.count(nc)
	return c, nil
}

// A receiptCall is one VU, over HTTP or frames.
type receiptCall struct {
	*Receipt
	http *Conn
	req  RawRequest
	nc   net.Conn
	out  []byte
	in   []byte
	hash [64]byte
	id   []byte
	gone error
}

// The frame protocol of system/receipt.
const (
	frameSign     = 1
	frameAccept   = 2
	mostReply     = 64 << 10
	frameReplyLen = 4 + 2 // call and status, behind the length
)

// Call makes one call.
func (c *receiptCall) Call(ctx context.Context, _ record.Mark) error {
	body := c.arrival()
	status, reply, err := c.exchange(ctx, body)
	if err != nil {
		return err
	}
	want := http.StatusCreated
	if c.Accept && !c.Null {
		want = http.StatusAccepted
	}
	if status != want {
		return record.Fail(record.Status, fmt.Errorf("status %d: %s", status, excerpt(reply)))
	}
	if c.Accept || c.Null {
		return nil
	}
	if !bytes.Contains(reply, c.hash[:]) {
		return record.Fail(record.WrongContent, fmt.Errorf("the receipt is not of this hash: %s", excerpt(reply)))
	}
	if !bytes.Contains(reply, c.id) {
		return record.Fail(record.WrongID, fmt.Errorf("the receipt is not of %s: %s", c.id, excerpt(reply)))
	}
	if c.Keep != nil {
		c.Keep(bytes.Clone(reply))
	}
	return nil
}

// arrival makes the body of the next request: an id that no other call has, and a hash of its own.
func (c *receiptCall) arrival() []byte {
	n := uint64(0)
	if !c.Null {
		n = c.next.Add(1)
	}
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[:], c.Seed)
	binary.BigEndian.PutUint64(seed[8:], n)
	sum := sha256.Sum256(seed[:])
	hex.Encode(c.hash[:], sum[:])
	c.id = strconv.AppendUint(append(c.id[:0], `"req-`...), 100_000_000+n, 10)
	c.id = append(c.id, '"')
	b := append(c.req.Body[:0], `{"namespace":"prod","policy":{"id":"policy-7","version":3},"request_hash":"`...)
	b = append(append(b, c.hash[:]...), `","request_id":`...)
	b = append(append(b, c.id...), `,"tenant":"`...)
	c.req.Body = append(append(b, c.Tenant...), `"}`...)
	return c.req.Body
}

func (c *receiptCall) exchange(ctx context.Context, body []byte) (status int, reply []byte, err error) {
	if c.http == nil {
		return c.frame(ctx, body)
	}
	r, err := c.http.Do(ctx, &c.req)
	if err != nil {
		return 0, nil, err
	}
	return r.Status, r.Body, nil
}

// frame sends one frame and reads the one that answers it. After a failure the connection is of no use any more.
func (c *receiptCall) frame(ctx context.Context, body []byte) (status int, reply []byte, err error) {
	if c.gone != nil {
		return 0, nil, record.Fail(record.Closed, fmt.Errorf("after: %w", c.gone))
	}
	defer func() {
		if err != nil {
			c.gone = err
		}
	}()
	if until, ok := ctx.Deadline(); ok {
		c.nc.SetDeadline(until)
	}
	op := byte(frameSign)
	if c.Accept {
		op = frameAccept
	}
	b := binary.BigEndian.AppendUint32(c.out[:0], uint32(5+len(body)))
	c.out = append(append(binary.BigEndian.AppendUint32(b, 1), op), body...)
	if _, err := c.nc.Write(c.out); err != nil {
		return 0, nil, ioFailure(err, record.Closed, "sending the frame")
	}
	var head [4 + frameReplyLen]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return 0, nil, ioFailure(err, record.Closed, "reading the frame's head")
	}
	n := int(binary.BigEndian.Uint32(head[:])) - frameReplyLen
	if n < 0 || n > mostReply || binary.BigEndian.Uint32(head[4:]) != 1 {
		return 0, nil, record.Fail(record.BadReply, fmt.Errorf("a frame of %d bytes to call %d", n, binary.BigEndian.Uint32(head[4:])))
	}
	if cap(c.in) < n {
		c.in = make([]byte, n)
	}
	c.in = c.in[:n]
	if _, err := io.ReadFull(c.nc, c.in); err != nil {
		return 0, nil, ioFailure(err, record.ShortBody, "reading the frame")
	}
	return int(binary.BigEndian.Uint16(head[8:])), c.in, nil
}

// Close closes the connection.
func (c *receiptCall) Close() error {
	if c.http != nil {
		return c.http.Close()
	}
	return c.nc.Close()
}
