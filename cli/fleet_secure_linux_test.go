package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toll/certs"
	"toll/lab/result"
)

// newNKey draws an nkey by the command that is there for it, and returns the seed's file and the public key.
func newNKey(t *testing.T) (file, public string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "mine.nk")
	out, err := program(t, "worker", "--new-nkey", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return file, strings.TrimSpace(string(out))
}

// refused fails unless a worker that is started with the arguments ends at once, with exit code 3 and one line that holds a sentence.
func refused(t *testing.T, what, sentence string, args ...string) {
	t.Helper()
	cmd := program(t, append([]string{"worker", "--dir", t.TempDir(), "--wait", "10s"}, args...)...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 3 {
		t.Errorf("%s: ended with %v, want exit code 3: %s", what, err, out)
	}
	if text := string(out); strings.Count(text, "\n") != 1 || !strings.Contains(text, sentence) {
		t.Errorf("%s: it says %q, want one line with %q", what, text, sentence)
	}
}

// joins starts a worker that gets in, and fails unless the run it takes part in comes to its end.
func (c *coordinator) joins(t *testing.T, out string, args ...string) {
	t.Helper()
	cmd := program(t, append([]string{"worker", "--dir", t.TempDir()}, args...)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the worker ended with %v: %s", err, text)
	}
	f := c.wait(t, out).Rows[0].Fleet
	if f.Verdict != result.FleetComplete || f.WorkersComplete != 1 || f.SlicesGot != f.SlicesExpected || len(f.Workers) != 1 || f.Workers[0].OK == 0 {
		t.Errorf("%+v", f)
	}
}

func TestAFleetLetsInWhoHasTheRightNKey(t *testing.T) {
	t.Parallel()
	mine, minePublic := newNKey(t)
	theirs, theirsPublic := newNKey(t)
	foreign, _ := newNKey(t)
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("# who gets in\n"+minePublic+"\n"+theirsPublic+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	c := coordinate(t, loadFile(t, served(t, "127.0.0.1:0"), 2), "--workers", "1", "--nkeys", known, "--nkey", mine, "--out", out)
	at := c.joinLine(t)
	refused(t, "a foreign nkey", "the server does not let this nkey in", at, "--nkey", foreign)
	refused(t, "no nkey", "the server does not let us in: wrong token, or it wants an nkey", at)
	c.joins(t, out, at, "--nkey", theirs)
}

func TestAFleetLetsInWhoseCertificateIsSigned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := func(name string) (ca string, a *certs.Authority) {
		a, err := certs.New(time.Now)
		ca = filepath.Join(dir, name+".pem")
		if err = errors.Join(err, os.WriteFile(ca, a.PEM(), 0o600)); err != nil {
			t.Fatal(err)
		}
		return ca, a
	}
	files := func(p certs.Pair, err error, name string) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		cert, key, err := p.WriteFiles(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		return []string{"--nats-cert", cert, "--nats-key", key}
	}
	ca, ours := authority("ours")
	otherCA, other := authority("other")
	p, err := ours.Server("127.0.0.1")
	server := files(p, err, "server")
	p, err = ours.Client("worker")
	client := files(p, err, "client")
	p, err = other.Client("worker")
	foreign := files(p, err, "foreign")

	out := t.TempDir()
	c := coordinate(t, append([]string{loadFile(t, served(t, "127.0.0.1:0"), 2), "--workers", "1", "--out", out, "--nats-ca", ca}, server...)...)
	at := c.joinLine(t)
	if !strings.HasPrefix(at, "tls://") {
		t.Errorf("the coordinator printed %s", at)
	}
	refused(t, "no certificate", "the server wants a certificate", at, "--nats-ca", ca)
	refused(t, "a certificate of a foreign authority", "the server does not take our certificate", append([]string{at, "--nats-ca", ca}, foreign...)...)
	refused(t, "a server of a foreign authority", "the server's certificate is not of an authority that we know (--nats-ca)", append([]string{at, "--nats-ca", otherCA}, client...)...)
	refused(t, "no authority", "the server's certificate is not of an authority that we know", at)
	refused(t, "not told of TLS", "the server's certificate is not of an authority that we know", strings.Replace(at, "tls://", "nats://", 1))
	c.joins(t, out, append([]string{at, "--nats-ca", ca}, client...)...)
}
