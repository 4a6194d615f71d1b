package gateway_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/system/gateway"
)

const goodFile = `schema: toll.gateway/v1
rate: 100
burst: 20
in_flight: 64
proxies: [10.1.2.3/8]
routes:
  - {method: POST, path: "/v1/agents/{name}", agent: "{name}", timeout: 5s, in_flight: 8, within: 3ms}
  - {method: GET, path: /v1/series, agent: series, mode: stream, type: go}
`

func TestAFileOfRoutes(t *testing.T) {
	t.Parallel()
	got, err := gateway.ParseFile("g.yaml", []byte(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	want := gateway.Config{
		Rate: 100, Burst: 20, InFlight: 64, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Routes: []gateway.Route{
			{Method: "POST", Path: "/v1/agents/{name}", Agent: "{name}", Timeout: 5 * time.Second, InFlight: 8, Within: 3 * time.Millisecond},
			{Method: "GET", Path: "/v1/series", Agent: "series", Mode: "stream", Type: "go"},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); d != "" {
		t.Error(d)
	}
}

func TestBadFilesOfRoutesSayWhere(t *testing.T) {
	t.Parallel()
	const head = "schema: toll.gateway/v1\n"
	for text, want := range map[string]string{
		"":                     "g.yaml: empty file",
		"schema: x":            `g.yaml: schema is "x"; expected toll.gateway/v1`,
		head + "speed: 3":      `g.yaml:2:1: unknown field "speed"`,
		head + "timeout: soon": `g.yaml:2:10: "soon" is not a duration such as 250ms or 10s`,
		head + "rate: -1":      "g.yaml: max_body, in_flight, rate and burst: expected none below 0",
		head + "proxies: [me]": `g.yaml: proxies: "me" is not a network such as 10.0.0.0/8`,
		head + "routes: [{method: GET, path: /}]":                                   "g.yaml: route 1: GET /: no agent",
		head + "routes: [{method: GET, path: /, agent: a, mode: cast, within: 1s}]": "g.yaml: route 1: GET /: within 1s of a cast; only a call has an answer that can be late",
		strings.Repeat(" ", 1<<20+1):                                                "g.yaml: 1048577 bytes; at most 1048576",
	} {
		if _, err := gateway.ParseFile("g.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.60q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// Whatever a file says, it is read or refused, and what was read makes a gateway or a reason.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("schema: toll.gateway/v1\nroutes: [{method: GET, path: '/{', agent: a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := gateway.ParseFile("g.yaml", data)
		if err != nil {
			return
		}
		c.Asker = standard()
		if _, err := gateway.New(c); err != nil && len(c.Routes) > 0 {
			t.Errorf("it was read, and then: %v", err)
		}
	})
}
