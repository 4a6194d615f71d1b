package system

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"toll/system/agent"
	"toll/system/gateway"
	"toll/system/opserver"
	"toll/wire/envelope"
)

// Fronts returns what can stand before the agents of the system gateway: our HTTP loop, net/http, or nothing at all: the
// same handlers on bare net/http, without agents.
func Fronts() []string { return []string{"loop", "nethttp", "bare", socketFront} }

const socketFront = "socket"

// GatewayTLS are the files of a gateway's certificates.
type GatewayTLS = gateway.TLS

// serverName is what the benchmark's agents sign their replies with.
const serverName = "toll"

// The benchmark's handlers, which an agent and bare net/http share: what differs is what stands around them.
var errNoNumber = errors.New("n: expected a whole number from 0 to 40")

// Who is waiting for an answer may have gone.
type waiting interface{ Expired() bool }

// fibonacci is naive on purpose: its cost is known, and grows with n. It looks now and then whether somebody waits. Without its
// second parameter a frame would be 32 bytes, and where in a cache line the first one lies, which is the caller's affair, would
// decide for all of them: 8 % between an agent's stack and a connection's.
func fibonacci(n int, c waiting) int {
	if n < 2 {
		return n
	}
	if n == 20 && c.Expired() {
		return 0
	}
	return fibonacci(n-1, c) + fibonacci(n-2, c)
}

func fibPayload(payload map[string]any, c waiting) (any, error) {
	n, ok := payload["n"].(float64)
	if !ok || n != float64(int(n)) || n < 0 || n > 40 {
		return nil, errNoNumber
	}
	return map[string]any{"result": fibonacci(int(n), c), "server": serverName}, nil
}

func echoPayload(payload map[string]any, _ waiting) (any, error) {
	keys := make([]string, 0, len(payload))
	for k := range payload {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return map[string]any{"payload": payload, "server": serverName, "keys": keys}, nil
}

func empty(map[string]any, waiting) (any, error) { return map[string]any{}, nil }

// mostWork bounds what work may be asked for, in microseconds.
const mostWork = 1_000_000

var errNoWork = fmt.Errorf("us: expected a whole number of microseconds from 1 to %d", mostWork)

// workPayload spends the CPU time that it is asked for.
func workPayload(payload map[string]any, _ waiting) (any, error) {
	us, ok := payload["us"].(float64)
	if !ok || us != float64(int(us)) || us < 1 || us > mostWork {
		return nil, errNoWork
	}
	burn(time.Duration(us) * time.Microsecond)
	return map[string]any{"us": us}, nil
}

// A handler is one of the benchmark's operations, which an agent and bare net/http share.
type handler struct {
	answer func(map[string]any, waiting) (any, error)
	long   bool          // it takes long: its caller must be free to be told that its time is over
	within time.Duration // gateway.Route.Within
}

// handlers are the benchmark's operations by the name of their agent and the end of their path. Work is for trying what happens
// when more is asked than one core can do: its calls are those that may not wait.
func handlers() map[string]handler {
	return map[string]handler{
		"fibonacci": {answer: fibPayload, long: true}, "echo": {answer: echoPayload}, "empty": {answer: empty},
		"work": {answer: workPayload, long: true, within: workWithin},
	}
}

// A tally counts what the handlers do: what a call takes beside that is its framework's.
type tally struct{ calls, ns atomic.Int64 }

// time calls a handler.
func (t *tally) time(answer func(map[string]any, waiting) (any, error), payload map[string]any, c waiting) (any, error) {
	start := time.Now()
	defer func() {
		t.ns.Add(int64(time.Since(start)))
		t.calls.Add(1)
	}()
	return answer(payload, c)
}

// handled is what was counted; false where the handlers are elsewhere, and there is no tally.
func (t *tally) handled() (calls, ns int64, ok bool) {
	if t == nil {
		return 0, 0, false
	}
	return t.calls.Load(), t.ns.Load(), true
}

// workWithin is for work of a millisecond: one call is handled while one waits.
const workWithin = 2 * time.Millisecond

// buildGateway makes a gateway before real agents, or the bare server that it is compared with.
func buildGateway(ctx context.Context, cfg Config, oc opserver.Config) (server, string, error) {
	scheme := "http"
	if cfg.Gateway != nil {
		scheme = "https"
	}
	if cfg.Threads > 0 {
		runtime.GOMAXPROCS(cfg.Threads)
	}
	if cfg.Routes != "" {
		s, err := buildRouted(ctx, cfg)
		return s, scheme, err
	}
	t := new(tally)
	if cfg.Front == socketFront {
		s, err := newSocket(cfg, t, oc)
		return s, "tcp", err
	}
	if cfg.Tools.Set != "" && cfg.Front != "bare" {
		return buildToolGateway(ctx, cfg, scheme)
	}
	if cfg.Front == "bare" {
		s, err := newBare(cfg, t)
		return s, scheme, err
	}
	if cfg.Front != "" && !slices.Contains(Fronts(), cfg.Front) {
		return nil, "", fmt.Errorf("front %q: want one of %s", cfg.Front, strings.Join(Fronts(), ", "))
	}
	if cfg.At != "" {
		s, err := gatewayBefore(ctx, cfg)
		return s, scheme, err
	}
	rt := agent.New(agent.Config{})
	var routes []gateway.Route
	for name, x := range handlers() {
		h := agent.HandlerFunc(func(c *agent.Context, m *envelope.Message) (any, error) {
			payload, _ := m.Payload.(map[string]any)
			return t.time(x.answer, payload, c)
		})
		// What answers at once may do so on the caller's goroutine.
		if _, err := rt.Spawn(ctx, name, h, agent.Spec{Inline: !x.long}); err != nil {
			return nil, "", errors.Join(err, rt.Close(ctx))
		}
		routes = append(routes, routeOf(name, x))
	}
	s, err := newGateway(cfg, asker{rt}, routes, rt.Close)
	if err != nil {
		return nil, "", errors.Join(err, rt.Close(ctx))
	}
	s.tally = t
	return s, scheme, nil
}

// leastThreads is how many threads a gateway with a valve has at work, also on one processor: Go does not interrupt an agent that
// computes to read what comes, so that it would wait in the sockets, where no valve sees it (decision 0028).
const leastThreads = 2

// readWhileWorking has Go use so many, unless somebody said how many.
func readWhileWorking(cfg Config, routes []gateway.Route) {
	valved := slices.ContainsFunc(routes, func(r gateway.Route) bool { return r.Within > 0 })
	if valved && cfg.Threads == 0 && os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < leastThreads {
		runtime.GOMAXPROCS(leastThreads)
	}
}

func routeOf(name string, h handler) gateway.Route {
	return gateway.Route{Method: http.MethodPost, Path: "/v1/" + name, Agent: name, Within: h.within}
}

// gatewayBefore makes a gateway whose agents are elsewhere: it finds them by their names, over the NATS server at cfg.At.
func gatewayBefore(ctx context.Context, cfg Config) (server, error) {
	o, err := newOutpost(ctx, cfg.At, cfg.Token)
	if err != nil {
		return nil, err
	}
	var routes []gateway.Route
	for name, x := range handlers() {
		routes = append(routes, routeOf(name, x))
	}
	s, err := newGateway(cfg, remoteAsker{asker{o.rt}}, routes, o.Close)
	if err != nil {
		return nil, errors.Join(err, o.Close(ctx))
	}
	return s, nil
}

func newGateway(cfg Config, ask gateway.Asker, routes []gateway.Route, end func(context.Context) error) (*gatewayServer, error) {
	g, err := gateway.New(gateway.Config{
		Routes: routes, Asker: ask, MaxBody: int(cfg.MaxBody), TLS: cfg.Gateway, NetHTTP: cfg.Front == "nethttp",
	})
	if err != nil {
		return nil, err
	}
	return &gatewayServer{g, nil, end}, nil
}

// A gatewayServer is a gateway and the agents behind it.
type gatewayServer struct {
	*gateway.Gateway
	*tally // nil when the handlers are elsewhere
	end    func(context.Context) error
}

// Shutdown drains the gateway, then stops the agents.
func (s *gatewayServer) Shutdown(ctx context.Context) error {
	return errors.Join(s.Gateway.Shutdown(ctx), s.end(ctx))
}

// An asker reaches a runtime's agents for a gateway.
type asker struct{ *agent.Runtime }

// Stream hands on what the agent emits.
func (a asker) Stream(ctx context.Context, m *envelope.Message, emit func(v any) error) error {
	ref, ok := a.Lookup(m.Recipient)
	if !ok {
		return &envelope.Failure{Code: envelope.NotFound, Agent: m.Recipient}
	}
	st, err := ref.Stream(ctx, m, 0)
	if err != nil {
		return err
	}
	for v, err := range st.All() {
		if err == nil {
			err = emit(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A requester is the caller whose request net/http read.
type requester http.Request

// Expired says whether the client has gone.
func (r *requester) Expired() bool { return (*http.Request)(r).Context().Err() != nil }

// A bare server answers what the gateway answers, by the same handlers, on net/http and nothing else.
type bare struct {
	*tally
	http *http.Server
	cert *GatewayTLS
}

func newBare(cfg Config, t *tally) (*bare, error) {
	mux := http.NewServeMux()
	for name, x := range handlers() {
		mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) {
			status, body := http.StatusOK, []byte(nil)
			payload := make(map[string]any)
			data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max(cfg.MaxBody, 1<<20)))
			if err == nil && len(data) > 0 {
				err = json.Unmarshal(data, &payload)
			}
			var v any
			if err == nil {
				v, err = t.time(x.answer, payload, (*requester)(r))
			}
			if err == nil {
				body, err = json.Marshal(v)
			}
			if err != nil {
				status, body = http.StatusBadRequest, []byte(`{"error":"refused"}`)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			w.Write(body)
		})
	}
	b := &bare{t, &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}, cfg.Gateway}
	if cfg.Gateway == nil {
		return b, nil
	}
	config, err := cfg.Gateway.Config()
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{"http/1.1"}
	b.http.TLSConfig = config
	b.http.TLSNextProto = make(map[string]func(*http.Server, *tls.Conn, http.Handler))
	return b, nil
}

// Serve answers on l until Shutdown, and then returns nil.
func (b *bare) Serve(l net.Listener) error {
	var err error
	if b.cert != nil {
		err = b.http.ServeTLS(l, "", "")
	} else {
		err = b.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown lets calls in flight finish until ctx ends, then breaks them off.
func (b *bare) Shutdown(ctx context.Context) error {
	err := b.http.Shutdown(ctx)
	if err != nil {
		b.http.Close()
	}
	return err
}
