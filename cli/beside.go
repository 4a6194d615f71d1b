package cli

import (
	"context"
	"fmt"

	"toll/lab/plan"
	"toll/lab/result"
	"toll/published"
	"toll/report"
	"toll/suite"
)

// beside shows a profile that ran in both orders side by side, profile seed with the published table.
func (c *runCmd) beside(ctx context.Context, s *streams, docs []*result.Document) error {
	if err := c.besideGroup(s, docs); err != nil {
		return err
	}
	if err := c.besideBus(s, docs); err != nil {
		return err
	}
	if err := c.besideReceipt(s, docs); err != nil {
		return err
	}
	if err := c.besideGateway(s, docs); err != nil {
		return err
	}
	if err := c.besideReplica(s, docs); err != nil {
		return err
	}
	if c.JSON || len(docs) != 2 || docs[0] == nil || docs[1] == nil {
		return nil
	}
	switch c.Profile {
	case seedProfile:
		if docs[0].Benchmark == "spawn" {
			return besideSpawn(ctx, s, docs)
		}
		t, err := published.Load("transport-seed")
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out)
		return report.Beside(s.out, t, docs[0], docs[1])
	case orderProfile, orderSDKProfile:
		fmt.Fprintln(s.out)
		return report.Orders(s.out, docs[0], docs[1])
	}
	return nil
}

// besideSpawn shows the published spawn table beside ours, and how it came by its 491 failures.
func besideSpawn(ctx context.Context, s *streams, docs []*result.Document) error {
	t, err := published.Load("spawn-seed")
	if err != nil {
		return err
	}
	const requests, levels = 500, 3
	counted, err := suite.Lengths(ctx, requests, levels)
	if err != nil {
		return fmt.Errorf("counting failures by length: %w", err)
	}
	var out []report.LengthLevel
	for _, l := range counted {
		out = append(out, report.LengthLevel(l))
	}
	fmt.Fprintln(s.out)
	return report.BesideSpawn(s.out, t, docs[0], docs[1], out)
}

// besideGroup sets the published table of group engines under what was measured of them here.
func (c *runCmd) besideGroup(s *streams, docs []*result.Document) error {
	for _, d := range docs {
		if d == nil || d.Benchmark != "group" || c.JSON {
			continue
		}
		t, err := published.Load("group-seed")
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out)
		if err := report.Group(s.out, t, d); err != nil {
			return err
		}
	}
	return nil
}

// besideReplica sets the table of a published method under what was measured by it here.
func (c *runCmd) besideReplica(s *streams, docs []*result.Document) error {
	for _, d := range docs {
		if d == nil || c.JSON || d.Benchmark != "tools" {
			continue
		}
		name, ours := "tmdevlab-v1", map[string]string{"java": "spring-ai", "go": "go-sdk-1-2-tools", "nodejs": "ts-sdk", "python": "fastmcp"}
		if d.Plan.Cases[0] == "tmdevlab/v2" {
			name, ours = "tmdevlab-v2", map[string]string{"go": "go-sdk-1-2-tools-stateless"}
		}
		t, err := published.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out)
		if err := report.Iterations(s.out, t, ours, d); err != nil {
			return err
		}
	}
	return nil
}

// besideBus shows what was published of a bus beside a run of ours that has its topology.
func (c *runCmd) besideBus(s *streams, docs []*result.Document) error {
	for _, d := range docs {
		if d == nil || d.Benchmark != "bus" || c.JSON {
			continue
		}
		t, err := published.Load("civitas-bus")
		if err != nil {
			return err
		}
		if err := report.BesideBus(s.out, t, d); err != nil {
			return err
		}
	}
	return nil
}

// besideReceipt shows the published receipts table under a run of ours.
func (c *runCmd) besideReceipt(s *streams, docs []*result.Document) error {
	for _, d := range docs {
		if d == nil || d.Benchmark != "receipt" || c.JSON {
			continue
		}
		t, err := published.Load("receipt-seed")
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out)
		if err := report.Elsewhere(s.out, t); err != nil {
			return err
		}
	}
	return nil
}

// besideGateway shows what was published of servers under a closed load beside the gateway's rows. A run of every benchmark and
// one of more calls than can be answered have nothing to stand beside it.
func (c *runCmd) besideGateway(s *streams, docs []*result.Document) error {
	for _, d := range docs {
		if d == nil || d.Benchmark != "gateway" || c.JSON || len(docs) > 1 || d.Method.Model == plan.Open {
			continue
		}
		var tables []published.Table
		for _, name := range []string{"civitas-gateway", "tmdevlab-v1"} {
			t, err := published.Load(name)
			if err != nil {
				return err
			}
			tables = append(tables, t)
		}
		if err := report.BesideGateway(s.out, tables, d); err != nil {
			return err
		}
	}
	return nil
}
