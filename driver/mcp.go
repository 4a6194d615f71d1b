package driver

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// The revisions of the Model Context Protocol that MCP speaks: without sessions, and with them.
const (
	mcpStateless = "2026-07-28"
	mcpStateful  = "2025-11-25"
)

// The kinds of reply that an MCP server may give.
const (
	ReplyJSON   = "json"   // one JSON body
	ReplyEvents = "events" // an event stream
)

// MCP calls a tool of a Model Context Protocol server by POST to /mcp: note, {"id","note"} answered by the same with a
// status, or one of the other operations below. Without sessions each call is one exchange of revision 2026-07-28, whose
// headers and _meta say what a handshake used to. With them a VU first says initialize and initialized, at revision
// 2025-11-25, and deletes its session at the end. It must not be copied once it has opened.
type MCP struct {
	Addr     string // as REST.Addr
	Client   string // ClientRaw (also when empty) or ClientHTTP
	Path     string // "/mcp" when empty
	Stateful bool   // sessions
	Reply    string // ReplyJSON or ReplyEvents: the other kind is a failure; empty takes both
	Seed     uint64 // decides the first id of each VU

	Note  int // bytes of the note
	Blob  int // when > 0, call the tool blob for a text of so many bytes instead
	Tools int // when > 0, list the tools instead, of which there must be so many

	// ConstantID, if not 0, is the id of every call, for a target that always answers the same.
	ConstantID int64

	Cold   bool // every call opens its own connection and, with sessions, its own session, inside the window
	Forget bool // leave sessions behind instead of deleting them

	// Abandon makes every call begin a session of its own and leave it behind, on the connection that is there.
	Abandon bool

	TLS     *tls.Config   // for https; nil verifies against the system's roots
	Timeout time.Duration // of one call; 0 = only the context's
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids ids
}

// Open connects one VU and, with sessions, starts its session.
func (m *MCP) Open(ctx context.Context) (load.Caller, error) {
	path := m.Path
	if path == "" {
		path = "/mcp"
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	ask := noteCall{m.ConstantID, 0, noteText(m.Note)}
	if m.ConstantID == 0 {
		ask.id, ask.step = m.ids.next(m.Seed), 1
	}
	c := &mcpCall{
		mcpAsk:   mcpAsk{noteCall: ask, blob: m.Blob, tools: m.Tools, stateful: m.Stateful},
		forget:   m.Forget || m.Abandon,
		abandon:  m.Abandon,
		revision: mcpStateless,
	}
	if m.Stateful {
		c.revision = mcpStateful
	}
	switch m.Reply {
	case ReplyJSON:
		c.media = mediaJSON
	case ReplyEvents:
		c.media = mediaEvents
	}
	c.mcpAsk.prepare()
	const maxBody = 64 << 20
	cfg := ConnConfig{m.Addr, m.TLS, m.Timeout, maxBody, m.Wire}
	var err error
	switch m.Client {
	case ClientRaw, "":
		c.post, err = dialRawMCP(ctx, cfg, path)
	case ClientHTTP:
		c.post, err = dialHTTPMCP(ctx, cfg, path)
	default:
		err = fmt.Errorf("client %q: want %q or %q", m.Client, ClientRaw, ClientHTTP)
	}
	if err != nil {
		return nil, err
	}
	if m.Cold {
		return &coldMCP{c}, nil
	}
	if err := c.ready(ctx); err != nil {
		c.post.close()
		return nil, err
	}
	return c, nil
}

// A poster carries MCP messages over HTTP. Its client encodes and decodes by its own means.
type poster interface {
	// call sends the call of ask and returns what was answered.
	call(ctx context.Context, head mcpHead, ask *mcpAsk) (rpcReply, string, error)
	// exchange sends a message of the handshake, or DELETE with none.
	exchange(ctx context.Context, method string, head mcpHead, message []byte) (mcpReply, error)
	drop() error  // the connection; the next message opens another
	close() error // for good
}

// A mcpHead is what of a request's header changes.
type mcpHead struct {
	revision string // empty before one was agreed on
	session  string // empty without one
	method   string // at 2026-07-28, of the message
	name     string // at 2026-07-28, of the tool
}

// A mcpReply is the reply to a message of the handshake.
type mcpReply struct {
	status  int
	media   string
	session []byte
	body    []byte
}

// A mcpCall is one VU of MCP.
type mcpCall struct {
	mcpAsk
	post     poster
	media    string // of replies; empty takes both
	forget   bool
	abandon  bool
	revision string // of the session, once it is there
	session  string
}

// Call makes one call.
func (c *mcpCall) Call(ctx context.Context, _ record.Mark) error {
	if c.abandon {
		c.session = ""
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	c.id += c.step
	c.more = nil
	c.listed = 0
	for {
		head := mcpHead{revision: c.revision, session: c.session}
		if !c.stateful {
			head.method, head.name = c.method(), c.tool()
		}
		got, media, err := c.post.call(ctx, head, &c.mcpAsk)
		if err != nil {
			if c.stateful && record.KindOf(err) == record.Status {
				c.session = "" // a server that has forgotten the session says 404: the next call begins another
			}
			return err
		}
		if c.media != "" && media != c.media {
			return bad("call %d: a reply of %s, where %s is what is measured", c.id, media, c.media)
		}
		if err := c.mcpAsk.judge(&got); err != nil || c.more == nil {
			return err
		}
	}
}

// Close ends the session and closes the connection.
func (c *mcpCall) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	c.end(ctx)
	return c.post.close()
}

// farewell is how long the end of a session may take.
const farewell = 2 * time.Second

// A coldMCP finds no connection and no session.
type coldMCP struct{ *mcpCall }

// Prepare ends what the last call left.
func (c *coldMCP) Prepare(ctx context.Context) error {
	c.end(ctx)
	return c.post.drop()
}

// blobText is what the tool blob answers: n times the letter x.
func blobText(n int) string { return strings.Repeat("x", n) }

// A mcpAsk is what is asked and how the answer is judged, whatever client carries it.
type mcpAsk struct {
	noteCall
	blob, tools int
	stateful    bool

	text         []byte // the note
	before, mid  []byte // of the message: up to its id, up to its arguments
	after        []byte // and behind them
	more         []byte // the next page's cursor
	listed       int    // tools of the pages so far
	expectedText string // of a blob
}

func (a *mcpAsk) method() string {
	if a.tools > 0 {
		return "tools/list"
	}
	return "tools/call"
}

// tool is the name that the header repeats.
func (a *mcpAsk) tool() string {
	switch {
	case a.tools > 0:
		return ""
	case a.blob > 0:
		return "blob"
	}
	return "note"
}

// meta is what each request of revision 2026-07-28 says of its client.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + mcpStateless +
	`","io.modelcontextprotocol/clientInfo":{"name":"` + userAgent + `","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// prepare makes what all messages have in common.
func (a *mcpAsk) prepare() {
	a.text = []byte(a.note)
	a.before = []byte(`{"jsonrpc":"2.0","id":`)
	a.after = []byte("}}")
	mid := `,"method":"` + a.method() + `","params":{`
	if !a.stateful {
		mid += meta
	}
	if a.tools > 0 {
		a.mid = []byte(mid)
		return
	}
	if !a.stateful {
		mid += ","
	}
	a.mid = []byte(mid + `"name":"` + a.tool() + `","arguments":`)
	if a.blob > 0 {
		a.expectedText = blobText(a.blob)
	}
}

// append appends the message.
func (a *mcpAsk) append(b []byte) []byte {
	b = append(b, a.before...)
	b = strconv.AppendInt(b, a.id, 10)
	b = append(b, a.mid...)
	switch {
	case a.tools > 0 && a.more != nil:
		if !a.stateful {
			b = append(b, ',')
		}
		b = append(b, `"cursor":`...)
		b = appendString(b, a.more)
	case a.tools > 0:
	case a.blob > 0:
		b = append(b, `{"bytes":`...)
		b = strconv.AppendInt(b, int64(a.blob), 10)
		b = append(b, '}')
	default:
		b = appendNote(b, a.id, a.text)
	}
	return append(b, a.after...)
}

// judge returns nil if r answers the call. more is then the cursor of a page that is still to be asked for.
func (a *mcpAsk) judge(r *rpcReply) error {
	if err := r.check(a.id); err != nil {
		return err
	}
	switch {
	case a.tools > 0:
		return a.judgeList(r)
	case !r.structured || !r.content:
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: a result without content and structuredContent", a.id))
	case a.blob > 0:
		if string(r.text) != a.expectedText {
			return record.Fail(record.WrongContent, fmt.Errorf("call %d: not the text of %d bytes, but %d", a.id, a.blob, len(r.text)))
		}
		return nil
	}
	return a.noteCall.judge(r.note.failed, r.note.id, string(r.note.note) == a.note, string(r.note.status) == statusDone)
}

func (a *mcpAsk) judgeList(r *rpcReply) error {
	a.listed += r.tools
	a.more = nil
	if len(r.cursor) > 0 && r.tools > 0 && a.listed < a.tools {
		a.more = append([]byte(nil), r.cursor...)
		return nil
	}
	if a.listed != a.tools || len(r.cursor) > 0 {
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: a list of %d tools, not of %d", a.id, a.listed, a.tools))
	}
	return nil
}
