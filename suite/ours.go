package suite

import (
	"toll/contender"
	"toll/driver"
	"toll/lab/load"
	"toll/lab/result"
)

// floorHead is about what the HTTP head and the JSON around a note add to it, so that the floor carries a message of the
// same size as the rows it stands under.
const floorHead = 160

// An our is a contender of ours: what serves it and what calls it.
type our struct {
	sdk    string   // client and server, as a row says it
	serve  []string // arguments behind "toll serve"
	role   string
	fixed  string // the phase it is in whatever the setting says: the ladder has two sockets in one set of blocks
	shared bool   // several callers share one connection
	mcp    bool   // it has tools to list
	states bool   // it has sessions
	blobs  bool   // it can be asked for a result of a given size
	target func(call) load.Target
	line   func(*contender.Process, call) load.Target // over stdin and stdout; it has no address

	unverified bool // the target looks at no more than a status
}

func (o our) phase(setting string) string {
	if o.fixed != "" {
		return o.fixed
	}
	return setting
}

// ours lists our contenders of the benchmark transport by name.
func ours() map[string]our {
	ops := func(envelope string) []string { return []string{"ops", "--envelope", envelope} }
	rest := func(sdk, client string, serve ...string) our {
		return our{sdk: sdk, serve: serve, blobs: true, target: func(c call) load.Target { return c.rest(client) }}
	}
	opcall := func(sdk, client string, serve ...string) our {
		return our{sdk: sdk, serve: serve, target: func(c call) load.Target {
			return &driver.OpCall{Addr: c.addr, Client: client, Note: c.note, Seed: c.seed, Cold: c.cold, Wire: c.wire}
		}}
	}
	zap := func(sdk, fixed string) our {
		return our{sdk: sdk, serve: ops("zap-http"), fixed: fixed, target: func(c call) load.Target {
			return &driver.ZAPHTTP{Addr: c.addr, Note: c.note, Seed: c.seed, Cold: c.cold, Wire: c.wire, TLS: c.tls}
		}}
	}
	mcp := func(sdk, client, envelope, reply string) our {
		stateful := envelope == "mcp-stateful"
		return our{sdk: sdk, serve: ops(envelope), mcp: true, states: stateful, blobs: true, target: func(c call) load.Target {
			return c.mcp(client, stateful, reply)
		}}
	}
	h2c := rest("net/http client over HTTP/2, net/http server", driver.ClientH2C, ops("rest-h2c")...)
	h2c.shared, h2c.blobs = true, false
	fresh := rest("net/http client that keeps no connection, net/http server", driver.ClientHTTP, "ops")
	fresh.target = func(c call) load.Target {
		c.cold = true
		return c.rest(driver.ClientHTTP)
	}
	return map[string]our{
		"rest":            rest("net/http client, net/http server", driver.ClientHTTP, "ops"),
		"rest-fresh":      fresh,
		"rest-raw":        rest("toll's raw client, net/http server", driver.ClientRaw, "ops"),
		"rest-raw-server": rest("toll's raw client, toll's HTTP loop", driver.ClientRaw, ops("rest-raw")...),
		"rest-h2c":        h2c,
		"opcall":          opcall("net/http client, net/http server", driver.ClientHTTP, "ops"),
		"opcall-raw":      opcall("toll's raw client, toll's HTTP loop", driver.ClientRaw, ops("rest-raw")...),
		"zap-http":        zap("ZAP-HTTP framing, toll's both sides", ""),
		"zap-http-again":  zap("ZAP-HTTP framing, toll's both sides", ""),
		"zap-http-unix":   zap("ZAP-HTTP framing, toll's both sides", "unix"),
		"zap-http-tls":    zap("ZAP-HTTP framing over TLS 1.3, toll's both sides", "tls"),
		"zap-rpc": {sdk: "ZAP-RPC framing, toll's both sides", serve: ops("zap-rpc"), shared: true, target: func(c call) load.Target {
			return &driver.ZAPRPC{Addr: c.addr, Note: c.note, Seed: c.seed, Cold: c.cold, Wire: c.wire, Shared: true}
		}},
		"mcp":          mcp("net/http client, toll's MCP server, stateless, JSON", driver.ClientHTTP, "mcp", driver.ReplyJSON),
		"mcp-nethttp":  mcp("net/http client, toll's MCP on net/http, stateless, JSON", driver.ClientHTTP, "mcp-nethttp", driver.ReplyJSON),
		"mcp-raw":      mcp("toll's raw client, toll's MCP server, stateless, JSON", driver.ClientRaw, "mcp", driver.ReplyJSON),
		"mcp-stateful": mcp("net/http client, toll's MCP server, sessions, JSON", driver.ClientHTTP, "mcp-stateful", driver.ReplyJSON),
		"mcp-sse":      mcp("net/http client, toll's MCP server, stateless, event stream", driver.ClientHTTP, "mcp-sse", driver.ReplyEvents),
		"mcp-stdio":    {sdk: "toll's line client, toll's MCP server over stdio", serve: ops("mcp-stdio"), fixed: "stdio", line: mcpLine},
		"null": {sdk: "toll's raw client, one canned reply", serve: []string{"null"}, role: result.Null, target: func(c call) load.Target {
			return &driver.REST{Addr: c.addr, Client: driver.ClientRaw, Note: c.note, ConstantID: 1, Cold: c.cold, Wire: c.wire}
		}},
		"floor": {sdk: "raw socket, echo", serve: []string{"echo"}, role: result.Floor, target: func(c call) load.Target {
			return &driver.Echo{Addr: c.addr, Size: min(floorHead+c.note, 64<<10), Seed: c.seed, Cold: c.cold, Wire: c.wire}
		}},
	}
}

// emptyReads are the calls of the published table as it made them: REST by GET, MCP with a constant id and no header but
// Content-Type, op-call with an empty body labelled JSON, these three drained undecoded; ZAP encoded and decoded.
func emptyReads() map[string]our {
	plain := func(method, path, kind, body string) our {
		return our{unverified: true, target: func(c call) load.Target {
			return &driver.Plain{Addr: c.addr, Method: method, Path: path, ContentType: kind, Body: body, Wire: c.wire}
		}}
	}
	return map[string]our{
		"rest": plain("GET", "/v1/tasks_list", "", ""),
		"mcp": plain("POST", "/mcp", "application/json",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tasks_list","arguments":{}}}`),
		"opcall":   plain("POST", "/.well-known/zip/op/tasks_list", "application/json", ""),
		"zap-http": {target: func(c call) load.Target { return &driver.ZAPTasks{Addr: c.addr, Wire: c.wire} }},
	}
}
