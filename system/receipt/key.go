package receipt

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// A Key signs, wherever its secret is kept: Signer may ask a device or another process. Its public key must be Ed25519.
type Key struct {
	Signer crypto.Signer // nil when only the public key is here
	Public ed25519.PublicKey
	KID    string // RFC 7638 thumbprint of the public key
}

// NewKey makes a Key of a signer.
func NewKey(s crypto.Signer) (Key, error) {
	public, ok := s.Public().(ed25519.PublicKey)
	if !ok || len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("the key is a %T; receipts are signed with Ed25519", s.Public())
	}
	return Key{s, public, KID(public)}, nil
}

// PublicKey makes a Key that can't sign.
func PublicKey(public ed25519.PublicKey) Key { return Key{nil, public, KID(public)} }

// KID is the RFC 7638 thumbprint of a public key, in base64url.
func KID(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sign signs a message.
func (k *Key) sign(message []byte) ([]byte, error) {
	sig, err := k.Signer.Sign(nil, message, crypto.Hash(0))
	switch {
	case err != nil:
		return nil, refuse(Unavailable, "the key %s can't sign: %v", k.KID, err)
	case len(sig) != ed25519.SignatureSize:
		return nil, refuse(Unavailable, "the key %s gave a signature of %d bytes", k.KID, len(sig))
	}
	return sig, nil
}

// GenerateKey writes a new private key to a file that must not exist: PKCS#8 in PEM, mode 0600, synced.
func GenerateKey(file string) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Key{}, err
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), f.Sync(), f.Close()); err != nil {
		return Key{}, err
	}
	return NewKey(private)
}

// LoadKey reads a private key: PKCS#8 in PEM. A file that others can read is refused.
func LoadKey(file string) (Key, error) {
	f, err := os.Open(file)
	if err != nil {
		return Key{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return Key{}, fmt.Errorf("key %s: mode %#o lets others use it; chmod 600 it", file, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return Key{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return Key{}, fmt.Errorf("key %s: no PEM block PRIVATE KEY in it", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("key %s: %w", file, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, fmt.Errorf("key %s: it is a %T; receipts are signed with Ed25519", file, parsed)
	}
	return NewKey(private)
}

// appendCheckpoint appends a checkpoint's text (C2SP tlog-checkpoint): origin, size and root, a line each.
func appendCheckpoint(dst []byte, origin string, size uint64, root Hash) []byte {
	dst = append(append(dst, origin...), '\n')
	dst = append(appendUint(dst, size), '\n')
	return append(base64.StdEncoding.AppendEncode(dst, root[:]), '\n')
}

// appendNote signs a text as a C2SP signed note would be, and appends text and signature line.
func appendNote(dst, text []byte, name string, public ed25519.PublicKey, sig []byte) []byte {
	dst = append(append(append(dst, text...), "\n— "...), name...)
	var blob [4 + ed25519.SignatureSize]byte
	binary.BigEndian.PutUint32(blob[:], noteHash(name, public))
	copy(blob[4:], sig)
	return append(base64.StdEncoding.AppendEncode(append(dst, ' '), blob[:]), '\n')
}

// noteHash is the id that a signed note's line gives its key.
func noteHash(name string, public ed25519.PublicKey) uint32 {
	h := sha256.New()
	io.WriteString(h, name+"\n\x01")
	h.Write(public)
	return binary.BigEndian.Uint32(h.Sum(nil))
}
