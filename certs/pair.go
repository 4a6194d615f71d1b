package certs

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A Pair is a certificate and its private key, as tls.X509KeyPair takes them.
type Pair struct {
	CertPEM []byte // one certificate; the authority is its direct issuer
	KeyPEM  []byte // PKCS #8
}

func newPair(cert *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("key of %s: %w", cert.Subject.CommonName, err)
	}
	return Pair{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}, nil
}

// WriteFiles writes dir/name.crt (mode 0644) and dir/name.key (mode 0600) and returns their paths. A file that is there
// already is an error: it might be readable by others.
func (p Pair) WriteFiles(dir, name string) (certFile, keyFile string, err error) {
	if name == ".." || filepath.Base(name) != name {
		return "", "", fmt.Errorf("write certificate: %q is no file name", name)
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := writeNew(keyFile, p.KeyPEM, 0o600); err != nil {
		return "", "", err
	}
	if err := writeNew(certFile, p.CertPEM, 0o644); err != nil {
		return "", "", err
	}
	return certFile, keyFile, nil
}

func writeNew(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
