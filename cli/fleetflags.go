package cli

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"toll/fleet"
	"toll/lab/env"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/suite"
)

// natsFlags are how a NATS server is reached, or how our own lets others in.
type natsFlags struct {
	CA   string `name:"nats-ca" help:"Who signs the other side's certificate on the connection to NATS (PEM)." placeholder:"FILE" type:"existingfile"`
	Cert string `name:"nats-cert" help:"Our certificate on it (PEM)." placeholder:"FILE" type:"existingfile"`
	Key  string `name:"nats-key" help:"Its key (PEM)." placeholder:"FILE" type:"existingfile"`
	NKey string `name:"nkey" help:"Who we are to NATS: file with the seed of an nkey." placeholder:"FILE" type:"existingfile"`
}

// tls makes the configuration of both sides; nil when none of the flags is given.
func (f natsFlags) tls() (*tls.Config, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--nats-cert and --nats-key go together")
	}
	if f.CA == "" && f.Cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("--nats-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--nats-ca: %s holds no certificate in PEM form", f.CA)
		}
		c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("--nats-cert, --nats-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// fleetBuild is which toll this is, with the digest of its file: workers must run the coordinator's.
func fleetBuild() (fleet.Build, error) {
	v := version()
	b := fleet.Build{Version: v.Version, Commit: v.Commit, Dirty: v.Dirty, Go: v.Go, OS: runtime.GOOS, Arch: runtime.GOARCH}
	self, err := os.Executable()
	if err != nil {
		return b, fmt.Errorf("our own binary: %w", err)
	}
	f, err := os.Open(self)
	if err != nil {
		return b, fmt.Errorf("our own binary: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return b, fmt.Errorf("our own binary: %w", err)
	}
	b.SHA256 = hex.EncodeToString(h.Sum(nil))
	return b, nil
}

// fleetMachine is what this machine is, as far as it can be seen.
func fleetMachine(e result.Environment) fleet.Machine {
	m := fleet.Machine{Cores: e.CPU.Logical, GOMAXPROCS: runtime.GOMAXPROCS(0), CPU: e.CPU.BrandCPUID, Kernel: e.OS.Kernel, Governor: e.CPU.Governor, NIC: env.FastestNIC()}
	if e.MemoryMB != nil {
		m.MemoryMB = *e.MemoryMB
	}
	return m
}

// readLoad reads the text of a load file as every machine of a fleet does.
func readLoad(name string, text []byte) (suite.LoadConfig, plan.Settings, []string, error) {
	defaults := loadCmd{URL: fleetPlanFile, VUs: 10, Timeout: 5 * time.Second, Warmup: time.Second, Rounds: 1}
	cfg, settings, err := defaults.read()
	if err != nil {
		return cfg, settings, nil, err
	}
	settings.Duration = 0
	thresholds, err := suite.LoadText(name, text, &cfg, &settings)
	if err != nil {
		return cfg, settings, nil, err
	}
	if !settings.Timed() {
		settings.Duration = plan.Duration(10 * time.Second)
	}
	return cfg, settings, thresholds, nil
}
