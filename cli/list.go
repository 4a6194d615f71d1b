package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"toll/lab/env"
	"toll/suite"
)

type listCmd struct{}

// Run lists every benchmark with its cases, phases and contenders.
func (listCmd) Run(s *streams) error {
	for _, b := range suite.All() {
		p, err := b.Plan("")
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s — %s\n", b.Name, b.About)
		fmt.Fprintf(s.out, "  cases       %s\n", strings.Join(p.Cases, ", "))
		fmt.Fprintf(s.out, "  phases      %s\n", strings.Join(p.Phases, ", "))
		fmt.Fprintf(s.out, "  contenders  %s (baseline %s)\n", strings.Join(p.Contenders, ", "), p.Baseline)
		profiles := slices.DeleteFunc(b.Profiles(), func(p string) bool { return strings.HasSuffix(p, shuffledToo) })
		if len(profiles) > 0 {
			fmt.Fprintf(s.out, "  profiles    %s\n", strings.Join(profiles, ", "))
		}
		fmt.Fprintf(s.out, "  quick       %d blocks × %d calls in %d rounds\n", p.Blocks, p.Calls, p.Rounds)
		if full := p.AtFull(); p.Full != nil {
			fmt.Fprintf(s.out, "  full        %d blocks × %d calls in %d rounds, concurrency %v, cases %s\n", full.Blocks, full.Calls, full.Rounds, full.Concurrency, strings.Join(full.Cases, ", "))
		}
	}
	fmt.Fprintln(s.out, "published methods")
	for _, r := range suite.Replicas() {
		fmt.Fprintf(s.out, "  %-22s %s\n", r.Name, r.About)
	}
	return nil
}

type envCmd struct{}

// Run prints the environment as a result document would hold it.
func (envCmd) Run(ctx context.Context, s *streams) error {
	e := env.Read(ctx)
	e.Lab = env.LabCost()
	enc := json.NewEncoder(s.out)
	enc.SetIndent("", "  ")
	return enc.Encode(e)
}
