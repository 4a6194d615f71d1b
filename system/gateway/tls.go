package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Kinds of client authentication.
const (
	ClientNone     = "none"
	ClientOptional = "optional" // a certificate that is given must verify
	ClientRequired = "required" // the handshake fails without one
)

// TLS says how connections are encrypted and who may make requests. The files are read at start and by Reload.
type TLS struct {
	Cert, Key string // PEM files
	Clients   string // ClientNone when empty
	CA        string // PEM file of the authorities that sign clients' certificates
	Allow     string // file of the subjects and alternative names that may make requests; empty allows every verified client
}

func (t *TLS) check() error {
	switch {
	case t == nil:
		return nil
	case t.Cert == "" || t.Key == "":
		return errors.New("tls: cert and key are both needed")
	case t.Clients != "" && t.Clients != ClientNone && t.Clients != ClientOptional && t.Clients != ClientRequired:
		return fmt.Errorf("tls: clients %q; expected none, optional or required", t.Clients)
	case t.verifies() && t.CA == "":
		return fmt.Errorf("tls: clients are %s to have a certificate, and no ca says who signs them", t.Clients)
	case !t.verifies() && t.CA != "":
		return errors.New("tls: ca without clients: optional or required")
	}
	return nil
}

func (t *TLS) verifies() bool { return t.Clients == ClientOptional || t.Clients == ClientRequired }

// Config reads the files and returns what a server of another kind than a gateway needs to do the same handshakes.
func (t *TLS) Config() (*tls.Config, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	m, err := t.read()
	if err != nil {
		return nil, err
	}
	return m.config, nil
}

// A material is what the files held when they were last read. It is replaced as a whole.
type material struct {
	config  *tls.Config // nil in the clear
	clients *x509.CertPool
	allow   *allowed // nil allows every verified client
}

// read reads the files. A new configuration has new keys for session tickets, so that no session outlives a change of the
// authorities.
func (t *TLS) read() (*material, error) {
	if t == nil {
		return new(material), nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: cert %s, key %s: %w", t.Cert, t.Key, err)
	}
	m := &material{config: &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
	}}
	if t.Allow != "" {
		text, err := os.ReadFile(t.Allow)
		if err == nil {
			m.allow, err = parseAllowed(string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("tls: allow %s: %w", t.Allow, err)
		}
	}
	if !t.verifies() {
		return m, nil
	}
	text, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("tls: ca: %w", err)
	}
	m.clients = x509.NewCertPool()
	if !m.clients.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls: ca %s: no certificate in it", t.CA)
	}
	m.config.ClientCAs, m.config.ClientAuth = m.clients, tls.VerifyClientCertIfGiven
	if t.Clients == ClientRequired {
		m.config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return m, nil
}
