//go:build libzmq

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pebbe/zmq4"
)

func version() string {
	major, minor, patch := zmq4.Version()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}

// worker answers on a ROUTER until its stdin closes. Its first line says where.
func worker() error {
	s, err := zmq4.NewSocket(zmq4.ROUTER)
	if err != nil {
		return err
	}
	if err := s.Bind("tcp://127.0.0.1:*"); err != nil {
		return err
	}
	at, err := s.GetLastEndpoint()
	if err != nil {
		return err
	}
	fmt.Println(strings.TrimRight(at, "\x00"))
	go func() {
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for {
		m, err := s.RecvMessageBytes(0)
		if err != nil {
			return err
		}
		if _, err := s.SendMessage(m); err != nil {
			return err
		}
	}
}

type zmq struct {
	addr    string
	cmd     *exec.Cmd
	stdin   interface{ Close() error }
	sockets []*zmq4.Socket
}

// start starts the worker's process.
func start() (*zmq, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "worker")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		return nil, fmt.Errorf("the worker's address: %w", err)
	}
	return &zmq{addr: addr, cmd: cmd, stdin: in}, nil
}

func (e *zmq) close() {
	for _, s := range e.sockets {
		s.Close()
	}
	e.stdin.Close()
	e.cmd.Wait()
}

// A dealer has a socket of its own.
type dealer struct{ socket *zmq4.Socket }

func (e *zmq) dial() (caller, error) {
	s, err := zmq4.NewSocket(zmq4.DEALER)
	if err != nil {
		return nil, err
	}
	e.sockets = append(e.sockets, s)
	s.SetLinger(0)
	s.SetRcvtimeo(5 * time.Second)
	return &dealer{s}, s.Connect(e.addr)
}

// roundTrip sends body under a number and wants the same back.
func (c *dealer) roundTrip(body []byte, n uint64) error {
	binary.LittleEndian.PutUint64(body, n)
	if _, err := c.socket.SendBytes(body, 0); err != nil {
		return err
	}
	got, err := c.socket.RecvBytes(0)
	if err == nil && !bytes.Equal(got, body) {
		err = fmt.Errorf("%d bytes that are not what was sent", len(got))
	}
	return err
}
