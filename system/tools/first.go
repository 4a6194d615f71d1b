package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of the first set.
const (
	maxFib       = 40
	maxDelay     = 5000 // ms
	fetchTimeout = 10 * time.Second
	maxFetched   = 1 << 20
	maxNesting   = 64
	keptAlive    = 64 // connections to backends that are kept
)

// first are the four tools of the first publication.
func first() []Tool {
	client := newClient(fetchTimeout, maxFetched)
	return []Tool{
		{
			Name: "calculate_fibonacci", About: "Calculates a Fibonacci number by naive recursion.",
			Input: object(1, "n", `{"type":"integer","minimum":0,"maximum":40}`),
			Call:  calculate,
		},
		{
			Name: "fetch_external_data", About: "Gets a URL and says how that went.", Waits: true,
			Input: object(1, "endpoint", `{"type":"string"}`),
			Call:  func(ctx context.Context, args map[string]any) (any, error) { return fetch(ctx, client, args) },
		},
		{
			Name: "process_json_data", About: "Turns every text within an object into upper case.",
			Input: object(1, "data", `{"type":"object"}`),
			Call:  process,
		},
		{
			Name: "simulate_database_query", About: "Waits as long as a query would take.", Waits: true,
			Input: object(1, "query", `{"type":"string"}`, "delay_ms", `{"type":"integer","minimum":0,"maximum":5000}`),
			Call:  simulate,
		},
	}
}

type fibonacci struct {
	Input  int    `json:"input"`
	Result int    `json:"result"`
	Server string `json:"server_type"`
}

func calculate(_ context.Context, args map[string]any) (any, error) {
	n, err := whole(args, "n", -1, 0, maxFib)
	if err == nil && n < 0 {
		err = errors.New("n is missing")
	}
	if err != nil {
		return nil, err
	}
	return fibonacci{n, fib(n), serverType}, nil
}

// fib is naive on purpose: the publication's servers are.
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

type fetched struct {
	URL    string  `json:"url"`
	Status int     `json:"status_code"`
	MS     float64 `json:"response_time_ms"`
	Server string  `json:"server_type"`
	Error  string  `json:"error,omitempty"`
}

// fetch asks for a URL. That the other side could not be asked is part of the result.
func fetch(ctx context.Context, client *client, args map[string]any) (any, error) {
	url, err := text(args, "endpoint", "")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, errors.New("endpoint: want http://… or https://…")
	}
	out := fetched{URL: url, Server: serverType}
	begin := time.Now()
	got, err := client.get(ctx, url)
	out.Status = got.status
	if err != nil {
		out.Status, out.Error = 0, err.Error()
	}
	out.MS = float64(time.Since(begin).Microseconds()) / 1000
	return out, nil
}

type processed struct {
	Keys   []string `json:"original_keys"`
	Data   any      `json:"transformed_data"`
	Server string   `json:"server_type"`
}

func process(_ context.Context, args map[string]any) (any, error) {
	data, ok := args["data"].(map[string]any)
	if !ok {
		return nil, errors.New("data: want an object")
	}
	out := processed{Keys: make([]string, 0, len(data)), Server: serverType}
	for k := range data {
		out.Keys = append(out.Keys, k)
	}
	slices.Sort(out.Keys)
	var err error
	out.Data, err = upper(data, 0)
	return out, err
}

// upper returns v with its texts in upper case; v stays as it is.
func upper(v any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("data: more than %d levels", maxNesting)
	}
	var err error
	switch v := v.(type) {
	case string:
		return strings.ToUpper(v), nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k], err = upper(e, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = upper(e, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

type queried struct {
	Query  string `json:"query"`
	Delay  int    `json:"delay_ms"`
	Time   string `json:"timestamp"`
	Server string `json:"server_type"`
}

func simulate(ctx context.Context, args map[string]any) (any, error) {
	query, err := text(args, "query", "")
	if err != nil {
		return nil, err
	}
	ms, err := whole(args, "delay_ms", 0, 0, maxDelay)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, time.Duration(ms)*time.Millisecond); err != nil {
		return nil, err
	}
	return queried{query, ms, time.Now().UTC().Format(time.RFC3339), serverType}, nil
}
