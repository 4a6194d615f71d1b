// Command mcp-go serves the operation note as a tool of mark3labs/mcp-go, as its manual shows it: one process, one endpoint,
// /mcp.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const sdk = "github.com/mark3labs/mcp-go"

type noteIn struct {
	ID   int64  `json:"id" jsonschema_description:"the caller's own number for this call" jsonschema:"required"`
	Note string `json:"note" jsonschema_description:"text to keep" jsonschema:"required"`
}

type noteOut struct {
	ID     int64  `json:"id"`
	Note   string `json:"note"`
	Status string `json:"status"`
	Owner  string `json:"owner"`
}

func note(_ context.Context, _ mcp.CallToolRequest, in noteIn) (noteOut, error) {
	return noteOut{in.ID, in.Note, "done", "toll"}, nil
}

type blobIn struct {
	Bytes int `json:"bytes" jsonschema_description:"how long the text is to be" jsonschema:"required"`
}

type blobOut struct {
	Text string `json:"text"`
}

func blob(_ context.Context, _ mcp.CallToolRequest, in blobIn) (blobOut, error) {
	if in.Bytes < 1 || in.Bytes > 1<<20 {
		return blobOut{}, fmt.Errorf("%d bytes: want 1 to %d", in.Bytes, 1<<20)
	}
	return blobOut{strings.Repeat("x", in.Bytes)}, nil
}

// newServer makes a server of note and, where it has but that to list, of blob; or of so many tools of note's shape.
func newServer(tools int) *server.MCPServer {
	s := server.NewMCPServer("note", "1", server.WithToolCapabilities(false))
	if tools == 0 {
		tool := mcp.NewTool("blob", mcp.WithDescription("Gives a text of a length."), mcp.WithInputSchema[blobIn](), mcp.WithOutputSchema[blobOut]())
		s.AddTool(tool, mcp.NewStructuredToolHandler(blob))
	}
	for i := range max(tools, 1) {
		name := "note"
		if i > 0 {
			name = fmt.Sprintf("note_%d", i)
		}
		tool := mcp.NewTool(name, mcp.WithDescription("Takes a note and says that it is done."),
			mcp.WithInputSchema[noteIn](), mcp.WithOutputSchema[noteOut]())
		s.AddTool(tool, mcp.NewStructuredToolHandler(note))
	}
	return s
}

func main() {
	stateful := flag.Bool("stateful", false, "keep sessions: revision 2025-11-25")
	idle := flag.Duration("idle", 0, "forget a session after so long without a request; 0 never")
	tools := flag.Int("tools", 0, "list exactly so many tools; 0 = note and blob")
	flag.Parse()
	if err := serve(newServer(*tools), server.WithStateLess(!*stateful), server.WithStateful(*stateful), server.WithSessionIdleTTL(*idle)); err != nil {
		log.Fatal(err)
	}
}

func serve(s *server.MCPServer, options ...server.StreamableHTTPOption) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := server.NewStreamableHTTPServer(s, options...)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	hs := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go hs.Serve(l)
	if err := ready(os.Stdout, "http://"+l.Addr().String()+"/mcp", sdk); err != nil {
		return err
	}
	err = obey(os.Stdin, os.Stdout, nil)
	if closeErr := hs.Close(); err == nil {
		return closeErr
	}
	return err
}
