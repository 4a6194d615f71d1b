package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"toll/lab/load"
	"toll/lab/record"
)

// Blob calls the operation blob as JSON over HTTP/1.1: POST /v1/blob {"bytes":n}, answered by {"text"} with n times the
// letter x. It is for results of a given size, which MCP carries twice and REST once.
type Blob struct {
	Addr   string // as REST.Addr
	Client string // ClientRaw (also when empty) or ClientHTTP
	Path   string // "/v1/blob" when empty
	Bytes  int
	Wire   *Wire // counts bytes; nil in a timed pass
}

// Open connects one VU.
func (b *Blob) Open(ctx context.Context) (load.Caller, error) {
	path := b.Path
	if path == "" {
		path = "/v1/blob"
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if b.Bytes < 1 {
		return nil, fmt.Errorf("blob of %d bytes: want at least 1", b.Bytes)
	}
	cfg := ConnConfig{Addr: b.Addr, MaxBody: 64 << 20, Wire: b.Wire}
	want := blobText(b.Bytes)
	switch b.Client {
	case ClientRaw, "":
		conn, err := Dial(ctx, cfg)
		if err != nil {
			return nil, err
		}
		req := RawRequest{Method: "POST", Path: path, Header: "Content-Type: " + mediaJSON + "\r\n"}
		req.Body = append(strconv.AppendInt([]byte(`{"bytes":`), int64(b.Bytes), 10), '}')
		return &rawBlob{want: want, conn: conn, req: req}, nil
	case ClientHTTP:
		h, err := newHTTPNote(ctx, cfg, path)
		if err != nil {
			return nil, err
		}
		return &httpBlob{bytes: b.Bytes, want: want, http: h}, nil
	}
	return nil, fmt.Errorf("client %q: want %q or %q", b.Client, ClientRaw, ClientHTTP)
}

func judgeBlob(got, want string) error {
	if got != want {
		return record.Fail(record.WrongContent, fmt.Errorf("not the text of %d bytes, but one of %d", len(want), len(got)))
	}
	return nil
}

// A rawBlob is the Caller over our own client.
type rawBlob struct {
	want string
	conn *Conn
	req  RawRequest
	json noteScanner
}

// Call makes one call.
func (c *rawBlob) Call(ctx context.Context, _ record.Mark) error {
	reply, err := c.conn.Do(ctx, &c.req)
	if err != nil {
		return err
	}
	if err := checkStatus(reply.Status, reply.Body); err != nil {
		return err
	}
	got, err := c.json.blob(reply.Body)
	if err != nil {
		return record.Fail(record.BadReply, err)
	}
	if string(got) != c.want {
		return judgeBlob(string(got), c.want)
	}
	return nil
}

// Close closes the connection.
func (c *rawBlob) Close() error { return c.conn.Close() }

// blob decodes a reply to blob.
func (s *noteScanner) blob(body []byte) (text []byte, err error) {
	s.b, s.i, s.scratch = body, 0, s.scratch[:0]
	var r rpcReply
	fits := true
	if s.space(); s.peek() != '{' {
		return nil, errNoteType
	}
	if err := s.structure(&r, &fits); err != nil {
		return nil, fmt.Errorf("json at byte %d: %w", s.i, err)
	}
	if s.space(); s.i < len(s.b) {
		return nil, fmt.Errorf("json at byte %d: %w", s.i, s.unexpected("after the value"))
	}
	if !fits {
		return nil, errNoteType
	}
	return r.text, nil
}

// An httpBlob is the Caller over net/http and encoding/json.
type httpBlob struct {
	bytes int
	want  string
	http  *httpNote
}

// Call makes one call.
func (c *httpBlob) Call(ctx context.Context, _ record.Mark) error {
	in, err := json.Marshal(blobIn{c.bytes})
	if err != nil {
		return record.Fail(record.Other, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.http.url, bytes.NewReader(in))
	if err != nil {
		return record.Fail(record.Other, err)
	}
	req.Header.Set("Content-Type", mediaJSON)
	req.Header.Set("User-Agent", userAgent)
	status, body, err := c.http.exchange(req)
	if err != nil {
		return err
	}
	if err := checkStatus(status, body); err != nil {
		return err
	}
	var out struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return record.Fail(record.BadReply, err)
	}
	return judgeBlob(out.Text, c.want)
}

// Close closes the connection.
func (c *httpBlob) Close() error { return c.http.Close() }
