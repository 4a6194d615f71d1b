package mls

import "bytes"

// A PSKUsage says what a resumption PSK is for (§8.4).
type PSKUsage uint8

// The usages of a resumption PSK.
const (
	ForApplication PSKUsage = 1
	ForReInit      PSKUsage = 2
	ForBranch      PSKUsage = 3
)

// A PSKID identifies a pre-shared key (§8.4): an external one by ID, or the resumption PSK of a group's epoch.
type PSKID struct {
	Resumption bool
	ID         []byte // of an external PSK
	Usage      PSKUsage
	GroupID    []byte
	Epoch      uint64
	Nonce      []byte // fresh for each use
}

const (
	pskExternal   = 1
	pskResumption = 2
)

func (p *PSKID) append(dst []byte) []byte {
	if p.Resumption {
		dst = append(dst, pskResumption, byte(p.Usage))
		dst = appendU64(appendVector(dst, p.GroupID), p.Epoch)
	} else {
		dst = appendVector(append(dst, pskExternal), p.ID)
	}
	return appendVector(dst, p.Nonce)
}

func readPSKID(r *reader) *PSKID {
	p := new(PSKID)
	switch r.u8() {
	case pskExternal:
		p.ID = r.vector()
	case pskResumption:
		p.Resumption = true
		p.Usage = PSKUsage(r.u8())
		if r.err == nil && (p.Usage < ForApplication || p.Usage > ForBranch) {
			r.fail("a resumption PSK of an unknown usage")
		}
		p.GroupID, p.Epoch = r.vector(), r.u64()
	default:
		r.fail("a PSK of an unknown type")
	}
	p.Nonce = r.vector()
	return p
}

// same says whether two PreSharedKeyIDs are the same. The nonce is part of them (§8.4): one key may be mixed in twice, as when
// two members propose it, with a nonce of each (§12.2).
func (p *PSKID) same(o *PSKID) bool {
	return p.Resumption == o.Resumption && bytes.Equal(p.ID, o.ID) && p.Usage == o.Usage &&
		bytes.Equal(p.GroupID, o.GroupID) && p.Epoch == o.Epoch && bytes.Equal(p.Nonce, o.Nonce)
}

// pskSecret chains pre-shared keys in their order (§8.4).
func (s *suite) pskSecret(ids []*PSKID, keys [][]byte) []byte {
	secret := bytes.Clone(s.zero)
	for i, id := range ids {
		label := appendU16(appendU16(id.append(nil), uint16(i)), uint16(len(ids)))
		input := s.expandWithLabel(s.extract(s.zero, keys[i]), "derived psk", label, s.nh)
		secret = s.extract(input, secret)
	}
	return secret
}
