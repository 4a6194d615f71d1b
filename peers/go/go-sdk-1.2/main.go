// Command go-sdk-1.2 serves the operation note as a tool of the official Go SDK of the Model Context Protocol, at the
// version 1.2 that published tables measured: one process, one endpoint, /mcp.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const sdk = "github.com/modelcontextprotocol/go-sdk"

type noteIn struct {
	ID   int64  `json:"id" jsonschema:"the caller's own number for this call"`
	Note string `json:"note" jsonschema:"text to keep"`
}

type noteOut struct {
	ID     int64  `json:"id" jsonschema:"the number that the caller gave"`
	Note   string `json:"note" jsonschema:"the text that was kept"`
	Status string `json:"status"`
	Owner  string `json:"owner"`
}

func note(_ context.Context, _ *mcp.CallToolRequest, in noteIn) (*mcp.CallToolResult, noteOut, error) {
	return nil, noteOut{in.ID, in.Note, "done", "toll"}, nil
}

type blobIn struct {
	Bytes int `json:"bytes" jsonschema:"how long the text is to be"`
}

type blobOut struct {
	Text string `json:"text"`
}

func blob(_ context.Context, _ *mcp.CallToolRequest, in blobIn) (*mcp.CallToolResult, blobOut, error) {
	if in.Bytes < 1 || in.Bytes > 1<<20 {
		return nil, blobOut{}, fmt.Errorf("%d bytes: want 1 to %d", in.Bytes, 1<<20)
	}
	return nil, blobOut{strings.Repeat("x", in.Bytes)}, nil
}

// newServer makes a server of note and, where it has but that to list, of blob; or of so many tools of note's shape.
func newServer(tools int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "note", Version: "1"}, &mcp.ServerOptions{PageSize: 1000})
	mcp.AddTool(s, &mcp.Tool{Name: "note", Description: "Takes a note and says that it is done."}, note)
	if tools == 0 {
		mcp.AddTool(s, &mcp.Tool{Name: "blob", Description: "Gives a text of a length."}, blob)
	}
	for i := 1; i < tools; i++ {
		mcp.AddTool(s, &mcp.Tool{Name: fmt.Sprintf("note_%d", i), Description: "Takes a note and says that it is done."}, note)
	}
	return s
}

func main() {
	stateless := flag.Bool("stateless", false, "keep no sessions: revision 2026-07-28")
	sse := flag.Bool("sse", false, "answer by an event stream instead of JSON")
	stdio := flag.Bool("stdio", false, "speak over stdin and stdout instead of HTTP")
	idle := flag.Duration("idle", 0, "close a session after so long without a request; 0 never")
	tools := flag.Int("tools", 0, "list exactly so many tools; 0 = note and blob")
	set := flag.String("set", "", "serve the tools of a published benchmark instead, tmdevlab-v1 or tmdevlab-v2")
	catalogue := flag.String("catalogue", "", "tmdevlab-v2: URL of the catalogue")
	redis := flag.String("redis", "", "tmdevlab-v2: host:port of the Redis server")
	flag.Parse()
	var err error
	if *set != "" {
		var s *mcp.Server
		if s, err = toolSet(*set, *catalogue, *redis); err == nil {
			err = serveHTTP(s, mcp.StreamableHTTPOptions{Stateless: *stateless, JSONResponse: !*sse})
		}
	} else if *stdio {
		err = serveStdio(newServer(*tools))
	} else {
		err = serveHTTP(newServer(*tools), mcp.StreamableHTTPOptions{Stateless: *stateless, JSONResponse: !*sse, SessionTimeout: *idle})
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serveHTTP(s *mcp.Server, o mcp.StreamableHTTPOptions) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	if err := ready(os.Stdout, "http://"+l.Addr().String()+"/mcp", sdk); err != nil {
		return err
	}
	err = obey(os.Stdin, os.Stdout, nil)
	return closeBoth(err, server)
}

func closeBoth(err error, c io.Closer) error {
	if closeErr := c.Close(); err == nil {
		return closeErr
	}
	return err
}

// serveStdio speaks MCP a line in and a line out, beside the lines of the contract.
func serveStdio(s *mcp.Server) error {
	if err := ready(os.Stdout, "stdio:", sdk); err != nil {
		return err
	}
	in, other := io.Pipe()
	out := &lineWriter{w: os.Stdout}
	go func() { other.CloseWithError(obey(os.Stdin, out, other)) }()
	err := s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
	if err != nil && strings.Contains(err.Error(), "EOF") {
		return nil
	}
	return err
}
