// Command grpc serves the operation note by grpc-go: toll.note.v1.Notes/Note over HTTP/2 without TLS. With the argument engine
// it is one of the benchmark bus, whose round trips are unary calls.
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"

	"toll/peers/go/grpc/note"
)

const sdk = "google.golang.org/grpc"

type notes struct{ note.UnimplementedNotesServer }

// Note takes a note and says that it is done.
func (notes) Note(_ context.Context, in *note.NoteIn) (*note.NoteOut, error) {
	return &note.NoteOut{Id: in.Id, Note: in.Note, Status: "done", Owner: "toll"}, nil
}

func main() {
	if len(os.Args) > 1 {
		run := map[string]func() error{"engine": engine, "worker": worker}[os.Args[1]]
		if run == nil {
			log.Fatalf("%q: want engine, worker or nothing", os.Args[1])
		}
		if err := run(); err != nil {
			log.Fatal(err)
		}
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	note.RegisterNotesServer(s, notes{})
	go s.Serve(l)
	if err := ready(os.Stdout, "http://"+l.Addr().String(), sdk); err != nil {
		log.Fatal(err)
	}
	if err := obey(os.Stdin, os.Stdout, nil); err != nil {
		log.Fatal(err)
	}
	s.Stop()
}
