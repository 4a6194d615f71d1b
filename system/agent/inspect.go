package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"toll/wire/envelope"
)

// Inspect returns a handler through which people look into a runtime, and spawn under its dynamic supervisors:
//
//	GET  /health          200 while it runs, 503 once it is closed
//	GET  /tree            supervisors and what is below them
//	GET  /agents/{name}   one agent
//	POST /agents/{name}   {"type","payload"}: asks it; 200 with its answer
//	GET  /counts          what has been counted
//	GET  /dead-letters    the latest ones
//	GET  /metrics         the counts in Prometheus' text format
//	POST /spawn           {"supervisor","class","name","config","spawner","id"}: 201, or 409 with the reason
//	POST /despawn         {"supervisor","name","drain":"now|current|all"}: 200, or 404
//
// It asks for no credentials: whoever serves it says who may reach it.
func Inspect(rt *Runtime) http.Handler {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collector{rt})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		status, text := http.StatusOK, "up"
		if rt.closed.Load() {
			status, text = http.StatusServiceUnavailable, "closing"
		}
		writeJSON(w, status, map[string]any{"status": text, "live": rt.registry.count.Load()})
	})
	mux.HandleFunc("GET /tree", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, rt.Tree()) })
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, rt.Counts()) })
	mux.HandleFunc("GET /agents/{name}", func(w http.ResponseWriter, r *http.Request) {
		ref, ok := rt.Lookup(r.PathValue("name"))
		if !ok {
			writeError(w, http.StatusNotFound, failure(envelope.NotFound, r.PathValue("name"), ""))
			return
		}
		writeJSON(w, http.StatusOK, ref.View())
	})
	mux.HandleFunc("GET /dead-letters", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, rt.letterViews()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST /agents/{name}", rt.serveAsk)
	mux.HandleFunc("POST /spawn", rt.serveSpawn)
	mux.HandleFunc("POST /despawn", rt.serveDespawn)
	return mux
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func writeError(w http.ResponseWriter, status int, err error) {
	body := map[string]any{"error": err.Error()}
	if r, ok := errors.AsType[*Refusal](err); ok {
		body["reason"] = r.Reason
	}
	if c, ok := envelope.CodeOf(err); ok {
		body["code"] = c.String()
	}
	writeJSON(w, status, body)
}

// maxInspectBody bounds a request's body.
const maxInspectBody = 64 << 10

// decodeBody reads a request's body; it answers what it can't read.
func decodeBody(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxInspectBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
	}
	return err == nil
}

// statusOf is the status of a failure.
func statusOf(err error) int {
	switch c, _ := envelope.CodeOf(err); c {
	case envelope.NotFound:
		return http.StatusNotFound
	case envelope.MailboxFull, envelope.Suspended, envelope.Stopped, envelope.Unreachable:
		return http.StatusServiceUnavailable
	case envelope.Deadline, envelope.Cancelled:
		return http.StatusGatewayTimeout
	case envelope.Failed:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func (rt *Runtime) serveAsk(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Type    string         `json:"type"`
		Payload map[string]any `json:"payload"`
	}
	if !decodeBody(w, r, &body) {
		return
	}
	if envelope.Reserved(body.Type) {
		writeError(w, http.StatusBadRequest, fmt.Errorf("type %.40q is the runtime's own", body.Type))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askLimit)
	defer cancel()
	v, err := rt.Call(ctx, &envelope.Message{Type: body.Type, Recipient: r.PathValue("name"), Payload: body.Payload})
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	writeJSON(w, http.StatusOK, v)
}

// askLimit bounds an ask over HTTP.
const askLimit = 30 * time.Second

func (rt *Runtime) serveSpawn(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Supervisor string         `json:"supervisor"`
		Class      string         `json:"class"`
		Name       string         `json:"name"`
		Config     map[string]any `json:"config"`
		Spawner    string         `json:"spawner"`
		ID         string         `json:"id"`
	}
	if !decodeBody(w, r, &body) {
		return
	}
	ref, err := rt.SpawnInto(r.Context(), body.Supervisor, &SpawnRequest{
		ID: body.ID, Spawner: body.Spawner, Class: body.Class, Name: body.Name, Config: body.Config,
	})
	if err != nil {
		status := http.StatusConflict
		if _, refused := errors.AsType[*Refusal](err); !refused {
			status = http.StatusGatewayTimeout
		}
		writeError(w, status, err)
		return
	}
	writeJSON(w, http.StatusCreated, ref.View())
}

func (rt *Runtime) serveDespawn(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Supervisor string `json:"supervisor"`
		Name       string `json:"name"`
		Drain      string `json:"drain"`
	}
	if !decodeBody(w, r, &body) {
		return
	}
	drain, known := map[string]Drain{"": Now, "now": Now, "current": Current, "all": All}[body.Drain]
	d, ok := rt.Dynamic(body.Supervisor)
	switch {
	case !known:
		writeError(w, http.StatusBadRequest, errors.New(`drain is one of "now", "current" and "all"`))
		return
	case !ok:
		writeError(w, http.StatusNotFound, failure(envelope.NotFound, body.Supervisor, "no dynamic supervisor has the name"))
		return
	}
	switch err := d.Stop(r.Context(), body.Name, drain); {
	case errors.Is(err, envelope.NotFound):
		writeError(w, http.StatusNotFound, err)
	case err != nil:
		writeError(w, http.StatusGatewayTimeout, err)
	default:
		writeJSON(w, http.StatusOK, map[string]any{"name": body.Name, "state": "gone"})
	}
}

// A letterView is a dead letter without its payload, which may be anything.
type letterView struct {
	Type      string `json:"type"`
	Sender    string `json:"sender,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	Attempt   int    `json:"attempt"`
	Error     string `json:"error"`
}

func (rt *Runtime) letterViews() []letterView {
	out := []letterView{}
	for _, l := range rt.DeadLetters() {
		m := l.Message
		out = append(out, letterView{m.Type, m.Sender, m.Recipient, m.Attempt, l.Err.Error()})
	}
	return out
}

// A collector gives a runtime's counts to Prometheus when it is asked; nothing is done for it in between.
type collector struct{ rt *Runtime }

// Describe sends nothing: the metrics describe themselves.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the counts.
func (c collector) Collect(out chan<- prometheus.Metric) {
	n := c.rt.Counts()
	send := func(name, help string, kind prometheus.ValueType, v int64) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("toll_agent_"+name, help, nil, nil), kind, float64(v))
	}
	send("live", "Agents that have a name now.", prometheus.GaugeValue, n.Live)
	send("zombies", "Handlers that were left behind and have not returned.", prometheus.GaugeValue, n.Zombies)
	for _, m := range []struct {
		name, help string
		v          int64
	}{
		{"handled_total", "Messages handled.", n.Handled},
		{"crashes_total", "Agents that failed.", n.Crashes},
		{"dropped_total", "Messages dropped by full mailboxes.", n.Dropped},
		{"expired_total", "Messages passed over because their callers had gone.", n.Expired},
		{"late_replies_total", "Answers that nobody waited for.", n.LateReplies},
		{"dead_letters_total", "Messages that no agent handled.", n.DeadLetters},
		{"poison_frames_total", "Frames from outside that could not be read.", n.Poison},
	} {
		send(m.name, m.help, prometheus.CounterValue, m.v)
	}
}
