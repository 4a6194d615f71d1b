package mls

import (
	"bytes"
	"slices"
)

// An ExtensionType names an extension (§17.3).
type ExtensionType uint16

// The extension types of RFC 9420. They are known to everyone and never listed in capabilities (§7.2).
const (
	ApplicationID        ExtensionType = 1
	RatchetTree          ExtensionType = 2
	RequiredCapabilities ExtensionType = 3
	ExternalPub          ExtensionType = 4
	ExternalSenders      ExtensionType = 5
)

func (t ExtensionType) isDefault() bool { return t >= ApplicationID && t <= ExternalSenders }

// An Extension is an extension as it stands on the wire (§13.4).
type Extension struct {
	Type ExtensionType
	Data []byte
}

func appendExtensions(dst []byte, list []Extension) []byte {
	start := len(dst)
	for _, e := range list {
		dst = appendVector(appendU16(dst, uint16(e.Type)), e.Data)
	}
	return closeVector(dst, start)
}

func readExtensions(r *reader) []Extension {
	list := readList(r, func(r *reader) Extension { return Extension{ExtensionType(r.u16()), r.vector()} })
	for i, e := range list {
		for _, o := range list[:i] {
			if e.Type == o.Type {
				r.fail("two extensions of one type")
			}
		}
	}
	return list
}

func findExtension(list []Extension, t ExtensionType) ([]byte, bool) {
	for _, e := range list {
		if e.Type == t {
			return e.Data, true
		}
	}
	return nil, false
}

func equalExtensions(a, b []Extension) bool {
	return bytes.Equal(appendExtensions(nil, a), appendExtensions(nil, b))
}

// Capabilities say what a member supports (§7.2).
type Capabilities struct {
	Versions    []uint16
	Suites      []Suite
	Extensions  []ExtensionType
	Proposals   []ProposalType
	Credentials []CredentialType
}

// DefaultCapabilities are those of this engine: version 1, its ciphersuites, both credential types.
func DefaultCapabilities() Capabilities {
	return Capabilities{Versions: []uint16{versionMLS10}, Suites: Suites(), Credentials: []CredentialType{BasicCredential, X509Credential}}
}

func (c *Capabilities) append(dst []byte) []byte {
	dst = appendU16s(dst, c.Versions)
	dst = appendU16s(dst, c.Suites)
	dst = appendU16s(dst, c.Extensions)
	dst = appendU16s(dst, c.Proposals)
	return appendU16s(dst, c.Credentials)
}

func (c *Capabilities) equal(o *Capabilities) bool {
	return slices.Equal(c.Versions, o.Versions) && slices.Equal(c.Suites, o.Suites) && slices.Equal(c.Extensions, o.Extensions) &&
		slices.Equal(c.Proposals, o.Proposals) && slices.Equal(c.Credentials, o.Credentials)
}

// A lastCapabilities is what the leaf node before had: as a rule all of a group's members have the same, and share it.
type lastCapabilities struct {
	encoded []byte
	decoded Capabilities
}

func readCapabilities(r *reader) Capabilities {
	if r.last == nil || r.err != nil {
		return decodeCapabilities(r)
	}
	// An encoding is its own end, so what begins alike is alike.
	if n := len(r.last.encoded); n > 0 && bytes.HasPrefix(r.data, r.last.encoded) {
		r.data = r.data[n:]
		return r.last.decoded
	}
	before := r.data
	c := decodeCapabilities(r)
	if r.err == nil {
		*r.last = lastCapabilities{before[:len(before)-len(r.data)], c}
	}
	return c
}

func decodeCapabilities(r *reader) Capabilities {
	return Capabilities{
		Versions: readU16s[uint16](r), Suites: readU16s[Suite](r), Extensions: readU16s[ExtensionType](r),
		Proposals: readU16s[ProposalType](r), Credentials: readU16s[CredentialType](r),
	}
}

func (c *Capabilities) extension(t ExtensionType) bool {
	return t.isDefault() || slices.Contains(c.Extensions, t)
}

func (c *Capabilities) proposal(t ProposalType) bool {
	return t.isDefault() || slices.Contains(c.Proposals, t)
}

// Required is the content of a required_capabilities extension (§11.1).
type Required struct {
	Extensions  []ExtensionType
	Proposals   []ProposalType
	Credentials []CredentialType
}

// Extension encodes r.
func (r Required) Extension() Extension {
	data := appendU16s(nil, r.Extensions)
	data = appendU16s(data, r.Proposals)
	return Extension{RequiredCapabilities, appendU16s(data, r.Credentials)}
}

func readRequired(r *reader) Required {
	return Required{readU16s[ExtensionType](r), readU16s[ProposalType](r), readU16s[CredentialType](r)}
}

// meets says what of r the capabilities lack, or nil.
func (r *Required) meets(c *Capabilities) error {
	for _, t := range r.Extensions {
		if !c.extension(t) {
			return refuse(ErrCapabilities, "extension type %d is required", t)
		}
	}
	for _, t := range r.Proposals {
		if !c.proposal(t) {
			return refuse(ErrCapabilities, "proposal type %d is required", t)
		}
	}
	for _, t := range r.Credentials {
		if !slices.Contains(c.Credentials, t) {
			return refuse(ErrCapabilities, "credential type %d is required", t)
		}
	}
	return nil
}

// An External is one entry of an external_senders extension (§12.1.8.1).
type External struct {
	SignatureKey []byte
	Credential   Credential
}

// ExternalSendersExtension encodes the parties outside the group that may send it proposals.
func ExternalSendersExtension(list []External) Extension {
	var data []byte
	for _, e := range list {
		data = appendVector(data, e.SignatureKey)
		data = e.Credential.append(data)
	}
	return Extension{ExternalSenders, closeVector(data, 0)}
}

func readExternalSenders(r *reader) []External {
	return readList(r, func(r *reader) External { return External{r.vector(), readCredential(r)} })
}

// decodeKnown decodes the extensions of a group context that this engine acts on, so that none is malformed.
func decodeKnown(list []Extension) (required *Required, senders []External, err error) {
	for _, e := range list {
		switch e.Type {
		case RequiredCapabilities:
			got, err := decode(e.Data, readRequired)
			if err != nil {
				return nil, nil, err
			}
			required = &got
		case ExternalSenders:
			if senders, err = decode(e.Data, readExternalSenders); err != nil {
				return nil, nil, err
			}
		}
	}
	return required, senders, nil
}
