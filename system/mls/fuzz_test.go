package mls

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
	"testing"
)

// seedMessages adds messages of every kind to a fuzz target's corpus.
func seedMessages(f *testing.F) {
	for i, v := range readVectors[map[string]hexBytes](f, "messages") {
		if i >= 3 {
			break
		}
		for _, data := range v {
			f.Add([]byte(data))
		}
	}
	f.Add([]byte{0, 1, 0, 3, 0, 1, 0xc0})
	f.Add([]byte{0x40, 0x01})
}

// FuzzDecode holds every decoder to this: what it takes is encoded again to the same bytes, what it refuses is malformed.
func FuzzDecode(f *testing.F) {
	seedMessages(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, again := range map[string]func([]byte) ([]byte, error){
			"message": recode(func(r *reader) *message {
				m, err := parseMessage(r.take(len(r.data)))
				if err != nil && r.err == nil {
					r.err = err
				}
				return m
			}, func(m *message) []byte { return m.append(nil) }),
			"tree":          recode(readTreeNodes, func(n []node) []byte { return treeOf(nil, n).append(nil) }),
			"secrets":       recode(readGroupSecrets, func(g *groupSecrets) []byte { return g.append(nil) }),
			"commit":        recode(readCommit, func(c *Commit) []byte { return c.append(nil) }),
			"proposal":      recode(readProposal, func(p *Proposal) []byte { return p.append(nil) }),
			"leaf":          recode(readLeafNode, func(l *LeafNode) []byte { return l.append(nil) }),
			"authenticated": recode(readAuthenticated, func(a *authenticated) []byte { return a.append(nil) }),
			"context":       recode(readGroupContext, func(c groupContext) []byte { return c.append(nil) }),
			"required":      recode(readRequired, func(r Required) []byte { return r.Extension().Data }),
			"senders":       recode(readExternalSenders, func(l []External) []byte { return ExternalSendersExtension(l).Data }),
		} {
			got, err := again(data)
			switch {
			case err == nil && !bytes.Equal(got, data):
				t.Errorf("%s: %x is encoded again as %x", name, data, got)
			case err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion):
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// FuzzOpen gives a live group anything: it must refuse and stay as it was, or read what is really for it.
func FuzzOpen(f *testing.F) {
	a, b := pair(f, nil)
	f.Add(seal(f, a, "hello"))
	f.Add(must(a.group.Commit(CommitOptions{}))(f).Message)
	seedMessages(f)
	stored := must(b.group.Snapshot(0))(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := must(Load(b.config, stored))(t)
		if _, err := g.Open(data); err != nil && !bytes.Equal(must(g.Snapshot(0))(t), stored) {
			t.Errorf("%v changed the state", err)
		}
	})
}

// FuzzLoad gives the stored state's decoder anything.
func FuzzLoad(f *testing.F) {
	a, b := pair(f, nil)
	b.open(f, seal(f, a, "hello"))
	stored := must(b.group.Snapshot(0))(f)
	f.Add(stored)
	f.Add(stored[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Load(b.config, data)
		if err != nil {
			return
		}
		g.Open(data)
		if _, err := g.Snapshot(0); err != nil {
			t.Error(err)
		}
	})
}

// hpkeOf returns the standard library's algorithms of a suite.
func hpkeOf(id Suite) (hpke.KEM, hpke.KDF, hpke.AEAD) {
	switch id {
	case P256AES128:
		return hpke.DHKEM(ecdh.P256()), hpke.HKDFSHA256(), hpke.AES128GCM()
	case X25519ChaCha:
		return hpke.DHKEM(ecdh.X25519()), hpke.HKDFSHA256(), hpke.ChaCha20Poly1305()
	case P521AES256:
		return hpke.DHKEM(ecdh.P521()), hpke.HKDFSHA512(), hpke.AES256GCM()
	case P384AES256:
		return hpke.DHKEM(ecdh.P384()), hpke.HKDFSHA384(), hpke.AES256GCM()
	}
	return hpke.DHKEM(ecdh.X25519()), hpke.HKDFSHA256(), hpke.AES128GCM()
}

func hashed(s *suite, info []byte) *hpkeInfo {
	h := s.hpkeInfo(info)
	return &h
}

// FuzzHPKE compares our HPKE with the standard library's, both ways, for every suite and seam.
func FuzzHPKE(f *testing.F) {
	f.Add([]byte("input key material of some length"), []byte("info"), []byte("plaintext"))
	f.Add([]byte{}, []byte{}, []byte{})
	f.Add([]byte{1}, bytes.Repeat([]byte{2}, 700), bytes.Repeat([]byte{3}, 5000))
	f.Fuzz(func(t *testing.T, ikm, info, plain []byte) {
		for _, id := range Suites() {
			for _, s := range onSeams(t, id) {
				kem, kdf, aead := hpkeOf(id)
				ours, theirs := must(s.deriveKeyPair(ikm))(t), must(kem.DeriveKeyPair(ikm))(t)
				if !bytes.Equal(ours.public, theirs.PublicKey().Bytes()) {
					t.Fatalf("suite %d: DeriveKeyPair(%x) differs", id, ikm)
				}
				ct := must(s.seal(must(s.publicKey(ours.public))(t), hashed(s, info), plain))(t)
				got := must(hpke.Open(theirs, kdf, aead, info, append(bytes.Clone(ct.KEMOutput), ct.Data...)))(t)
				sealed := must(hpke.Seal(theirs.PublicKey(), kdf, aead, info, plain))(t)
				n := len(ct.KEMOutput)
				back := must(s.open(ours, info, Ciphertext{sealed[:n], sealed[n:]}))(t)
				if !bytes.Equal(got, plain) || !bytes.Equal(back, plain) {
					t.Errorf("suite %d: %x is opened as %x there and %x here", id, plain, got, back)
				}
				var c hpkeContext
				enc := must(s.setupSender(&c, must(s.publicKey(ours.public))(t), hashed(s, info), true))(t)
				there := must(hpke.NewRecipient(enc, theirs, kdf, aead, info))(t)
				if !bytes.Equal(s.export(&c, externalLabel), must(there.Export(externalLabel, s.nh))(t)) {
					t.Errorf("suite %d: another exported secret", id)
				}
			}
		}
	})
}

func TestBadInputsGiveTheirError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "malformed: at byte 0: too short"},
		{[]byte{0, 2, 0, 1}, "protocol version not supported: a message of version 2"},
		{[]byte{0, 1, 0, 9}, "malformed: at byte 4: an unknown wire format"},
		{[]byte{0, 1, 0, 3, 0, 1, 0xc0}, "malformed: at byte 7: a length header that is reserved"},
		{[]byte{0, 1, 0, 3, 0, 1, 0x40, 0x05}, "malformed: at byte 8: a length in more bytes than it needs"},
		{[]byte{0, 1, 0, 3, 0, 1, 0x80, 0, 1, 0}, "malformed: at byte 10: a length in more bytes than it needs"},
		{[]byte{0, 1, 0, 3, 0, 1, 0x05, 1}, "malformed: at byte 7: too short"},
		{[]byte{0, 1, 0, 3, 0, 1, 0, 0, 9}, "malformed: at byte 8: trailing bytes"},
		{[]byte{0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}, "malformed: at byte 17: content of an unknown type"},
		{[]byte{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, "malformed: at byte 14: a sender of an unknown type"},
		{make([]byte, maxMessage+1), "malformed: 67108865 bytes, more than the 67108864 this engine takes"},
	} {
		_, err := parseMessage(c.data)
		if err == nil || err.Error() != c.want {
			t.Errorf("%.40x: got %v, want %s", c.data, err, c.want)
		}
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte{0}, "malformed: at byte 1: a tree that ends in a blank node"},
		{[]byte{1, 0}, "malformed: at byte 2: a tree that ends in a blank node"},
		{[]byte{1, 2}, "malformed: at byte 2: a presence octet that is neither 0 nor 1"},
		{[]byte{2, 1, 2}, "malformed: at byte 3: a node of the wrong type for its place"},
	} {
		_, err := decode(c.data, readTreeNodes)
		if err == nil || err.Error() != c.want {
			t.Errorf("tree %x: got %v, want %s", c.data, err, c.want)
		}
	}
}

// TestATreeOfBlanksIsBounded: forty times a message's size must not be allocated for nothing.
func TestATreeOfBlanksIsBounded(t *testing.T) {
	t.Parallel()
	blanks := appendVector(nil, make([]byte, maxMessage-8))
	if _, err := decode(blanks, readTreeNodes); err == nil || err.Error() != "malformed: at byte 524291: a tree of more nodes than this engine takes" {
		t.Errorf("%v", err)
	}
}
