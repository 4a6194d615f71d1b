package suite_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
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
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	running, err := system.Start(ctx, name, cfg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"ready": running.Addr, "version": "test"}); err != nil {
		return err
	}
	io.Copy(io.Discard, os.Stdin)
	return running.Close()
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
