package tools

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// A Service is a backend over HTTP.
type Service struct{ http *http.Server }

func newService(h http.Handler) *Service {
	return &Service{&http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}}
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *Service) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown lets requests in flight finish until ctx ends, then breaks them off.
func (s *Service) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return err
}

// apiReply is about as long as the document that the first publication's mock gives.
const apiReply = `{"status":"ok","data":"mock external payload"}`

// NewAPI makes what fetch_external_data is sent to: GET /api is answered by a short document.
func NewAPI() *Service {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, apiReply)
	})
	return newService(mux)
}
