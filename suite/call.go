package suite

import (
	"crypto/tls"

	"toll/contender"
	"toll/driver"
	"toll/lab/load"
)

// A call is what a driver is told.
type call struct {
	work
	addr   string
	path   string // of the endpoint, where a manifest or a ready line gave one
	seed   uint64
	shared bool // all callers on one connection, if the driver can
	wire   *driver.Wire
	tls    *tls.Config
}

func (c call) with(wire *driver.Wire) call {
	c.wire = wire
	return c
}

// rest calls note, or blob, as JSON over HTTP.
func (c call) rest(client string) load.Target {
	if c.blob > 0 {
		return &driver.Blob{Addr: c.addr, Client: client, Bytes: c.blob, Wire: c.wire}
	}
	return &driver.REST{Addr: c.addr, Path: c.path, Client: client, Note: c.note, Seed: c.seed, Cold: c.cold, Shared: c.shared, Wire: c.wire}
}

// mcp calls the tool note, or blob, or lists the tools.
func (c call) mcp(client string, stateful bool, reply string) load.Target {
	return &driver.MCP{
		Addr: c.addr, Path: c.path, Client: client, Stateful: stateful, Reply: reply,
		Note: c.note, Blob: c.blob, Tools: c.tools, Seed: c.seed, Cold: c.cold, Abandon: c.churn, Wire: c.wire,
	}
}

// mcpLine calls the tool note over a process' stdin and stdout.
func mcpLine(p *contender.Process, c call) load.Target {
	return &driver.MCPStdio{Asker: p, Note: c.note, Seed: c.seed, Wire: c.wire}
}

// mcpPing is what a server on stdio is asked to find out whether it is up: the one request that needs no handshake.
const mcpPing = `{"jsonrpc":"2.0","id":0,"method":"ping"}`
