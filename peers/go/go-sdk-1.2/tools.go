package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const serverType = "go-sdk"

// toolSet serves the tools of a published benchmark in place of note: tmdevlab-v1 or tmdevlab-v2.
func toolSet(name, catalogue, redis string) (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	switch name {
	case "tmdevlab-v1":
		// The publication's client: the default one, which keeps two connections a host.
		f := fetcher{&http.Client{Timeout: 10 * time.Second}}
		mcp.AddTool(s, &mcp.Tool{Name: "calculate_fibonacci", Description: "Calculates a Fibonacci number by naive recursion."}, calculate)
		mcp.AddTool(s, &mcp.Tool{Name: "fetch_external_data", Description: "Gets a URL and says how that went."}, f.fetch)
		mcp.AddTool(s, &mcp.Tool{Name: "process_json_data", Description: "Turns every text within an object into upper case."}, process)
		mcp.AddTool(s, &mcp.Tool{Name: "simulate_database_query", Description: "Waits as long as a query would take."}, simulate)
	case "tmdevlab-v2":
		h := newShop(catalogue, redis)
		mcp.AddTool(s, &mcp.Tool{Name: "search_products", Description: "Finds products of a category within a price range, and says which are popular."}, h.search)
		mcp.AddTool(s, &mcp.Tool{Name: "get_user_cart", Description: "Shows a user's cart and latest orders."}, h.cart)
		mcp.AddTool(s, &mcp.Tool{Name: "checkout", Description: "Orders items for a user."}, h.checkout)
	default:
		return nil, fmt.Errorf("-set %q: want tmdevlab-v1 or tmdevlab-v2", name)
	}
	return s, nil
}

type fibIn struct {
	N int `json:"n" jsonschema:"from 0 to 40"`
}

type fibOut struct {
	Input  int    `json:"input"`
	Result int    `json:"result"`
	Server string `json:"server_type"`
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func calculate(_ context.Context, _ *mcp.CallToolRequest, in fibIn) (*mcp.CallToolResult, fibOut, error) {
	if in.N < 0 || in.N > 40 {
		return nil, fibOut{}, fmt.Errorf("n is %d; want 0 to 40", in.N)
	}
	return nil, fibOut{in.N, fib(in.N), serverType}, nil
}

type fetcher struct{ client *http.Client }

type fetchIn struct {
	Endpoint string `json:"endpoint"`
}

type fetchOut struct {
	URL    string  `json:"url"`
	Status int     `json:"status_code"`
	MS     float64 `json:"response_time_ms"`
	Server string  `json:"server_type"`
	Error  string  `json:"error,omitempty"`
}

// fetch reads the body, without which its connection could not be used again.
func (f fetcher) fetch(ctx context.Context, _ *mcp.CallToolRequest, in fetchIn) (*mcp.CallToolResult, fetchOut, error) {
	out := fetchOut{URL: in.Endpoint, Server: serverType}
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.Endpoint, nil)
	if err != nil {
		return nil, out, err
	}
	resp, err := f.client.Do(req)
	if err == nil {
		out.Status = resp.StatusCode
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
	}
	if err != nil {
		out.Status, out.Error = 0, err.Error()
	}
	out.MS = float64(time.Since(begin).Microseconds()) / 1000
	return nil, out, nil
}

type processIn struct {
	Data map[string]any `json:"data"`
}

type processOut struct {
	Keys   []string       `json:"original_keys"`
	Data   map[string]any `json:"transformed_data"`
	Server string         `json:"server_type"`
}

func process(_ context.Context, _ *mcp.CallToolRequest, in processIn) (*mcp.CallToolResult, processOut, error) {
	out := processOut{Keys: []string{}, Data: map[string]any{}, Server: serverType}
	for k, v := range in.Data {
		out.Keys = append(out.Keys, k)
		out.Data[k] = upper(v)
	}
	return nil, out, nil
}

func upper(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ToUpper(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = upper(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = upper(e)
		}
		return out
	}
	return v
}

type queryIn struct {
	Query string `json:"query"`
	Delay int    `json:"delay_ms,omitempty" jsonschema:"from 0 to 5000"`
}

type queryOut struct {
	Query  string `json:"query"`
	Delay  int    `json:"delay_ms"`
	Time   string `json:"timestamp"`
	Server string `json:"server_type"`
}

func simulate(ctx context.Context, _ *mcp.CallToolRequest, in queryIn) (*mcp.CallToolResult, queryOut, error) {
	if in.Delay < 0 || in.Delay > 5000 {
		return nil, queryOut{}, fmt.Errorf("delay_ms is %d; want 0 to 5000", in.Delay)
	}
	select {
	case <-time.After(time.Duration(in.Delay) * time.Millisecond):
	case <-ctx.Done():
		return nil, queryOut{}, ctx.Err()
	}
	return nil, queryOut{in.Query, in.Delay, time.Now().UTC().Format(time.RFC3339), serverType}, nil
}
