package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"toll/lab/record"
)

// A rawMCP is the poster over our own client. In the steady state a call allocates nothing.
type rawMCP struct {
	conn   *Conn
	req    RawRequest
	head   mcpHead // that req.Header says
	reader rpcReader
}

func dialRawMCP(ctx context.Context, cfg ConnConfig, path string) (poster, error) {
	conn, err := Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &rawMCP{conn: conn, req: RawRequest{Path: path}}, nil
}

func (p *rawMCP) call(ctx context.Context, head mcpHead, ask *mcpAsk) (rpcReply, string, error) {
	p.say(http.MethodPost, head)
	p.req.Body = ask.append(p.req.Body[:0])
	reply, err := p.conn.Do(ctx, &p.req)
	if err != nil {
		return rpcReply{}, "", err
	}
	if err := checkStatus(reply.Status, reply.Body); err != nil {
		return rpcReply{}, "", err
	}
	got, err := p.reader.read(reply.Media, reply.Body)
	return got, reply.Media, err
}

// say sets the request's header. It is the same from call to call, and then costs a comparison.
func (p *rawMCP) say(method string, head mcpHead) {
	if p.req.Method == method && p.head == head && p.req.Header != "" {
		return
	}
	p.req.Method, p.head = method, head
	h := ""
	for _, f := range head.fields(method) {
		h += f.name + ": " + f.value + "\r\n"
	}
	p.req.Header = h
}

func (p *rawMCP) exchange(ctx context.Context, method string, head mcpHead, message []byte) (mcpReply, error) {
	p.say(method, head)
	p.req.Body = append(p.req.Body[:0], message...)
	if message == nil {
		p.req.Body = nil
	}
	r, err := p.conn.Do(ctx, &p.req)
	return mcpReply{r.Status, r.Media, r.Session, r.Body}, err
}

func (p *rawMCP) drop() error  { return p.conn.Close() }
func (p *rawMCP) close() error { return p.conn.Close() }

type field struct{ name, value string }

// fields are a request's header fields, as net/http would spell them.
func (h mcpHead) fields(method string) []field {
	var out []field
	if method == http.MethodPost {
		out = append(out, field{"Content-Type", mediaJSON}, field{"Accept", mediaJSON + ", " + mediaEvents})
	}
	for _, f := range []field{
		{"Mcp-Protocol-Version", h.revision}, {"Mcp-Session-Id", h.session}, {"Mcp-Method", h.method}, {"Mcp-Name", h.name},
	} {
		if f.value != "" {
			out = append(out, f)
		}
	}
	return out
}

// A httpMCP is the poster over net/http and encoding/json.
type httpMCP struct {
	http   *httpNote
	reader rpcReader // of event streams only: the standard library has none
}

func dialHTTPMCP(ctx context.Context, cfg ConnConfig, path string) (poster, error) {
	h, err := newHTTPNote(ctx, cfg, path)
	if err != nil {
		return nil, err
	}
	return &httpMCP{http: h}, nil
}

// The messages as a Go program would declare them.
type (
	rpcRequest struct {
		JSONRPC string    `json:"jsonrpc"`
		ID      int64     `json:"id"`
		Method  string    `json:"method"`
		Params  rpcParams `json:"params"`
	}
	rpcParams struct {
		Meta      *rpcMeta `json:"_meta,omitempty"`
		Name      string   `json:"name,omitempty"`
		Arguments any      `json:"arguments,omitempty"`
		Cursor    string   `json:"cursor,omitempty"`
	}
	rpcMeta struct {
		Version      string    `json:"io.modelcontextprotocol/protocolVersion"`
		Client       rpcClient `json:"io.modelcontextprotocol/clientInfo"`
		Capabilities struct{}  `json:"io.modelcontextprotocol/clientCapabilities"`
	}
	rpcClient struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	rpcResponse struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      int64           `json:"id"`
		Method  string          `json:"method"`
		Error   json.RawMessage `json:"error"`
		Result  *struct {
			IsError    bool              `json:"isError"`
			Kind       string            `json:"resultType"`
			Content    []json.RawMessage `json:"content"`
			Structured *struct {
				noteOut
				Text string `json:"text"`
			} `json:"structuredContent"`
			Tools  []json.RawMessage `json:"tools"`
			Cursor string            `json:"nextCursor"`
		} `json:"result"`
	}
	blobIn struct {
		Bytes int `json:"bytes"`
	}
)

// message is the ask as a Go value.
func (a *mcpAsk) message() rpcRequest {
	m := rpcRequest{JSONRPC: "2.0", ID: a.id, Method: a.method(), Params: rpcParams{Name: a.tool(), Cursor: string(a.more)}}
	if !a.stateful {
		m.Params.Meta = &rpcMeta{Version: mcpStateless, Client: rpcClient{userAgent, "1"}}
	}
	switch {
	case a.tools > 0:
	case a.blob > 0:
		m.Params.Arguments = blobIn{a.blob}
	default:
		m.Params.Arguments = noteIn{a.id, a.note}
	}
	return m
}

func (p *httpMCP) call(ctx context.Context, head mcpHead, ask *mcpAsk) (rpcReply, string, error) {
	message, err := json.Marshal(ask.message())
	if err != nil {
		return rpcReply{}, "", record.Fail(record.Other, err)
	}
	r, err := p.exchange(ctx, http.MethodPost, head, message)
	if err != nil {
		return rpcReply{}, "", err
	}
	if err := checkStatus(r.status, r.body); err != nil {
		return rpcReply{}, "", err
	}
	if r.media != mediaJSON {
		got, err := p.reader.read(r.media, r.body)
		return got, r.media, err
	}
	got, err := decodeRPC(r.body)
	return got, r.media, err
}

// decodeRPC decodes a message by encoding/json.
func decodeRPC(body []byte) (rpcReply, error) {
	var m rpcResponse
	if err := json.Unmarshal(body, &m); err != nil {
		return rpcReply{}, record.Fail(record.BadReply, err)
	}
	if m.Method != "" {
		return rpcReply{}, bad("a request or notification in place of a reply")
	}
	r := rpcReply{version: []byte(m.JSONRPC), id: m.ID, failed: len(m.Error) > 0 && string(m.Error) != "null", result: m.Result != nil}
	if m.Result == nil {
		return r, nil
	}
	r.isError, r.kind, r.content = m.Result.IsError, []byte(m.Result.Kind), m.Result.Content != nil
	r.tools, r.cursor = len(m.Result.Tools), []byte(m.Result.Cursor)
	if s := m.Result.Structured; s != nil {
		r.structured, r.text = true, []byte(s.Text)
		r.note = noteReply{s.ID, []byte(s.Note), []byte(s.Status), len(s.Error) > 0 && string(s.Error) != "null"}
	}
	return r, nil
}

func (p *httpMCP) exchange(ctx context.Context, method string, head mcpHead, message []byte) (mcpReply, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.http.url, bytes.NewReader(message))
	if err != nil {
		return mcpReply{}, record.Fail(record.Other, err)
	}
	if message == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	for _, f := range head.fields(method) {
		req.Header.Set(f.name, f.value)
	}
	req.Header.Set("User-Agent", userAgent)
	resp, body, err := p.http.exchangeAll(req)
	if err != nil {
		return mcpReply{}, err
	}
	media := knownMedia([]byte(resp.Header.Get("Content-Type")))
	return mcpReply{resp.StatusCode, media, []byte(resp.Header.Get("Mcp-Session-Id")), body}, nil
}

func (p *httpMCP) drop() error  { return p.http.Close() }
func (p *httpMCP) close() error { return p.http.Close() }
