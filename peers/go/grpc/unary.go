package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The benchmark bus has gRPC's unary call beside its own: an engine whose round trips go to a process of its own, a worker,
// which answers with what it gets.

const echoMethod = "/toll.bus.v1.Echo/Echo"

type echoServer interface {
	echo(ctx context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
}

type echoing struct{}

func (echoing) echo(_ context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	return in, nil
}

// echoService is what protoc would write for a service with one method, from bytes to bytes.
var echoService = grpc.ServiceDesc{
	ServiceName: "toll.bus.v1.Echo",
	HandlerType: (*echoServer)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.BytesValue)
		if err := decode(in); err != nil {
			return nil, err
		}
		return srv.(echoServer).echo(ctx, in)
	}}},
}

// worker answers until its stdin closes. Its first line says where.
func worker() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	s.RegisterService(&echoService, echoing{})
	fmt.Println(l.Addr())
	go func() {
		os.Stdin.Read(make([]byte, 1))
		s.Stop()
	}()
	return s.Serve(l)
}

// engine starts the worker and makes round trips to it, over one connection or, with CONNECTIONS=per-caller, one each.
func engine() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "worker")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer in.Close()
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		return fmt.Errorf("the worker's address: %w", err)
	}
	u := &unary{addr: addr, own: os.Getenv("CONNECTIONS") == "per-caller"}
	defer u.close()
	b := &bus{dial: u.dial}
	return b.serve(os.Stdin, os.Stdout, map[string]any{"version": moduleVersion(sdk), "name": "grpc-unary", "language": "go"})
}

type unary struct {
	addr  string
	own   bool
	conns []*grpc.ClientConn
}

func (u *unary) dial() (caller, error) {
	if u.own || len(u.conns) == 0 {
		cc, err := grpc.NewClient("passthrough:///"+u.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		u.conns = append(u.conns, cc)
	}
	// Each caller's context lives as long as the process, as that of an agent's task does.
	return &client{cc: u.conns[len(u.conns)-1]}, nil
}

func (u *unary) close() {
	for _, cc := range u.conns {
		cc.Close()
	}
}

type client struct{ cc *grpc.ClientConn }

func (c *client) roundTrip(body []byte, n uint64) error {
	binary.LittleEndian.PutUint64(body, n)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var out wrapperspb.BytesValue
	if err := c.cc.Invoke(ctx, echoMethod, wrapperspb.Bytes(body), &out); err != nil {
		return err
	}
	if !bytes.Equal(out.Value, body) {
		return fmt.Errorf("%d bytes that are not what was sent", len(out.Value))
	}
	return nil
}
