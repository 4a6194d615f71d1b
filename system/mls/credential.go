package mls

import "bytes"

// A CredentialType names how a member is identified (§17.5).
type CredentialType uint16

// The credential types of RFC 9420.
const (
	BasicCredential CredentialType = 1
	X509Credential  CredentialType = 2
)

// A Credential says who a member is (§5.3). Whether it is true is for Config.Authenticate to say.
type Credential struct {
	Type     CredentialType
	Identity []byte   // of a basic credential
	Chain    [][]byte // of an X.509 credential: DER, the leaf certificate first
}

// Basic returns a basic credential.
func Basic(identity []byte) Credential { return Credential{Type: BasicCredential, Identity: identity} }

func (c *Credential) append(dst []byte) []byte {
	dst = appendU16(dst, uint16(c.Type))
	if c.Type == X509Credential {
		start := len(dst)
		for _, der := range c.Chain {
			dst = appendVector(dst, der)
		}
		return closeVector(dst, start)
	}
	return appendVector(dst, c.Identity)
}

func readCredential(r *reader) Credential {
	c := Credential{Type: CredentialType(r.u16())}
	switch c.Type {
	case BasicCredential:
		c.Identity = r.vector()
	case X509Credential:
		c.Chain = readList(r, (*reader).vector)
	default:
		r.fail("a credential of an unknown type")
	}
	return c
}

// Equal compares two credentials.
func (c *Credential) Equal(o *Credential) bool { return bytes.Equal(c.append(nil), o.append(nil)) }
