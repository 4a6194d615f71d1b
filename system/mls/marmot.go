package mls

import (
	"bytes"
	"net/url"
	"unicode/utf8"
)

// The Marmot profile as data on top of RFC 9420: the extension that describes a group, key packages of last resort, and the
// capabilities that both ask for. How Marmot wraps messages in Nostr events is left out. The layout is that of MDK 0.8,
// which writes every field but the first two with the length header of RFC 9420 §2.1.2; the text of MIP-01 has other headers.

// The extension types of the profile.
const (
	LastResort      ExtensionType = 0x000a // of a key package: it may be used more than once
	MarmotGroupData ExtensionType = 0xf2ee
)

const marmotVersion = 2

// A MarmotGroup is the content of a MarmotGroupData extension (MIP-01).
type MarmotGroup struct {
	Version     uint16 // 1 or 2; 0 for 2. A later one is read as far as it is known
	NostrID     [32]byte
	Name        string
	Description string
	Admins      [][32]byte // public keys on secp256k1, x only
	Relays      []string   // ws:// or wss:// URLs
	ImageHash   []byte     // empty, or 32 bytes
	ImageKey    []byte     // empty, or 32 bytes
	ImageNonce  []byte     // empty, or 12 bytes
	UploadKey   []byte     // empty, or 32 bytes; from version 2 on
}

// Extension encodes m.
func (m *MarmotGroup) Extension() (Extension, error) {
	out := *m
	if out.Version == 0 {
		out.Version = marmotVersion
	}
	if err := out.check(); err != nil {
		return Extension{}, refuseFor(ErrArgument, err, "Marmot group data")
	}
	return Extension{MarmotGroupData, out.append(nil)}, nil
}

func (m *MarmotGroup) append(dst []byte) []byte {
	dst = append(appendU16(dst, m.Version), m.NostrID[:]...)
	dst = appendVector(appendVector(dst, m.Name), m.Description)
	start := len(dst)
	for _, a := range m.Admins {
		dst = append(dst, a[:]...)
	}
	dst = closeVector(dst, start)
	start = len(dst)
	for _, r := range m.Relays {
		dst = appendVector(dst, r)
	}
	dst = closeVector(dst, start)
	dst = appendVector(appendVector(appendVector(dst, m.ImageHash), m.ImageKey), m.ImageNonce)
	if m.Version > 1 {
		dst = appendVector(dst, m.UploadKey)
	}
	return dst
}

// ParseMarmotGroup decodes the content of a MarmotGroupData extension and checks it.
func ParseMarmotGroup(data []byte) (*MarmotGroup, error) {
	r := newReader(bytes.Clone(data))
	m := &MarmotGroup{Version: r.u16()}
	copy(m.NostrID[:], r.take(len(m.NostrID)))
	m.Name, m.Description = string(r.vector()), string(r.vector())
	sub := r.list()
	for sub.more() {
		var a [32]byte
		copy(a[:], sub.take(len(a)))
		m.Admins = append(m.Admins, a)
	}
	r.adopt(&sub)
	m.Relays = readList(&r, func(r *reader) string { return string(r.vector()) })
	m.ImageHash, m.ImageKey, m.ImageNonce = r.vector(), r.vector(), r.vector()
	if m.Version > 1 {
		m.UploadKey = r.vector()
	}
	if m.Version > marmotVersion {
		r.data = nil // what a later version adds
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, m.check()
}

func (m *MarmotGroup) check() error {
	switch {
	case m.Version == 0:
		return refuse(ErrMalformed, "Marmot group data of version 0")
	case !utf8.ValidString(m.Name) || !utf8.ValidString(m.Description):
		return refuse(ErrMalformed, "a name or description that is not UTF-8")
	}
	seen := make(map[[32]byte]bool, len(m.Admins))
	for _, a := range m.Admins {
		if seen[a] {
			return refuseFor(ErrMalformed, ErrDuplicate, "an admin stands twice in it")
		}
		seen[a] = true
	}
	for _, r := range m.Relays {
		if u, err := url.Parse(r); err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
			return refuse(ErrMalformed, "relay %.80q is no ws:// or wss:// URL", r)
		}
	}
	for _, f := range []struct {
		name  string
		value []byte
		size  int
	}{{"image hash", m.ImageHash, 32}, {"image key", m.ImageKey, 32}, {"image nonce", m.ImageNonce, 12}, {"image upload key", m.UploadKey, 32}} {
		if len(f.value) != 0 && len(f.value) != f.size {
			return refuse(ErrMalformed, "an %s of %d bytes", f.name, len(f.value))
		}
	}
	return nil
}

// Admin says whether a member's credential is an admin's: a basic one whose identity is the public key.
func (m *MarmotGroup) Admin(c *Credential) bool {
	for _, a := range m.Admins {
		if c.Type == BasicCredential && bytes.Equal(c.Identity, a[:]) {
			return true
		}
	}
	return false
}

// Extensions are those of a Marmot group's context: what m says, and that every member must understand it.
func (m *MarmotGroup) Extensions() ([]Extension, error) {
	data, err := m.Extension()
	if err != nil {
		return nil, err
	}
	return []Extension{Required{Extensions: []ExtensionType{MarmotGroupData}}.Extension(), data}, nil
}

// MarmotCapabilities are those of a member of Marmot groups.
func MarmotCapabilities() *Capabilities {
	c := DefaultCapabilities()
	c.Extensions = []ExtensionType{LastResort, MarmotGroupData}
	return &c
}

// Marmot returns what the group's context says in the Marmot profile; nil when it says nothing.
func (g *Group) Marmot() (*MarmotGroup, error) {
	data, ok := findExtension(g.epoch.context.extensions, MarmotGroupData)
	if !ok {
		return nil, nil
	}
	return ParseMarmotGroup(data)
}

// OfLastResort makes a key package that may be used more than once, for NewKeyPackage.
func OfLastResort() Extension { return Extension{Type: LastResort} }

// IsLastResort says whether a key package may be used more than once.
func (k *KeyPackage) IsLastResort() bool {
	_, ok := findExtension(k.Extensions, LastResort)
	return ok
}
