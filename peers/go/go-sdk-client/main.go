// Package main is the official Go SDK's client against a server of ours: it begins, lists the tools, calls one, follows the
// progress of another, is asked where the revision has that, and ends. Any surprise ends it with status 1.
//
//	go-sdk-client -url http://127.0.0.1:8080/mcp -version 2025-11-25
//	go-sdk-client -version 2026-07-28 toll serve ops --envelope mcp-stdio --conformance
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	url := flag.String("url", "", "endpoint; without one the arguments are a command that speaks over stdio")
	version := flag.String("version", "", "protocol revision to ask for")
	asked := flag.Bool("asked", false, "expect the server to ask, as it does a client with a session")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: *url}
	if *url == "" {
		if flag.NArg() == 0 {
			fmt.Fprintln(os.Stderr, "go-sdk-client: want -url or a command")
			os.Exit(2)
		}
		transport = &mcp.CommandTransport{Command: exec.CommandContext(ctx, flag.Arg(0), flag.Args()[1:]...)}
	}
	did, err := run(ctx, transport, *version, *asked)
	if err != nil {
		fmt.Fprintf(os.Stderr, "go-sdk-client: after %v: %v\n", did, err)
		os.Exit(1)
	}
	fmt.Printf("go-sdk client, %s: %v\n", *version, did)
}

// heard collects what the server says beside its replies.
type heard struct {
	mu       sync.Mutex
	progress []float64 // guarded by mu
	asked    int       // guarded by mu
}

func (h *heard) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.progress = append(h.progress, r.Params.Progress)
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.asked++
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": "gopher"}}, nil
		},
	}
}

func run(ctx context.Context, transport mcp.Transport, version string, asked bool) (did []string, err error) {
	h := &heard{}
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk-client", Version: "1"}, h.options())
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return did, fmt.Errorf("begin: %w", err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		return did, fmt.Errorf("begin: agreed on %q, want %q", got, version)
	}
	did = append(did, "begin")
	for _, step := range []struct {
		name string
		do   func(ctx context.Context, s *mcp.ClientSession, h *heard) error
		skip bool
	}{{"list", list, false}, {"call", call, false}, {"streamed progress", progress, false}, {"elicitation", elicitation, !asked}} {
		if step.skip {
			continue
		}
		if err := step.do(ctx, session, h); err != nil {
			return did, errors.Join(fmt.Errorf("%s: %w", step.name, err), session.Close())
		}
		did = append(did, step.name)
	}
	if err := session.Close(); err != nil {
		return did, fmt.Errorf("close: %w", err)
	}
	return append(did, "close"), nil
}

func list(ctx context.Context, s *mcp.ClientSession, _ *heard) error {
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if tool.Name == "note" && tool.InputSchema != nil && tool.OutputSchema != nil {
			return nil
		}
	}
	return errors.New("no tool note with both schemas")
}

func call(ctx context.Context, s *mcp.ClientSession, _ *heard) error {
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "note", Arguments: map[string]any{"id": 7, "note": "über \"alles\"\n"}})
	if err == nil && len(r.Content) == 0 {
		err = errors.New("a result without content")
	}
	if err != nil {
		return err
	}
	const want = `{"id":7,"note":"über \"alles\"\n","status":"done","owner":"toll"}`
	if text, ok := r.Content[0].(*mcp.TextContent); !ok || text.Text != want || r.IsError || len(r.Content) != 1 {
		return fmt.Errorf("got %+v, want %s", r.Content, want)
	}
	if s.InitializeResult().ProtocolVersion < "2025-06-18" { // which introduced structured results
		return nil
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return err
	}
	if got, want := string(raw), `{"id":7,"note":"über \"alles\"\n","owner":"toll","status":"done"}`; got != want {
		return fmt.Errorf("structured: got %s, want %s", got, want)
	}
	return nil
}

func progress(ctx context.Context, s *mcp.ClientSession, h *heard) error {
	params := &mcp.CallToolParams{Name: "test_tool_with_progress", Arguments: map[string]any{}}
	params.SetProgressToken("token")
	if _, err := s.CallTool(ctx, params); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if fmt.Sprint(h.progress) != "[0 50 100]" {
		return fmt.Errorf("heard %v, want [0 50 100]", h.progress)
	}
	return nil
}

func elicitation(ctx context.Context, s *mcp.ClientSession, h *heard) error {
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "test_elicitation", Arguments: map[string]any{"message": "who?"}})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.IsError || h.asked != 1 {
		return fmt.Errorf("asked %d times, result %+v", h.asked, r.Content)
	}
	return nil
}
