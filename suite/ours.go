package suite

import (
	"crypto/tls"

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
	target func(call) load.Target

	unverified bool // the target looks at no more than a status
}

func (o our) phase(setting string) string {
	if o.fixed != "" {
		return o.fixed
	}
	return setting
}

// A call is what a driver is told.
type call struct {
	addr string
	note int
	seed uint64
	wire *driver.Wire
	tls  *tls.Config
}

// ours lists our contenders of the benchmark transport by name.
func ours() map[string]our {
	rest := func(client string) func(call) load.Target {
		return func(c call) load.Target {
			return &driver.REST{Addr: c.addr, Client: client, Note: c.note, Seed: c.seed, Wire: c.wire}
		}
	}
	opcall := func(client string) func(call) load.Target {
		return func(c call) load.Target {
			return &driver.OpCall{Addr: c.addr, Client: client, Note: c.note, Seed: c.seed, Wire: c.wire}
		}
	}
	zapHTTP := func(c call) load.Target {
		return &driver.ZAPHTTP{Addr: c.addr, Note: c.note, Seed: c.seed, Wire: c.wire, TLS: c.tls}
	}
	raw := []string{"ops", "--envelope", "rest-raw"}
	zap := []string{"ops", "--envelope", "zap-http"}
	return map[string]our{
		"rest":            {sdk: "net/http client, net/http server", serve: []string{"ops"}, target: rest(driver.ClientHTTP)},
		"rest-raw":        {sdk: "toll's raw client, net/http server", serve: []string{"ops"}, target: rest(driver.ClientRaw)},
		"rest-raw-server": {sdk: "toll's raw client, toll's HTTP loop", serve: raw, target: rest(driver.ClientRaw)},
		"opcall":          {sdk: "net/http client, net/http server", serve: []string{"ops"}, target: opcall(driver.ClientHTTP)},
		"opcall-raw":      {sdk: "toll's raw client, toll's HTTP loop", serve: raw, target: opcall(driver.ClientRaw)},
		"zap-http":        {sdk: "ZAP-HTTP framing, toll's both sides", serve: zap, target: zapHTTP},
		"zap-http-again":  {sdk: "ZAP-HTTP framing, toll's both sides", serve: zap, target: zapHTTP},
		"zap-http-unix":   {sdk: "ZAP-HTTP framing, toll's both sides", serve: zap, fixed: "unix", target: zapHTTP},
		"zap-http-tls":    {sdk: "ZAP-HTTP framing over TLS 1.3, toll's both sides", serve: zap, fixed: "tls", target: zapHTTP},
		"zap-rpc": {sdk: "ZAP-RPC framing, toll's both sides", serve: []string{"ops", "--envelope", "zap-rpc"}, shared: true, target: func(c call) load.Target {
			return &driver.ZAPRPC{Addr: c.addr, Note: c.note, Seed: c.seed, Wire: c.wire, Shared: true}
		}},
		"null": {sdk: "toll's raw client, one canned reply", serve: []string{"null"}, role: result.Null, target: func(c call) load.Target {
			return &driver.REST{Addr: c.addr, Client: driver.ClientRaw, Note: c.note, ConstantID: 1, Wire: c.wire}
		}},
		"floor": {sdk: "raw socket, echo", serve: []string{"echo"}, role: result.Floor, target: func(c call) load.Target {
			return &driver.Echo{Addr: c.addr, Size: min(floorHead+c.note, 64<<10), Seed: c.seed, Wire: c.wire}
		}},
	}
}

// emptyRead is the case that the published transport table measured: a read without input that gives an empty list.
const emptyRead = "read/empty"

// emptyReads are the calls of that table as it made them: REST by GET, op-call with an empty body labelled JSON, both
// drained undecoded; ZAP encoded and decoded.
func emptyReads() map[string]our {
	return map[string]our{
		"rest": {unverified: true, target: func(c call) load.Target {
			return &driver.Plain{Addr: c.addr, Method: "GET", Path: "/v1/tasks_list", Wire: c.wire}
		}},
		"opcall": {unverified: true, target: func(c call) load.Target {
			return &driver.Plain{Addr: c.addr, Method: "POST", Path: "/.well-known/zip/op/tasks_list", ContentType: "application/json", Wire: c.wire}
		}},
		"zap-http": {target: func(c call) load.Target { return &driver.ZAPTasks{Addr: c.addr, Wire: c.wire} }},
	}
}
