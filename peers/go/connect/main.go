// Command connect serves the operation note by connect-go: toll.note.v1.Notes/Note by the Connect protocol and by gRPC,
// over HTTP/1.1 and over HTTP/2 without TLS.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"

	"toll/peers/go/connect/note"
	"toll/peers/go/connect/note/noteconnect"
)

const sdk = "connectrpc.com/connect"

type notes struct{}

// Note takes a note and says that it is done.
func (notes) Note(_ context.Context, in *connect.Request[note.NoteIn]) (*connect.Response[note.NoteOut], error) {
	return connect.NewResponse(&note.NoteOut{Id: in.Msg.Id, Note: in.Msg.Note, Status: "done", Owner: "toll"}), nil
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(noteconnect.NewNotesHandler(notes{}))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: mux, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l)
	if err := ready(os.Stdout, "http://"+l.Addr().String(), sdk); err != nil {
		log.Fatal(err)
	}
	if err := obey(os.Stdin, os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}
}
