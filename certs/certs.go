// Package certs makes the certificates of one run: an authority of its own and the server and client certificates it
// signs, all valid for a day. It is for tests and benchmarks: it keeps no authority on disk, revokes nothing, renews nothing
// and never touches the system's trust store.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	backdate = time.Minute    // for a peer whose clock is behind
	lifetime = 24 * time.Hour // longer than any run
)

// An Authority signs the certificates of one run. Its key never leaves the process. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
}

// New makes an authority with an ECDSA P-256 key. It and what it signs are valid from a minute before now() for a day.
func New(now func() time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	t := template("toll throw-away CA", now())
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	t.IsCA, t.MaxPathLenZero = true, true
	cert, err := sign(t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the authority: %w", err)
	}
	return &Authority{cert: cert, key: key, now: now}, nil
}

// Server makes a certificate for a server that answers at the hosts: names or IP addresses, without a port.
func (a *Authority) Server(hosts ...string) (Pair, error) {
	if len(hosts) == 0 {
		return Pair{}, errors.New("server certificate: no host")
	}
	t := template(hosts[0], a.now())
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if err := cover(t, h); err != nil {
			return Pair{}, err
		}
	}
	return a.issue(t)
}

// cover adds one host to the certificate's alternative names.
func cover(t *x509.Certificate, host string) error {
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = append(t.IPAddresses, ip)
		return nil
	}
	if host == "" || strings.ContainsAny(host, ":/[] ") {
		return fmt.Errorf("server certificate: %q is neither a name nor an IP address", host)
	}
	t.DNSNames = append(t.DNSNames, host)
	return nil
}

// Client makes a certificate for a client, whose name is the certificate's common name.
func (a *Authority) Client(name string) (Pair, error) {
	if name == "" {
		return Pair{}, errors.New("client certificate: no name")
	}
	t := template(name, a.now())
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(t)
}

// Pool returns a new pool that trusts this authority and nothing else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// PEM returns the authority's certificate, without its key.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// issue signs the template for a new key.
func (a *Authority) issue(t *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("key of %s: %w", t.Subject.CommonName, err)
	}
	cert, err := sign(t, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", t.Subject.CommonName, err)
	}
	return newPair(cert, key)
}

// template is what every certificate of a run shares. CreateCertificate chooses the serial number.
func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"toll"}, CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}

// sign makes the certificate and reads it back, so a malformed host or name is an error here and not in a handshake.
func sign(t, parent *x509.Certificate, public crypto.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
