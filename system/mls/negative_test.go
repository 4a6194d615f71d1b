package mls

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// The negative suite: one mutation per check, made by a member that checks nothing itself. Whoever can see it refuses it
// with the error that names it, and stays as it was.

// A role is someone who must refuse.
type role string

const (
	committer role = "committer" // asked to cover it
	member    role = "member"    // processing the commit that covers it
	joiner    role = "joiner"    // by the welcome of the same commit
)

// A stage is a group for one mutation: an honest member, one that forges, and one that is to join.
type stage struct {
	t        *testing.T
	s        *suite
	all      []*client // member 0 forges when asked to, member 1 is honest, member 2 is there
	stranger *client   // joins by the forged commit
	bundle   *Bundle
}

func newStage(t *testing.T, id Suite, configure func(*Config), extensions ...Extension) *stage {
	t.Helper()
	st := &stage{t: t, s: must(suiteOf(id))(t), all: newClients(t, id, 3), stranger: newClient(t, id, "stranger")}
	for _, c := range append(slices.Clone(st.all), st.stranger) {
		if configure != nil {
			configure(&c.config)
		}
	}
	createGroup(t, st.all, CommitOptions{}, extensions...)
	st.bundle = st.stranger.bundle(t)
	return st
}

// forge has member 0 commit without checking anything; edit sees what is made on the way.
func (st *stage) forge(o CommitOptions, edit func(at string, v any)) *Staged {
	st.t.Helper()
	g := st.all[0].group
	if edit == nil {
		edit = func(string, any) {}
	}
	g.config.forge = edit
	defer func() { g.config.forge = nil }()
	o.Proposals = append(o.Proposals, Add(st.bundle.Package))
	return must(g.Commit(o))(st.t)
}

// refuses fails unless err is the error that is due.
func refuses(t *testing.T, r role, err error, want ...error) {
	t.Helper()
	if err == nil {
		t.Errorf("the %s accepts it", r)
		return
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("the %s refuses it with %q, which is not %q", r, err, w)
		}
	}
}

// memberRefuses has member 1 read a message that it must refuse, and stay as it was.
func (st *stage) memberRefuses(message []byte, want ...error) {
	st.t.Helper()
	g := st.all[1].group
	before := must(g.Snapshot(0))(st.t)
	_, err := g.Open(message)
	refuses(st.t, member, err, want...)
	if !bytes.Equal(must(g.Snapshot(0))(st.t), before) {
		st.t.Error("the refused message changed the member's state")
	}
}

func (st *stage) joinerRefuses(welcome []byte, want ...error) {
	st.t.Helper()
	_, err := Join(st.stranger.config, welcome, st.bundle, JoinOptions{})
	refuses(st.t, joiner, err, want...)
}

// committerRefuses has member 1 asked to commit proposals that it must refuse, and stay as it was.
func (st *stage) committerRefuses(list []Proposal, want ...error) {
	st.t.Helper()
	g := st.all[1].group
	before := must(g.Snapshot(0))(st.t)
	_, err := g.Commit(CommitOptions{Proposals: list})
	refuses(st.t, committer, err, want...)
	if !bytes.Equal(must(g.Snapshot(0))(st.t), before) {
		st.t.Error("the refused proposals changed the committer's state")
	}
}

// A counter prints how many mutations each role refused.
type counter map[role]int

func (c counter) print(t *testing.T) {
	t.Logf("refused: %d by the committer, %d by a member, %d by the joiner", c[committer], c[member], c[joiner])
}

// A packageMutation is a key package that must not be added.
type packageMutation struct {
	name   string
	edit   func(m *madePackage)
	want   error
	joiner error // what the joiner says; nil when it can't see it
}

// A madePackage is a key package that is being forged: it is signed again after the edit unless that is what is forged.
type madePackage struct {
	st         *stage
	id         *Identity
	k          *KeyPackage
	keepLeaf   bool // leave the leaf node's signature
	keepPacket bool // leave the key package's signature
}

func (st *stage) mutated(edit func(*madePackage)) *KeyPackage {
	c := newClient(st.t, st.s.id, "intruder")
	m := &madePackage{st: st, id: c.config.Identity, k: c.bundle(st.t).Package}
	edit(m)
	if !m.keepLeaf {
		check(st.t, m.k.Leaf.sign(st.s, m.id.signer, nil, 0))
	}
	if !m.keepPacket {
		m.k.Signature = must(st.s.sign(m.id.signer, "KeyPackageTBS", m.k.appendTBS(nil)))(st.t)
	}
	return m.k
}

func seconds(d time.Duration) uint64 { return uint64(testTime().Add(d).Unix()) }

var smallOrderKey = append([]byte{1}, make([]byte, 31)...)

func packageMutations() []packageMutation {
	flip := func(b []byte) []byte { c := bytes.Clone(b); c[len(c)/2] ^= 1; return c }
	own := func(m *madePackage) *Capabilities { return &m.k.Leaf.Capabilities }
	return []packageMutation{
		{"leaf signature", func(m *madePackage) { m.k.Leaf.Signature, m.keepLeaf = flip(m.k.Leaf.Signature), true }, ErrSignature, ErrSignature},
		{"leaf content under its old signature", func(m *madePackage) { m.k.Leaf.NotAfter++; m.keepLeaf = true }, ErrSignature, ErrSignature},
		{"key package signature", func(m *madePackage) { m.k.Signature, m.keepPacket = flip(m.k.Signature), true }, ErrSignature, nil},
		{"ciphersuite", func(m *madePackage) { m.k.Suite = P256AES128 }, ErrSuite, nil},
		{"version", func(m *madePackage) { m.k.version = 2 }, ErrVersion, nil},
		{"init key is the encryption key", func(m *madePackage) { m.k.InitKey = m.k.Leaf.EncryptionKey }, ErrDuplicate, nil},
		{"lifetime over", func(m *madePackage) { m.k.Leaf.NotAfter = seconds(-time.Second) }, ErrLifetime, ErrLifetime},
		{"lifetime to come", func(m *madePackage) { m.k.Leaf.NotBefore = seconds(time.Second) }, ErrLifetime, ErrLifetime},
		{"lifetime too long", func(m *madePackage) { m.k.Leaf.NotBefore = 0 }, ErrLifetime, ErrLifetime},
		{"lifetime ends before it begins", func(m *madePackage) {
			m.k.Leaf.NotBefore, m.k.Leaf.NotAfter = seconds(-time.Second), seconds(-2*time.Second)
		}, ErrLifetime, ErrLifetime},
		{"source update", func(m *madePackage) { m.k.Leaf.Source = FromUpdate }, ErrSource, ErrSignature},
		{"source commit", func(m *madePackage) { m.k.Leaf.Source = FromCommit }, ErrSource, ErrSignature},
		{"version not in capabilities", func(m *madePackage) { own(m).Versions = nil }, ErrCapabilities, ErrCapabilities},
		{"ciphersuite not in capabilities", func(m *madePackage) { own(m).Suites = []Suite{P256AES128} }, ErrCapabilities, ErrCapabilities},
		{"own credential type not in capabilities", func(m *madePackage) { own(m).Credentials = []CredentialType{X509Credential} }, ErrCapabilities, ErrCapabilities},
		{"own extension not in capabilities", func(m *madePackage) { m.k.Leaf.Extensions = []Extension{{Type: 0xf042}} }, ErrCapabilities, ErrCapabilities},
		{"key package's extension not in capabilities", func(m *madePackage) { m.k.Extensions = []Extension{{Type: 0xf042}} }, ErrCapabilities, nil},
		{"a credential that the application refuses", func(m *madePackage) { m.k.Leaf.Credential = Basic([]byte("mallory")) }, ErrCredential, ErrCredential},
		{"a credential type that a member does not support", func(m *madePackage) {
			m.k.Leaf.Credential = Credential{Type: X509Credential, Chain: [][]byte{{1}}}
		}, ErrCapabilities, ErrCapabilities},
		{"credential types in use that it does not support", func(m *madePackage) {
			m.k.Leaf.Credential = Credential{Type: X509Credential, Chain: [][]byte{{1}}}
			own(m).Credentials = []CredentialType{X509Credential}
		}, ErrCapabilities, ErrCapabilities},
		{"required extension", func(m *madePackage) { own(m).Extensions = nil }, ErrCapabilities, ErrCapabilities},
		{"encryption key of a member", func(m *madePackage) { m.k.Leaf.EncryptionKey = m.st.all[2].group.Members()[2].Node.EncryptionKey }, ErrDuplicate, ErrDuplicate},
		{"signature key of a member", func(m *madePackage) {
			m.id = m.st.all[2].config.Identity
			m.k.Leaf.SignatureKey = m.id.signer.public
		}, ErrDuplicate, ErrDuplicate},
		{"encryption key of small order", func(m *madePackage) { m.k.Leaf.EncryptionKey = smallOrderKey }, ErrKey, ErrKey},
		{"encryption key too short", func(m *madePackage) { m.k.Leaf.EncryptionKey = smallOrderKey[:31] }, ErrKey, ErrKey},
		{"signature key of small order", func(m *madePackage) { m.k.Leaf.SignatureKey = smallOrderKey }, ErrKey, ErrKey},
		{"init key of small order", func(m *madePackage) { m.k.InitKey = smallOrderKey }, ErrKey, nil},
	}
}

func TestBadKeyPackagesAreRefusedByAll(t *testing.T) {
	t.Parallel()
	count := make(counter)
	for _, m := range packageMutations() {
		t.Run(m.name, func(t *testing.T) {
			// The honest capabilities list an extension that the group requires, and one member knows basic credentials only.
			required := Required{Extensions: []ExtensionType{0xf001}}.Extension()
			st := newStage(t, X25519AES128, func(c *Config) {
				own := DefaultCapabilities()
				own.Extensions = []ExtensionType{0xf001}
				own.Credentials = []CredentialType{BasicCredential}
				c.Capabilities = &own
				c.Authenticate = func(c Credential, _ []byte) error {
					if string(c.Identity) == "mallory" {
						return errors.New("nobody knows mallory")
					}
					return nil
				}
			}, required)
			bad := st.mutated(func(p *madePackage) {
				p.k.Leaf.Capabilities.Extensions = []ExtensionType{0xf001}
				m.edit(p)
			})
			st.committerRefuses([]Proposal{Add(bad)}, m.want)
			count[committer]++
			// An init key that nothing can be sealed to stops even a forger, after the commit is made: it invites no one.
			staged, err := st.tryForge(bad, m.name)
			check(t, err)
			st.memberRefuses(staged.Message, m.want)
			count[member]++
			if m.joiner != nil {
				st.joinerRefuses(staged.Welcome, m.joiner)
				count[joiner]++
			}
		})
	}
	if count[joiner] < 15 {
		t.Errorf("%d mutations reached the joiner", count[joiner])
	}
	count.print(t)
}

// tryForge commits a bad key package. Its welcome is sealed to a good init key, so that the others' is made.
func (st *stage) tryForge(bad *KeyPackage, name string) (*Staged, error) {
	if name != "init key of small order" {
		return st.forge(CommitOptions{Proposals: []Proposal{Add(bad)}}, nil), nil
	}
	good := must(st.s.generateKeyPair())(st.t).public
	sealed := *bad
	sealed.InitKey = good
	return st.forge(CommitOptions{Proposals: []Proposal{Add(&sealed)}}, func(at string, v any) {
		if at == "commit" {
			v.(*Commit).Proposals[0].Proposal = &Proposal{Type: ProposeAdd, Add: bad}
		}
	}), nil
}

func TestPointsOffTheCurveAreRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []Suite{P256AES128, P384AES256, P521AES256} {
		st := newStage(t, id, nil)
		off := func(m *madePackage) {
			m.k.Leaf.EncryptionKey = bytes.Clone(m.k.Leaf.EncryptionKey)
			m.k.Leaf.EncryptionKey[5] ^= 1
		}
		st.committerRefuses([]Proposal{Add(st.mutated(off))}, ErrKey)
		staged := st.forge(CommitOptions{Proposals: []Proposal{Add(st.mutated(off))}}, nil)
		st.memberRefuses(staged.Message, ErrKey)
		st.joinerRefuses(staged.Welcome, ErrKey)
	}
}

// A listMutation is a proposal list that must not be committed.
type listMutation struct {
	name    string
	list    func(st *stage) []Proposal
	want    error
	applied bool // it is found only once the list is applied
}

func listMutations() []listMutation {
	psk := func(st *stage, edit func(*PSKID)) Proposal {
		p := st.all[1].group.ExternalPSK([]byte("known"))
		edit(p.PSK)
		return p
	}
	resumption := func(use PSKUsage) func(*stage) []Proposal {
		return func(st *stage) []Proposal {
			return []Proposal{psk(st, func(p *PSKID) {
				*p = PSKID{Resumption: true, Usage: use, GroupID: st.all[1].group.ID(), Epoch: 1, Nonce: p.Nonce}
			})}
		}
	}
	reinit := Reinitialise(ReInit{GroupID: []byte("next"), Suite: X25519AES128})
	return []listMutation{
		{"Remove of leaf 2 twice", func(*stage) []Proposal { return []Proposal{Remove(2), Remove(2)} }, ErrProposals, false},
		{"Remove of a leaf that is blank", func(*stage) []Proposal { return []Proposal{Remove(3)} }, ErrProposal, false},
		{"Remove of a leaf that is not there", func(*stage) []Proposal { return []Proposal{Remove(1 << 30)} }, ErrProposal, false},
		{"two GroupContextExtensions", func(*stage) []Proposal { return []Proposal{SetExtensions(), SetExtensions()} }, ErrProposals, false},
		{"ReInit with an Add", func(st *stage) []Proposal { return []Proposal{reinit, Add(st.bundle.Package)} }, ErrProposals, false},
		{"ReInit to version 0", func(st *stage) []Proposal {
			return []Proposal{{Type: ProposeReInit, ReInit: &ReInit{GroupID: []byte("next"), Suite: X25519AES128}}}
		}, ErrProposal, false},
		{"ExternalInit", func(*stage) []Proposal { return []Proposal{{Type: ProposeExternalInit, KEMOutput: []byte{1}}} }, ErrProposals, false},
		{"one PSK twice", func(st *stage) []Proposal {
			p := psk(st, func(*PSKID) {})
			return []Proposal{p, p}
		}, ErrProposals, false},
		{"PSK nonce too short", func(st *stage) []Proposal { return []Proposal{psk(st, func(p *PSKID) { p.Nonce = p.Nonce[1:] })} }, ErrPSK, false},
		{"PSK nobody has", func(st *stage) []Proposal { return []Proposal{psk(st, func(p *PSKID) { p.ID = []byte("unknown") })} }, ErrPSK, true},
		{"resumption PSK for a reinit", resumption(ForReInit), ErrPSK, false},
		{"resumption PSK for a branch", resumption(ForBranch), ErrPSK, false},
		{"two Adds of one client", func(st *stage) []Proposal {
			c := newClient(st.t, st.s.id, "twice")
			return []Proposal{Add(c.bundle(st.t).Package), Add(c.bundle(st.t).Package)}
		}, ErrDuplicate, true},
		{"required capabilities that members lack", func(*stage) []Proposal {
			return []Proposal{SetExtensions(Required{Extensions: []ExtensionType{0xf00d}}.Extension())}
		}, ErrCapabilities, true},
		{"group extension that members lack", func(*stage) []Proposal { return []Proposal{SetExtensions(Extension{Type: 0xf00d})} }, ErrCapabilities, true},
		{"required capabilities malformed", func(*stage) []Proposal {
			return []Proposal{SetExtensions(Extension{RequiredCapabilities, []byte{9}})}
		}, ErrMalformed, false},
		{"external senders malformed", func(*stage) []Proposal { return []Proposal{SetExtensions(Extension{ExternalSenders, []byte{9}})} }, ErrMalformed, false},
	}
}

func withPSK(c *Config) {
	c.PSK = func(p PSKID) ([]byte, error) {
		if string(p.ID) == "known" {
			return []byte("a key"), nil
		}
		return nil, fmt.Errorf("no PSK %q", p.ID)
	}
}

func TestBadProposalListsAreRefused(t *testing.T) {
	t.Parallel()
	count := make(counter)
	more := []listMutation{
		{"Remove of the committer", func(st *stage) []Proposal { return []Proposal{Remove(st.all[1].group.Index())} }, ErrProposals, false},
		{"Update of the committer", func(st *stage) []Proposal {
			l := st.all[1].config.leaf()
			l.Source = FromUpdate
			return []Proposal{{Type: ProposeUpdate, Update: l}}
		}, ErrProposals, false},
	}
	for _, m := range append(listMutations(), more...) {
		t.Run(m.name, func(t *testing.T) {
			st := newStage(t, X25519AES128, withPSK)
			list := m.list(st)
			st.committerRefuses(list, m.want)
			count[committer]++
			// The forged commit has the same list; a Remove of its committer is one of leaf 0.
			if list[0].Type == ProposeRemove && list[0].Remove == 1 {
				list[0].Remove = 0
			}
			st.memberRefuses(st.forgeList(list, m.applied).Message, m.want)
			count[member]++
		})
	}
	count.print(t)
}

// forgeList commits a list that must not be. Where it was not really applied, its commit has the path of another.
func (st *stage) forgeList(list []Proposal, applied bool) *Staged {
	if applied {
		st.all[0].group.config.PSK = func(PSKID) ([]byte, error) { return []byte("made up"), nil }
		return st.forge(CommitOptions{Proposals: list}, nil)
	}
	return st.forge(CommitOptions{}, func(at string, v any) {
		if at == "commit" {
			c := v.(*Commit)
			c.Proposals = nil
			for i := range list {
				c.Proposals = append(c.Proposals, ProposalOrRef{Proposal: &list[i]})
			}
		}
	})
}
