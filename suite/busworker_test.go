package suite_test

import (
	"bufio"
	"context"
	"encoding/json"
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
	if *reply != "" {
		text, err := os.ReadFile(*reply)
		if err != nil {
			return err
		}
		cfg.Reply = text
	}
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
