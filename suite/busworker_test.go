package suite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"toll/contender"
	"toll/system"
)

// TestMain makes the test binary a bus process when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		if err := serve(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serve(name string, args []string) error {
	var cfg system.Config
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&cfg.Carrier, "carrier", "", "")
	flags.StringVar(&cfg.At, "at", "", "")
	flags.StringVar(&cfg.Addr, "addr", "", "")
	flags.StringVar(&cfg.Front, "front", "", "")
	remote := flags.Bool("remote", false, "")
	flags.StringVar(&cfg.Isolation, "isolation", "", "")
	reply := flags.String("reply", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if benchmark, ok := strings.CutSuffix(name, "-host"); ok {
		return serveHost(ctx, benchmark, cfg.Addr)
	}
	if *remote {
		return remoteGateway(ctx, cfg)
	}
	if *reply != "" {
		text, err := os.ReadFile(*reply)
		if err != nil {
			return err
		}
		cfg.Reply = text
	}
	return answer(ctx, name, cfg)
}

func answer(ctx context.Context, name string, cfg system.Config) error {
	running, err := system.Start(ctx, name, cfg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"ready": running.Addr, "version": "test"}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "stats" {
			json.NewEncoder(os.Stdout).Encode(system.Stats())
		}
	}
	return running.Close()
}

// remoteGateway serves a gateway whose agents are in a process of their own, with a NATS server between them, as toll does.
func remoteGateway(ctx context.Context, cfg system.Config) (err error) {
	dir, err := os.MkdirTemp("", "toll-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	broker, err := system.Start(ctx, "bus-broker", system.Config{Carrier: system.NATS, Addr: "127.0.0.1:0", Store: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	agents, err := system.Start(ctx, "gateway-agents", system.Config{At: broker.Addr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agents.Close()) }()
	cfg.At = broker.Addr
	return answer(ctx, "gateway", cfg)
}

// process starts the test binary as a bus process.
func process(t *testing.T, args ...string) *contender.Process {
	t.Helper()
	spec, err := contender.Self(append([]string{"serve"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := contender.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p
}
