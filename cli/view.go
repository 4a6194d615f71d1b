package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"toll/lab/record"
	"toll/web"
)

type viewCmd struct {
	Dir  string `arg:"" optional:"" help:"Folder of results." default:"results"`
	Addr string `help:"Where to listen. Beyond loopback a token is needed, which is printed." default:"127.0.0.1:0"`
}

// Help shows how it is used.
func (viewCmd) Help() string {
	return `Lists the results of a folder, shows each row's trend with the points where its level changed, opens reports, compares two results, and watches a benchmark that runs. What watching costs is charged to the client of that run.

  toll view
  toll view results --addr 127.0.0.1:4077`
}

// shutdown is how long requests may take to end once a signal came.
const shutdown = 2 * time.Second

// Run serves until a signal comes.
func (c *viewCmd) Run(ctx context.Context, s *streams) error {
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return usage("view %s: no such folder; toll run makes one", c.Dir)
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return usage("--addr %s: expected HOST:PORT", c.Addr)
	}
	cfg := web.Config{Dir: c.Dir, Spent: record.ReadCPU}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		cfg.Token = rand.Text()
	}
	pages, err := web.New(cfg)
	if err != nil {
		return exit(exitUsage, err)
	}
	defer pages.Close()
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("view: %w", err))
	}
	at := "http://" + l.Addr().String() + "/"
	if cfg.Token != "" {
		at += "?token=" + cfg.Token
	}
	fmt.Fprintf(s.out, "%s\n", at)
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return exit(exitNotMeasured, err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
	defer cancel()
	err = server.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-done
	return err
}
