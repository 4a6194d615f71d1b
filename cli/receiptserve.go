package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"toll/system"
	"toll/system/receipt"
)

type receiptServeCmd struct {
	identity
	Mode       string        `help:"Who signs, and when: ${enum}." enum:"sync,batch,async-sidecar,async-inproc" default:"batch"`
	Durability string        `help:"What an acknowledgement outlives: none, or fsync." enum:"none,fsync" default:"fsync"`
	Dir        string        `help:"The log's folder; without one, nothing is kept (--durability none)." placeholder:"FOLDER"`
	Addr       string        `help:"Listen for HTTP on HOST:PORT; without a host, on loopback." placeholder:"HOST:PORT"`
	Unix       string        `help:"Listen for frames on a unix socket." placeholder:"PATH"`
	Sidecar    string        `help:"async-sidecar: the sidecar's socket." placeholder:"PATH"`
	Pins       string        `help:"async-sidecar: the key set, whose last key the sidecar holds." placeholder:"FILE"`
	Start      bool          `name:"start-sidecar" help:"async-sidecar: start a sidecar as a process of its own, with --key; this one never reads the key."`
	Tiles      string        `help:"Publish tiles and checkpoint in this folder, and serve them." placeholder:"FOLDER"`
	Every      time.Duration `help:"How often tiles are published." default:"30s"`
	Canned     string        `help:"Sign nothing: answer everything with this file." hidden:"" type:"existingfile"`
	Stdin      bool          `help:"Keep a contender's contract: closed stdin stops, the line stats is answered."`
}

// Help shows how it is used.
func (receiptServeCmd) Help() string {
	return `The first line on stdout is JSON with the address. A signal stops it: what is in hand is answered first.

  toll receipt serve --gateway gw.example --key key.pem --dir log --addr :8443
  toll receipt serve --gateway gw.example --key key.pem --dir log --unix run/gw.sock --mode sync
  toll receipt serve --gateway gw.example --mode async-sidecar --sidecar run/sidecar.sock --pins pinned.json --dir log --unix run/gw.sock`
}

// Run serves until a signal comes, or with --stdin until that closes.
func (c *receiptServeCmd) Run(ctx context.Context, s *streams) (err error) {
	if c.Addr == "" && c.Unix == "" {
		return usage("--addr, --unix: give at least one")
	}
	if c.Canned != "" {
		text, err := os.ReadFile(c.Canned)
		if err != nil {
			return usage("--canned: %w", err)
		}
		return c.serve(ctx, s, receipt.NewNull(text), nil)
	}
	cfg := receipt.Config{
		Name: c.Gateway, Mode: receipt.Mode(c.Mode), Durability: receipt.Durability(c.Durability), Dir: c.Dir,
		Events: func(e receipt.Event) { fmt.Fprintf(s.err, "toll: %s: %s\n", e.Kind, e.Detail) },
	}
	stop, err := c.signer(ctx, s, &cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	gw, err := receipt.Open(cfg)
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	defer func() { err = errors.Join(err, gw.Close()) }()
	return c.serve(ctx, s, receipt.NewServer(gw, c.Tiles), gw)
}

// signer finds who signs: the key, or a sidecar that may have to be started.
func (c *receiptServeCmd) signer(ctx context.Context, s *streams, cfg *receipt.Config) (stop func() error, err error) {
	nothing := func() error { return nil }
	if cfg.Mode != receipt.Sidecar {
		cfg.Key, err = c.load()
		return nothing, err
	}
	if c.Pins == "" || (c.Sidecar == "") != c.Start {
		return nil, usage("--mode async-sidecar: needs --pins, and either --sidecar or --start-sidecar")
	}
	pins, err := receipt.LoadPins(c.Pins)
	if err != nil {
		return nil, usage("--pins: %w", err)
	}
	cfg.Key = receipt.PublicKey(pins.Keys[len(pins.Keys)-1].Public())
	if !c.Start {
		client := receipt.DialSidecar(c.Sidecar)
		cfg.Notary = client
		return client.Close, nil
	}
	if c.Key == "" || c.Unix == "" {
		return nil, usage("--start-sidecar: needs --key for the sidecar to read, and --unix, beside which its socket goes")
	}
	socket := c.Unix + ".sidecar"
	end, err := c.startSidecar(ctx, s, socket)
	if err != nil {
		return nil, exit(exitNotMeasured, fmt.Errorf("starting the sidecar: %w", err))
	}
	client := receipt.DialSidecar(socket)
	cfg.Notary = client
	return func() error { return errors.Join(client.Close(), end()) }, nil
}

// startSidecar starts our own binary as a sidecar and waits until it is ready.
func (c *receiptServeCmd) startSidecar(ctx context.Context, s *streams, socket string) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"receipt", "sidecar", "--gateway", c.Gateway, "--key", c.Key, "--unix", socket, "--stdin"}
	if c.Dir != "" {
		args = append(args, "--dir", filepath.Clean(c.Dir)+".sidecar")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, args...)
	cmd.Stderr, cmd.WaitDelay = s.err, drainTime
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		stdin.Close()
		return cmd.Wait()
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("it was never ready: %w", err), stop())
	}
	return stop, nil
}

// serve answers until it is told to stop. gw is nil when nothing is published.
func (c *receiptServeCmd) serve(ctx context.Context, s *streams, server *receipt.Server, gw *receipt.Gateway) error {
	var wg sync.WaitGroup
	failed := make(chan error, 2)
	var at string
	if c.Unix != "" {
		l, err := receipt.ListenUnix(c.Unix)
		if err != nil {
			return exit(exitNotMeasured, err)
		}
		at = "unix:" + c.Unix
		wg.Go(func() { failed <- server.ServeFrames(l) })
	}
	if c.Addr != "" {
		l, err := listenLoopback(c.Addr)
		if err != nil {
			return errors.Join(exit(exitNotMeasured, err), server.Shutdown(ctx))
		}
		at = "http://" + l.Addr().String()
		wg.Go(func() { failed <- server.ServeHTTP(l) })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Tiles != "" && c.Dir != "" && gw != nil {
		wg.Go(func() { c.publish(ctx, s, gw) })
	}
	err := json.NewEncoder(s.out).Encode(ready{at, version().Version, "receipt", "go", runtime.GOMAXPROCS(0)})
	if err == nil {
		err = c.wait(ctx, s, failed)
	}
	cancel()
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer stop()
	err = errors.Join(err, server.Shutdown(drain))
	wg.Wait()
	return err
}

// wait returns when ctx ends, a listener failed, or stdin closed and is to be obeyed.
func (c *receiptServeCmd) wait(ctx context.Context, s *streams, failed <-chan error) error {
	closed := make(chan struct{})
	if c.Stdin {
		go func() {
			answer(s.in, s.out, system.Stats)
			close(closed)
		}()
	}
	select {
	case <-ctx.Done():
	case <-closed:
	case err := <-failed:
		return err
	}
	return nil
}

// publish writes the tiles now and then, and once more at the end.
func (c *receiptServeCmd) publish(ctx context.Context, s *streams, gw *receipt.Gateway) {
	tick := time.NewTicker(max(c.Every, 100*time.Millisecond))
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
		note, err := gw.Checkpoint()
		var r *receipt.Refusal
		if errors.As(err, &r) && r.Code == receipt.NotFound {
			continue
		}
		if err == nil {
			err = receipt.PublishTiles(c.Dir, c.Tiles, note)
		}
		if err != nil {
			fmt.Fprintf(s.err, "toll: publish: %v\n", err)
		}
	}
}

// listenLoopback listens on loopback unless a host is given.
func listenLoopback(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("--addr %s: %w", addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

type receiptSidecarCmd struct {
	identity
	Unix  string `help:"The socket that the gateway asks on." required:"" placeholder:"PATH"`
	Dir   string `help:"Where it remembers what it signed; without one, for the life of this process." placeholder:"FOLDER"`
	Adopt bool   `help:"Take over a log that it has not seen from the start: after a hand-over of the key, or a move."`
	UID   int    `name:"uid" help:"The user that may ask; 0 is the sidecar's own." default:"0"`
	Stdin bool   `help:"Closed stdin stops it."`
}

// Help shows how it is used.
func (receiptSidecarCmd) Help() string {
	return `The key is in this process alone. It checks every entry that it signs for, never signs two roots for one size, and remembers that across restarts.

  toll receipt sidecar --gateway gw.example --key key.pem --unix run/sidecar.sock --dir sidecar`
}

// Run signs until a signal comes, or with --stdin until that closes.
func (c *receiptSidecarCmd) Run(ctx context.Context, s *streams) error {
	key, err := c.load()
	if err != nil {
		return err
	}
	side, err := receipt.NewSidecar(receipt.SidecarConfig{Name: c.Gateway, Key: key, Dir: c.Dir, Adopt: c.Adopt, UID: c.UID})
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	l, err := receipt.ListenUnix(c.Unix)
	if err != nil {
		return errors.Join(exit(exitNotMeasured, err), side.Close())
	}
	over := make(chan error, 2)
	go func() { over <- side.Serve(l) }()
	if err := json.NewEncoder(s.out).Encode(ready{"unix:" + c.Unix, version().Version, "receipt-sidecar", "go", runtime.GOMAXPROCS(0)}); err != nil {
		return errors.Join(err, side.Close())
	}
	if c.Stdin {
		go func() {
			io.Copy(io.Discard, s.in)
			over <- nil
		}()
	}
	select {
	case <-ctx.Done():
	case err = <-over:
	}
	return errors.Join(err, side.Close())
}
