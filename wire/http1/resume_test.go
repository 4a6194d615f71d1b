package http1_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/http1"
)

// patience is how long the handler of lateServer may take.
const patience = time.Second

// lateServer answers as echo does. A request for /slow is answered by its alarm; the handler goes on until release is closed. Both
// say on returned that they have come to their end.
func lateServer(release chan struct{}, returned chan string) http1.Handler {
	return func(ctx context.Context, req *http1.Request, reply *http1.Reply) {
		if string(req.Path()) != "/slow" {
			reply.Alarm(time.Now().Add(patience), func() { panic("the alarm of a request that was answered") })
			echo(ctx, req, reply)
			return
		}
		body := string(req.Body)
		reply.Abandon()
		reply.Alarm(time.Now().Add(patience), func() {
			reply.Resume(func(out *http1.Reply) {
				if body == "panic" {
					panic("asked to")
				}
				out.Status = http.StatusGatewayTimeout
				out.Body = append(out.Body, body...)
			})
			returned <- "connection"
		})
		<-release
		if string(req.Body) != body || string(req.Path()) != "/slow" {
			panic("its request is another")
		}
		reply.Status, reply.Body = http.StatusOK, append(reply.Body, "too late"...)
		returned <- "handler"
	}
}

func TestAConnectionGoesOnWithoutALateHandler(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		requests string
		replies  []string
		closed   bool
	}{
		"requests behind it": {
			"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\ncGET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /d HTTP/1.1\r\nHost: a\r\n\r\n",
			[]string{"504 ab", "200 POST /b c", "504 ", "200 GET /d "}, false,
		},
		"the last request":     {"POST /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab", []string{"504 ab"}, true},
		"a panic in its place": {"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\npanic", []string{"500 internal error\n"}, true},
		"a request of 1.0":     {"GET /slow HTTP/1.0\r\n\r\n", []string{"504 "}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release, returned := make(chan struct{}), make(chan string, 10)
				s := http1.New(http1.Config{}, lateServer(release, returned))
				client, server := net.Pipe()
				s.ServeConn(server, nil)
				go io.WriteString(client, x.requests)
				in := bufio.NewReader(client)
				for _, want := range x.replies {
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					if got := fmt.Sprintf("%d %s", resp.StatusCode, body); got != want || err != nil {
						t.Errorf("%q, %v; want %q", got, err, want)
					}
				}
				time.Sleep(10 * patience) // the alarm has nothing more to ring for
				if x.closed {
					if _, err := in.ReadByte(); err != io.EOF {
						t.Errorf("behind the last reply: %v", err)
					}
				}
				// Nobody waits for a handler that has been left behind.
				if err := s.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				close(release)
				synctest.Wait()
				slow := 0
				for _, r := range x.replies {
					if r[:3] == "504" || r[:3] == "500" {
						slow++
					}
				}
				if len(returned) != 2*slow {
					t.Errorf("%d came to their end, not %d handlers and as many connections", len(returned), slow)
				}
				client.Close()
			})
		})
	}
}

// Breaking off rings the alarm, and ends the connection whoever answers.
func TestBreakingOffRingsTheAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, returned := make(chan struct{}), make(chan string, 10)
		s := http1.New(http1.Config{}, lateServer(release, returned))
		client, server := net.Pipe()
		s.ServeConn(server, nil)
		go io.WriteString(client, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Shutdown(ctx); err != context.Canceled {
			t.Error(err)
		}
		if got := <-returned; got != "connection" {
			t.Error(got)
		}
		close(release)
		if got := <-returned; got != "handler" {
			t.Error(got)
		}
		client.Close()
	})
}
