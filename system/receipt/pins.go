package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Pins are the keys that a verifier trusts for one gateway: a JSON Web Key Set with the gateway's name, and with the places
// in the log from which on a key is not to be believed. A receipt never brings a key of its own.
type Pins struct {
	Gateway string `json:"gateway"`
	Keys    []Pin  `json:"keys"`
}

// A Pin is one key. The places are those of the log, which nobody can choose afterwards, and not times.
type Pin struct {
	KTY     string `json:"kty"`
	CRV     string `json:"crv"`
	X       string `json:"x"`
	KID     string `json:"kid"`
	From    int64  `json:"from,omitempty"`       // first seq that it may sign
	Retired *int64 `json:"retired_at,omitempty"` // seq of the rotation: what it signs must stand before
	Revoked *int64 `json:"revoked_at,omitempty"` // seq from which on another may have used it

	public ed25519.PublicKey
}

// PinOf pins a public key.
func PinOf(public ed25519.PublicKey) Pin {
	return Pin{KTY: "OKP", CRV: algorithm, X: base64.RawURLEncoding.EncodeToString(public), KID: KID(public), public: public}
}

// Public is the key itself.
func (p Pin) Public() ed25519.PublicKey { return p.public }

// maxPins bounds a file of pins: bytes.
const maxPins = 1 << 20

// LoadPins reads a file of pins.
func LoadPins(file string) (*Pins, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPins))
	if err != nil {
		return nil, err
	}
	p, err := ParsePins(text)
	if err != nil {
		return nil, fmt.Errorf("pins %s: %w", file, err)
	}
	return p, nil
}

// ParsePins reads pins: an unknown member, a key of another kind, or a kid that is not the key's thumbprint is an error.
func ParsePins(text []byte) (*Pins, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var p Pins
	if err := d.Decode(&p); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the key set")
	}
	if len(p.Keys) == 0 {
		return nil, errors.New("no keys")
	}
	if why := badGateway(p.Gateway); why != "" {
		return nil, fmt.Errorf("gateway %q %s", p.Gateway, why)
	}
	for i := range p.Keys {
		k := &p.Keys[i]
		x, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
		switch {
		case k.KTY != "OKP" || k.CRV != algorithm:
			return nil, fmt.Errorf("key %d is %s %s; want OKP Ed25519", i, k.KTY, k.CRV)
		case err != nil || len(x) != ed25519.PublicKeySize:
			return nil, fmt.Errorf("key %d: x is not 32 bytes in base64url", i)
		case KID(x) != k.KID:
			return nil, fmt.Errorf("key %d: kid %q is not its thumbprint %s", i, k.KID, KID(x))
		case p.find(k.KID) != k:
			return nil, fmt.Errorf("key %d: %s stands twice", i, k.KID)
		}
		k.public = x
	}
	return &p, nil
}

// find returns the first pin of a kid, nil without one.
func (p *Pins) find(kid string) *Pin {
	for i := range p.Keys {
		if p.Keys[i].KID == kid {
			return &p.Keys[i]
		}
	}
	return nil
}

// Revoke marks a key: what it signed from seq on is not believed, nor, without the log, anything else.
func (p *Pins) Revoke(kid string, seq int64) error {
	k := p.find(kid)
	if k == nil {
		return fmt.Errorf("no key %q in the set", kid)
	}
	k.Revoked = &seq
	return nil
}

// Rotate marks old as retired at seq and pins the next key from there on.
func (p *Pins) Rotate(old string, next ed25519.PublicKey, seq int64) error {
	k := p.find(old)
	if k == nil {
		return fmt.Errorf("no key %q in the set", old)
	}
	k.Retired = &seq
	pin := PinOf(next)
	pin.From = seq + 1
	p.Keys = append(p.Keys, pin)
	return nil
}

// Encode returns the pins as text.
func (p *Pins) Encode() []byte {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic("pins that do not marshal: " + err.Error())
	}
	return append(text, '\n')
}

// WriteFile replaces a file of pins in one step.
func (p *Pins) WriteFile(file string) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".pins-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(p.Encode())
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		os.Remove(tmp.Name())
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// badGateway says what is wrong with a gateway's name: it stands in checkpoints, and in the name of a note's key.
func badGateway(name string) string {
	if why := badName(name, maxName); why != "" {
		return why
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7F || c == '+' || c == '"' || c == '\\' {
			return "has a character other than visible ASCII without + \" and \\"
		}
	}
	return ""
}
