package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"toll/fleet"
)

// simulate runs the coordinator against made-up workers in virtual time, and says what that cost it.
func (c *runCmd) simulate(s *streams) error {
	sim, err := parseSimulation(c.Fleet.Simulate)
	if err != nil {
		return usage("--simulate: %w", err)
	}
	sim.OnLoss, sim.Rejoin, sim.Seed = c.Fleet.OnLoss, c.Fleet.Rejoin, uint64(max(c.Seed, 1))
	out, err := fleet.Simulate(sim)
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("--simulate: %w", err))
	}
	if c.JSON {
		if err := json.NewEncoder(s.out).Encode(simulatedText(sim, out)); err != nil {
			return err
		}
	} else {
		writeSimulated(s, sim, out)
	}
	switch {
	case out.Silent != "":
		return exit(exitNotMeasured, fmt.Errorf("--simulate: a difference that the verdict does not tell: %s", out.Silent))
	case !out.Report.Whole():
		return exit(exitNotMeasured, fmt.Errorf("--simulate: %s", out.Report.Verdict))
	}
	return nil
}

// parseSimulation parses workers=1000,loss=0.01,…
func parseSimulation(text string) (s fleet.Simulation, err error) {
	s = fleet.Simulation{Workers: 100, Duration: 30 * time.Second, Calls: 100, Delay: time.Millisecond}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return s, fmt.Errorf("%q: want NAME=VALUE", part)
		}
		switch name {
		case "workers":
			s.Workers, err = strconv.Atoi(value)
		case "calls":
			s.Calls, err = strconv.Atoi(value)
		case "time":
			s.Duration, err = time.ParseDuration(value)
		case "loss":
			s.Loss, err = strconv.ParseFloat(value, 64)
		case "again":
			s.Again, err = strconv.ParseFloat(value, 64)
		case "skew":
			s.Skew, err = time.ParseDuration(value)
		case "delay":
			s.Delay, err = time.ParseDuration(value)
		case "kill", "partition", "restart":
			var f fleet.SimulatedFault
			f, err = parseFault(name, value)
			s.Faults = append(s.Faults, f)
		default:
			return s, fmt.Errorf("%q: want workers, calls, time, loss, again, skew, delay, kill, partition or restart", name)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", part, err)
		}
	}
	switch {
	case s.Duration <= 0 || s.Duration > time.Hour:
		return s, fmt.Errorf("time=%v: want more than 0 and at most 1h", s.Duration)
	case s.Calls < 1 || s.Calls > 100_000:
		return s, fmt.Errorf("calls=%d: want 1 to 100000", s.Calls)
	case s.Skew < 0 || s.Delay < 0 || s.Delay > time.Second:
		return s, fmt.Errorf("skew=%v, delay=%v: want times, the delay at most 1s", s.Skew, s.Delay)
	}
	for _, f := range s.Faults {
		if f.Worker < 0 || f.Worker >= s.Workers {
			return s, fmt.Errorf("%s: worker %d; want 1 to %d", f.Kind, f.Worker+1, s.Workers)
		}
	}
	return s, nil
}

// parseFault parses WORKER@TIME or WORKER@TIME+FOR; a restart has no worker.
func parseFault(kind, value string) (f fleet.SimulatedFault, err error) {
	f.Kind = kind
	who, when, ok := strings.Cut(value, "@")
	if kind == "restart" {
		when, ok, who = value, true, "1"
	}
	if !ok {
		return f, fmt.Errorf("want WORKER@TIME")
	}
	if f.Worker, err = strconv.Atoi(who); err != nil {
		return f, err
	}
	f.Worker--
	at, lasts, has := strings.Cut(when, "+")
	if f.At, err = time.ParseDuration(at); err != nil {
		return f, err
	}
	if kind != "kill" {
		if !has {
			return f, fmt.Errorf("want TIME+FOR")
		}
		f.For, err = time.ParseDuration(lasts)
	}
	return f, err
}

// simulatedText is a simulation's outcome as JSON.
func simulatedText(sim fleet.Simulation, out *fleet.Simulated) any {
	r := out.Report
	return map[string]any{
		"workers": sim.Workers, "verdict": r.Verdict.String(), "slices_expected": r.Slices, "slices_got": r.SlicesGot, "duplicates": r.Duplicates,
		"virtual_s": out.Took.Seconds(), "coordinator_cpu_s": out.CPU.Seconds(), "coordinator_heap_bytes": out.Memory, "waiting_bytes_most": out.MostWaiting,
		"messages_in": out.ToCoordinator, "messages_out": out.ToWorkers, "slices_in": out.Slices, "silent_difference": out.Silent,
	}
}

func writeSimulated(s *streams, sim fleet.Simulation, out *fleet.Simulated) {
	r := out.Report
	took := out.Took.Seconds()
	fmt.Fprintf(s.out, "%d workers for %v, loss %v, twice %v, skew %v · seed %d · everything but the coordinator's and workers' rules is made up\n", sim.Workers, sim.Duration, sim.Loss, sim.Again, sim.Skew, sim.Seed)
	fmt.Fprintf(s.out, "  verdict      %s\n", r.Verdict)
	fmt.Fprintf(s.out, "  slices       %d of %d, %d came again and were merged once\n", r.SlicesGot, r.Slices, r.Duplicates)
	fmt.Fprintf(s.out, "  workers      %d of %d complete\n", r.WorkersComplete, r.Workers)
	fmt.Fprintf(s.out, "  merged       %s\n", map[bool]string{true: "equal to what was made, bucket by bucket", false: out.Silent}[out.Silent == ""])
	fmt.Fprintf(s.out, "  clocks       within %v\n", r.Bound.Round(time.Microsecond))
	fmt.Fprintf(s.out, "  to it        %.0f messages/s, %.1f KB/s; slices %.0f/s, %.1f KB/s, %.0f B each\n", float64(out.ToCoordinator.Messages)/took, float64(out.ToCoordinator.Bytes)/took/1000,
		float64(out.Slices.Messages)/took, float64(out.Slices.Bytes)/took/1000, float64(out.Slices.Bytes)/float64(max(out.Slices.Messages, 1)))
	fmt.Fprintf(s.out, "  from it      %.0f messages/s, %.1f KB/s\n", float64(out.ToWorkers.Messages)/took, float64(out.ToWorkers.Bytes)/took/1000)
	fmt.Fprintf(s.out, "  coordinator  %.2f s of CPU time over %.1f s: %.1f %% of a core, %.0f µs a worker and second; %.1f MB of heap, at most %.1f MB of slices waiting\n",
		out.CPU.Seconds(), took, 100*out.CPU.Seconds()/took, out.CPU.Seconds()*1e6/float64(sim.Workers)/sim.Duration.Seconds(), float64(out.Memory)/1e6, float64(out.MostWaiting)/1e6)
	for _, e := range r.Events {
		fmt.Fprintf(s.out, "  %6.1f s     %s %s\n", e.At.Seconds(), e.Worker, e.What)
	}
}
