package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"toll/wire/mcp"
)

// A server with one tool, mounted on net/http.
func ExampleHandler() {
	s := mcp.New(mcp.Config{Name: "greeter", Version: "1.0"})
	defer s.Close()
	err := s.AddTools(mcp.Tool{
		Name: "greet", Description: "Greets somebody.",
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
		Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
			var in struct{ Name string }
			if err := json.Unmarshal(c.Arguments, &in); err != nil {
				return nil, err
			}
			return mcp.TextResult("Hello, " + in.Name + "!"), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", &mcp.Handler{Server: s})
	web := httptest.NewServer(mux)
	defer web.Close()

	resp, err := http.Post(web.URL+"/mcp", "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello, Ada!"}]}} <nil>
}
