package tools

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"toll/wire/http1"
)

// A Service is a backend over HTTP.
type Service struct {
	loop interface {
		Serve(l net.Listener) error
		Shutdown(ctx context.Context) error
	}
}

func newService(h http.Handler) *Service {
	return &Service{&http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}}
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *Service) Serve(l net.Listener) error {
	if err := s.loop.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown lets requests in flight finish until ctx ends, then breaks them off.
func (s *Service) Shutdown(ctx context.Context) error {
	err := s.loop.Shutdown(ctx)
	if hard, ok := s.loop.(*http.Server); ok && err != nil {
		hard.Close()
	}
	return err
}

// apiReply is about as long as the document that the first publication's mock gives.
const apiReply = `{"status":"ok","data":"mock external payload"}`

// NewAPI makes what fetch_external_data is sent to: GET /api is answered by a short document. It answers by our own HTTP loop,
// so that little of what a server's fetch takes is the backend's.
func NewAPI() *Service {
	return &Service{http1.New(http1.Config{MaxHead: 32 << 10}, func(_ context.Context, req *http1.Request, reply *http1.Reply) {
		switch {
		case string(req.Path()) != "/api":
			reply.Status, reply.ContentType = http.StatusNotFound, "text/plain; charset=utf-8"
			reply.Body = append(reply.Body, "nothing at this path; want /api\n"...)
		case string(req.Method) != http.MethodGet && string(req.Method) != http.MethodHead:
			reply.Status, reply.ContentType = http.StatusMethodNotAllowed, "text/plain; charset=utf-8"
			reply.Header = append(reply.Header, "Allow: GET, HEAD\r\n"...)
			reply.Body = append(reply.Body, "want GET\n"...)
		default:
			reply.ContentType = "application/json"
			reply.Body = append(reply.Body, apiReply...)
		}
	})}
}
