package driver

import (
	"context"

	"toll/lab/load"
	"toll/lab/record"
)

// MCPStdio calls the tool note of a Model Context Protocol server over its standard input and output, a line in and a line
// out, at revision 2026-07-28, which needs no handshake. It must not be copied once it has opened.
type MCPStdio struct {
	Asker Asker
	Note  int    // bytes of the note
	Seed  uint64 // decides the first id of each VU
	Wire  *Wire  // counts bytes; nil in a timed pass

	ids ids
}

// Open makes a Caller. Callers of one server take turns.
func (m *MCPStdio) Open(context.Context) (load.Caller, error) {
	c := &stdioMCP{mcpAsk: mcpAsk{noteCall: noteCall{m.ids.next(m.Seed), 1, noteText(m.Note)}}, asker: m.Asker, wire: m.Wire}
	c.prepare()
	return c, nil
}

// A stdioMCP is one VU of MCPStdio.
type stdioMCP struct {
	mcpAsk
	asker Asker
	wire  *Wire
	out   []byte
	json  noteScanner
	end   stdioCall // of which only breakOff is used: the line is the same
}

// Call makes one call.
func (c *stdioMCP) Call(ctx context.Context, _ record.Mark) error {
	if c.end.broken != nil {
		return c.end.broken
	}
	c.id += c.step
	c.out = c.append(c.out[:0])
	line, err := c.asker.Ask(ctx, c.out)
	if err != nil {
		return c.end.breakOff(c.id, err)
	}
	if c.wire != nil {
		const lineEnds = 1
		c.wire.Out.Add(int64(len(c.out) + lineEnds))
		c.wire.In.Add(int64(len(line) + lineEnds))
	}
	r, err := c.json.rpc(line)
	if err != nil {
		return record.Fail(record.BadReply, err)
	}
	if r.asked {
		return bad("a request or notification in place of a reply: %q", excerpt(line))
	}
	return c.judge(&r)
}
