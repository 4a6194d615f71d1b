package mls

import (
	"bytes"
	"fmt"
	"time"
)

// An Identity is who a client is in a group: a credential with the signature key that stands for it.
type Identity struct {
	Credential Credential
	suite      *suite
	signer     *signer
}

// NewIdentity makes a signature key for a credential.
func NewIdentity(id Suite, c Credential) (*Identity, error) {
	s, err := suiteOf(id)
	if err != nil {
		return nil, err
	}
	k, err := s.generateSigner()
	if err != nil {
		return nil, fmt.Errorf("make a signature key: %w", err)
	}
	return &Identity{Credential: c, suite: s, signer: k}, nil
}

// ParseIdentity takes a signature private key: an Ed25519 seed, or the scalar of an ECDSA key.
func ParseIdentity(id Suite, c Credential, private []byte) (*Identity, error) {
	s, err := suiteOf(id)
	if err != nil {
		return nil, err
	}
	k, err := s.parseSigner(private)
	if err != nil {
		return nil, err
	}
	return &Identity{Credential: c, suite: s, signer: k}, nil
}

// PrivateKey returns what ParseIdentity takes.
func (i *Identity) PrivateKey() ([]byte, error) { return i.signer.bytes() }

// PublicKey returns the signature key as it stands in a leaf node.
func (i *Identity) PublicKey() []byte { return bytes.Clone(i.signer.public) }

// DefaultLifetime is that of a new key package; DefaultMaxLifetime is the longest that is accepted of others.
const (
	DefaultLifetime    = 12 * 7 * 24 * time.Hour // the longest that OpenMLS calls acceptable
	DefaultMaxLifetime = 400 * 24 * time.Hour
)

// A Config is what a client brings to its groups. Only Identity is required.
type Config struct {
	Identity     *Identity
	Capabilities *Capabilities // nil for DefaultCapabilities
	Extensions   []Extension   // of our leaf nodes
	Lifetime     time.Duration // of our key packages; 0 for DefaultLifetime
	MaxLifetime  time.Duration // of others' leaf nodes; 0 for DefaultMaxLifetime, negative for none
	AnyLifetime  bool          // accept received leaf nodes that are outside their lifetime (§7.3 lets a client choose)
	Window       *Window       // nil for DefaultWindow
	Padding      uint32        // private messages are padded to a multiple of it
	Public       bool          // send handshake messages as PublicMessage (§6.2)
	Resumption   int           // past epochs whose resumption PSK is kept; 0 for 16

	Now          func() time.Time                              // nil for time.Now
	Authenticate func(c Credential, signatureKey []byte) error // §5.3.1; nil accepts every credential
	Succeeds     func(old, new Credential) bool                // may new stand where old stood (§12.1.2)? nil wants them equal
	PSK          func(PSKID) ([]byte, error)                   // external PSKs, and resumption PSKs of other groups

	forge func(at string, v any) // tests make with it what this engine refuses to make; nil otherwise
}

// forged gives a forging test what is being made.
func (c *Config) forged(at string, v any) {
	if c.forge != nil {
		c.forge(at, v)
	}
}

func (c *Config) suite() (*suite, error) {
	if c.Identity == nil {
		return nil, refuse(ErrArgument, "a Config without an Identity")
	}
	return c.Identity.suite, nil
}

func (c *Config) window() Window {
	if c.Window != nil {
		return *c.Window
	}
	return DefaultWindow()
}

func (c *Config) time() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Config) checker() *checker {
	k := &checker{s: c.Identity.suite, now: c.time(), maxLifetime: c.MaxLifetime, anyLifetime: c.AnyLifetime, authenticate: c.Authenticate, succeeds: c.Succeeds, lax: c.forge != nil}
	switch {
	case c.MaxLifetime == 0:
		k.maxLifetime = DefaultMaxLifetime
	case c.MaxLifetime < 0:
		k.maxLifetime = 0
	}
	if k.succeeds == nil {
		k.succeeds = func(old, new Credential) bool { return old.Equal(&new) }
	}
	return k
}

// leaf makes a leaf node without keys or signature.
func (c *Config) leaf() *LeafNode {
	l := &LeafNode{SignatureKey: c.Identity.signer.public, Credential: c.Identity.Credential, Extensions: c.Extensions}
	if c.Capabilities != nil {
		l.Capabilities = *c.Capabilities
	} else {
		l.Capabilities = DefaultCapabilities()
	}
	return l
}

// packageLeaf makes a signed leaf node as it stands in a key package.
func (c *Config) packageLeaf() (*LeafNode, *privateKey, error) {
	s := c.Identity.suite
	key, err := s.generateKeyPair()
	if err != nil {
		return nil, nil, err
	}
	l := c.leaf()
	l.Source, l.EncryptionKey = FromKeyPackage, key.public
	lifetime := c.Lifetime
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	// An hour of grace for clocks that are behind.
	now := c.time()
	l.NotBefore, l.NotAfter = uint64(max(now.Add(-time.Hour).Unix(), 0)), uint64(now.Add(lifetime-time.Hour).Unix())
	return l, key, l.sign(s, c.Identity.signer, nil, 0)
}

// A Bundle is a key package with its private keys. It is for one welcome.
type Bundle struct {
	Package *KeyPackage
	init    *privateKey
	leaf    *privateKey
}

// NewKeyPackage makes a key package to be published.
func (c Config) NewKeyPackage(extensions ...Extension) (*Bundle, error) {
	s, err := c.suite()
	if err != nil {
		return nil, err
	}
	leaf, key, err := c.packageLeaf()
	if err != nil {
		return nil, fmt.Errorf("make a key package: %w", err)
	}
	init, err := s.generateKeyPair()
	if err != nil {
		return nil, fmt.Errorf("make a key package: %w", err)
	}
	k := &KeyPackage{version: versionMLS10, Suite: s.id, InitKey: init.public, Leaf: leaf, Extensions: extensions}
	if k.Signature, err = s.sign(c.Identity.signer, "KeyPackageTBS", k.appendTBS(nil)); err != nil {
		return nil, fmt.Errorf("make a key package: %w", err)
	}
	return &Bundle{Package: k, init: init, leaf: key}, nil
}

// ParseBundle joins a key package, an MLSMessage, with its private keys, raw.
func ParseBundle(keyPackage, initKey, leafKey []byte) (*Bundle, error) {
	k, err := ParseKeyPackage(keyPackage)
	if err != nil {
		return nil, err
	}
	s, err := suiteOf(k.Suite)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Package: k}
	if b.init, err = s.privateKey(initKey); err != nil {
		return nil, refuseFor(ErrKey, err, "the init key")
	}
	if b.leaf, err = s.privateKey(leafKey); err != nil {
		return nil, refuseFor(ErrKey, err, "the leaf's encryption key")
	}
	if !bytes.Equal(b.init.public, k.InitKey) || !bytes.Equal(b.leaf.public, k.Leaf.EncryptionKey) {
		return nil, refuse(ErrKeyPackage, "its private keys belong to another")
	}
	return b, nil
}

// PrivateKeys returns what ParseBundle takes beside the key package.
func (b *Bundle) PrivateKeys() (initKey, leafKey []byte) { return b.init.Bytes(), b.leaf.Bytes() }
