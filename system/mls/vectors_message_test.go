package mls

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

func TestVectorsMessages(t *testing.T) {
	t.Parallel()
	type vector map[string]hexBytes
	whole := func(data []byte) ([]byte, error) {
		m, err := parseMessage(data)
		if err != nil {
			return nil, err
		}
		return m.append(nil), nil
	}
	list := readVectors[vector](t, "messages")
	decoders := map[string]func([]byte) ([]byte, error){
		"mls_welcome": whole, "mls_group_info": whole, "mls_key_package": whole, "private_message": whole,
		"public_message_application": whole, "public_message_proposal": whole, "public_message_commit": whole,
		"ratchet_tree":                      recode(readTreeNodes, func(n []node) []byte { return treeOf(nil, n).append(nil) }),
		"group_secrets":                     recode(readGroupSecrets, func(g *groupSecrets) []byte { return g.append(nil) }),
		"commit":                            recode(readCommit, func(c *Commit) []byte { return c.append(nil) }),
		"add_proposal":                      body(ProposeAdd),
		"update_proposal":                   body(ProposeUpdate),
		"remove_proposal":                   body(ProposeRemove),
		"pre_shared_key_proposal":           body(ProposePSK),
		"re_init_proposal":                  body(ProposeReInit),
		"external_init_proposal":            body(ProposeExternalInit),
		"group_context_extensions_proposal": body(ProposeExtensions),
	}
	for i, v := range list {
		if len(v) != len(decoders) {
			t.Fatalf("case %d has %d fields, want %d", i, len(v), len(decoders))
		}
		for name, data := range v {
			got, err := decoders[name](data)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("case %d, %s: %v\ngot  %x\nwant %x", i, name, err, got, []byte(data))
			}
		}
	}
	t.Logf("messages: %d cases of %d messages run, 0 skipped", len(list), len(decoders))
}

func recode[T any](read func(*reader) T, write func(T) []byte) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		v, err := decode(data, read)
		if err != nil {
			return nil, err
		}
		return write(v), nil
	}
}

// body decodes a proposal that stands there without its type.
func body(kind ProposalType) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		p, err := decode(append(appendU16(nil, uint16(kind)), data...), readProposal)
		if err != nil {
			return nil, err
		}
		return p.append(nil)[2:], nil
	}
}

// A protectionVector is one group of two, of which leaf 1 sends.
type protectionVector struct {
	Suite       Suite    `json:"cipher_suite"`
	GroupID     hexBytes `json:"group_id"`
	Epoch       uint64
	TreeHash    hexBytes `json:"tree_hash"`
	Transcript  hexBytes `json:"confirmed_transcript_hash"`
	Private     hexBytes `json:"signature_priv"`
	Public      hexBytes `json:"signature_pub"`
	Encryption  hexBytes `json:"encryption_secret"`
	SenderData  hexBytes `json:"sender_data_secret"`
	Membership  hexBytes `json:"membership_key"`
	Proposal    hexBytes
	ProposalPub hexBytes `json:"proposal_pub"`
	ProposalPrv hexBytes `json:"proposal_priv"`
	Commit      hexBytes
	CommitPub   hexBytes `json:"commit_pub"`
	CommitPrv   hexBytes `json:"commit_priv"`
	Application hexBytes
	AppPrv      hexBytes `json:"application_priv"`
}

// group builds a group around the vector's secrets, seen from leaf self.
func (v *protectionVector) group(t *testing.T, s *suite, self uint32) *Group {
	key := must(s.parseSigner(v.Private))(t)
	same(t, "signature public key", key.public, v.Public)
	tree := treeOf(s, make([]node, 3))
	for i := range uint32(2) {
		tree.edit(2 * i).leaf = &LeafNode{SignatureKey: v.Public, EncryptionKey: []byte{byte(i)}, Source: FromUpdate}
	}
	e := &epoch{tree: tree, self: self, keys: privateKeys{}}
	e.context = groupContext{version: 1, suite: s.id, groupID: v.GroupID, epoch: v.Epoch, treeHash: v.TreeHash, transcript: v.Transcript}
	e.encoded = e.context.append(nil)
	e.secrets = secrets{senderData: v.SenderData, membership: v.Membership, resumption: []byte{1}}
	e.ratchets = newSecretTree(s, 2, bytes.Clone(v.Encryption), DefaultWindow())
	id := &Identity{suite: s, signer: key}
	return must(newGroup(Config{Identity: id}, s, e))(t)
}

// content reads a message up to where its content would be acted on.
func (g *Group) contentOf(t *testing.T, data []byte) (*authenticated, error) {
	m := must(parseMessage(data))(t)
	if m.private != nil {
		a, c, err := g.bench.openPrivate(g.s, g.epoch.ratchets, g.epoch.secrets.senderData, data, m.private, g.epoch.self)
		if err != nil {
			return nil, err
		}
		g.epoch.ratchets.consume(&c)
		return &a, g.s.verifyContent(g.epoch.tree.leaf(c.leaf).SignatureKey, g.bench.appendSigned(&a, g.epoch.encoded), a.auth.signature)
	}
	a := &authenticated{wire: wirePublic, content: m.public.content, auth: m.public.auth}
	if !equal(m.public.membership, g.s.tag(g.epoch.secrets.membership, a.appendTBM(g.epoch.encoded))) {
		return nil, ErrMembership
	}
	return a, g.s.verify(must(g.senderKey(a))(t), labelFramed, a.appendTBS(nil, g.epoch.encoded), a.auth.signature)
}

func TestVectorsMessageProtection(t *testing.T) {
	each(t, "message-protection", func(v *protectionVector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *protectionVector) {
		check := func(name string, kind ContentType, raw []byte, messages ...[]byte) {
			for _, message := range messages {
				a, err := v.group(t, s, 0).contentOf(t, message)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := a.content.appendBody(nil)
				if kind == ContentApplication {
					got = a.content.application
				}
				same(t, name, got, raw)
			}
		}
		check("proposal", ContentProposal, v.Proposal, v.ProposalPub, v.ProposalPrv, v.protect(t, s, ContentProposal, true), v.protect(t, s, ContentProposal, false))
		check("commit", ContentCommit, v.Commit, v.CommitPub, v.CommitPrv, v.protect(t, s, ContentCommit, true), v.protect(t, s, ContentCommit, false))
		sealed := must(v.group(t, s, 1).Seal(nil, nil, v.Application))(t)
		check("application", ContentApplication, v.Application, v.AppPrv, sealed)

		// Application data has no place in a public message.
		if _, err := v.group(t, s, 0).Open(v.protect(t, s, ContentApplication, true)); !errors.Is(err, ErrMalformed) {
			t.Errorf("application data in a public message: %v", err)
		}
	})
}

// protect sends the vector's content as leaf 1.
func (v *protectionVector) protect(t *testing.T, s *suite, kind ContentType, public bool) []byte {
	g := v.group(t, s, 1)
	c := &framedContent{groupID: v.GroupID, epoch: v.Epoch, sender: Sender{SenderMember, 1}, kind: kind}
	a := &authenticated{wire: wirePrivate, content: c}
	if public {
		a.wire = wirePublic
	}
	switch kind {
	case ContentProposal:
		c.proposal = must(decode(v.Proposal, readProposal))(t)
	case ContentCommit:
		c.commit = must(decode(v.Commit, readCommit))(t)
		a.auth.confirmation = s.zero
	case ContentApplication:
		c.application = v.Application
	}
	if err := a.sign(s, g.config.Identity.signer, g.epoch.encoded); err != nil {
		t.Fatal(err)
	}
	if public {
		return a.protectPublic(s, g.epoch)
	}
	return must(g.bench.sealPrivate(nil, s, g.epoch.ratchets, g.epoch.secrets.senderData, a))(t)
}

func TestVectorsWelcome(t *testing.T) {
	type vector struct {
		Suite   Suite    `json:"cipher_suite"`
		Init    hexBytes `json:"init_priv"`
		Package hexBytes `json:"key_package"`
		Signer  hexBytes `json:"signer_pub"`
		Welcome hexBytes
	}
	each(t, "welcome", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		j := &joining{s: s, config: &Config{}, o: &JoinOptions{}, b: &Bundle{Package: must(ParseKeyPackage(v.Package))(t), init: must(s.privateKey(v.Init))(t)}}
		w := must(parseMessage(v.Welcome))(t).welcome
		if err := j.openSecrets(w); err != nil {
			t.Fatal(err)
		}
		if err := j.openInfo(w); err != nil {
			t.Fatal(err)
		}
		if err := s.verify(v.Signer, "GroupInfoTBS", j.info.appendTBS(nil), j.info.signature); err != nil {
			t.Error(err)
		}
		x := s.secretsOf(s.epochSecret(j.member, j.info.context.append(nil)))
		same(t, "confirmation tag", s.tag(x.confirm, j.info.context.transcript), j.info.confirmation)
	})
}

// A passiveVector is a client that joins and follows.
type passiveVector struct {
	Suite Suite `json:"cipher_suite"`
	PSKs  []struct {
		ID  hexBytes `json:"psk_id"`
		PSK hexBytes `json:"psk"`
	} `json:"external_psks"`
	Package       hexBytes `json:"key_package"`
	SignatureKey  hexBytes `json:"signature_priv"`
	EncryptionKey hexBytes `json:"encryption_priv"`
	InitKey       hexBytes `json:"init_priv"`
	Welcome       hexBytes
	Tree          hexBytes `json:"ratchet_tree"`
	Authenticator hexBytes `json:"initial_epoch_authenticator"`
	Epochs        []struct {
		Proposals     []hexBytes
		Commit        hexBytes
		Authenticator hexBytes `json:"epoch_authenticator"`
	}
}

func (v *passiveVector) join(t *testing.T) *Group {
	b := must(ParseBundle(v.Package, v.InitKey, v.EncryptionKey))(t)
	id := must(ParseIdentity(v.Suite, b.Package.Leaf.Credential, v.SignatureKey))(t)
	same(t, "signature public key", id.signer.public, b.Package.Leaf.SignatureKey)
	// The vectors' lifetimes are over, and some last for ever.
	config := Config{Identity: id, AnyLifetime: true, MaxLifetime: -1, PSK: func(p PSKID) ([]byte, error) {
		for _, k := range v.PSKs {
			if bytes.Equal(k.ID, p.ID) {
				return k.PSK, nil
			}
		}
		return nil, fmt.Errorf("no PSK %x", p.ID)
	}}
	return must(Join(config, v.Welcome, b, JoinOptions{Tree: v.Tree}))(t)
}

func checkPassive(t *testing.T, file string) {
	each(t, file, func(v *passiveVector) Suite { return v.Suite }, func(t *testing.T, _ *suite, v *passiveVector) { v.follow(t) })
}

// follow joins, and takes in every proposal and commit.
func (v *passiveVector) follow(t *testing.T) {
	g := v.join(t)
	same(t, "epoch authenticator", g.EpochAuthenticator(), v.Authenticator)
	for i, e := range v.Epochs {
		for _, p := range e.Proposals {
			if _, err := g.Open(p); err != nil {
				t.Fatalf("epoch %d: proposal: %v", i, err)
			}
		}
		event, err := g.Open(e.Commit)
		if err != nil {
			t.Fatalf("epoch %d: commit: %v", i, err)
		}
		check(t, g.Accept(event.Commit))
		same(t, "epoch authenticator", g.EpochAuthenticator(), e.Authenticator)
	}
}

func TestVectorsPassiveClientWelcome(t *testing.T) { checkPassive(t, "passive-client-welcome") }
func TestVectorsPassiveClientHandling(t *testing.T) {
	checkPassive(t, "passive-client-handling-commit")
}
func TestVectorsPassiveClientRandom(t *testing.T) { checkPassive(t, "passive-client-random") }
