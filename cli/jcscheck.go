package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"toll/wire/jcs"
)

type receiptJCSCheckCmd struct {
	Timeout time.Duration `help:"Of one document." default:"10s"`
	Command []string      `arg:"" passthrough:"" help:"Reads a document on stdin; writes its canonical form and exits 0, or exits otherwise. Behind --."`
}

// Help shows how it is used.
func (receiptJCSCheckCmd) Help() string {
	return `Runs the command once for each document of the pack: what RFC 8785 and RFC 8259 refuse must be refused, and the rest must come out byte for byte.

  toll receipt jcs-check -- python3 my-canonicalizer.py

Exit: 0 it conforms, 1 it does not, 2 the command can't be run.`
}

// Run judges the command case by case.
func (c *receiptJCSCheckCmd) Run(ctx context.Context, s *streams) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return usage("jcs-check: give a command behind --")
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return usage("jcs-check: %w", err)
	}
	pack, err := jcs.Pack()
	if err != nil {
		return err
	}
	wrong := 0
	for _, p := range pack {
		why, err := c.judge(ctx, command, p)
		if err != nil {
			return exit(exitUsage, fmt.Errorf("jcs-check: %s: %w", p.Name, err))
		}
		if why != "" {
			wrong++
			fmt.Fprintf(s.out, "%-45s %s\n", p.Name, why)
		}
	}
	fmt.Fprintf(s.out, "%d of %d documents as RFC 8785 wants\n", len(pack)-wrong, len(pack))
	if wrong > 0 {
		return exit(exitMissed, nil)
	}
	return nil
}

// mostOutput bounds what a canonicalizer may write.
const mostOutput = 1 << 20

// judge says what is wrong with the command's answer to one document, "" when nothing is.
func (c *receiptJCSCheckCmd) judge(ctx context.Context, command []string, p jcs.Case) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(p.Input), time.Second
	out := &bounded{most: mostOutput}
	cmd.Stdout = out
	err := cmd.Run()
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("no answer within %v", c.Timeout), nil
	case errors.Is(err, errTooMuch):
		return "wrote more than 1 MiB", nil
	case err != nil && !errors.As(err, &status):
		return "", err
	case p.Error != "" && err == nil:
		return fmt.Sprintf("taken, though %s at byte %d: gave %.60q", p.Error, p.Offset, out.Bytes()), nil
	case p.Error == "" && err != nil:
		return fmt.Sprintf("refused: %v", err), nil
	case p.Error == "" && string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))) != p.Output:
		return fmt.Sprintf("gave %.60q, want %.60q", out.Bytes(), p.Output), nil
	}
	return "", nil
}

var errTooMuch = errors.New("too much output")

// A bounded buffer refuses what goes beyond its bound.
type bounded struct {
	bytes.Buffer
	most int
}

// Write keeps b, or fails.
func (w *bounded) Write(b []byte) (int, error) {
	if w.Len()+len(b) > w.most {
		return 0, errTooMuch
	}
	return w.Buffer.Write(b)
}
