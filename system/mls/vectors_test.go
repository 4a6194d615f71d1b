package mls

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The working group's test vectors, testdata/vectors/README.md.

// A hexBytes is bytes that JSON has as hex.
type hexBytes []byte

func (h *hexBytes) UnmarshalJSON(data []byte) error {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil || s == nil {
		return err
	}
	b, err := hex.DecodeString(*s)
	*h = b
	return err
}

// readVectors decodes a file of vectors.
func readVectors[T any](t testing.TB, name string) []T {
	t.Helper()
	var out []T
	if err := json.Unmarshal(readVectorFile(t, name), &out); err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return out
}

func readVectorFile(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "vectors", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestVectorFilesAreTheWorkingGroups holds the files to the digests that their README names.
func TestVectorFilesAreTheWorkingGroups(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("testdata/vectors/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/vectors/*.json.gz")
	if err != nil || len(files) != 16 {
		t.Fatalf("%d files, want 16 (%v)", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json.gz")
		line := fmt.Sprintf("%x  %s.json", sha256.Sum256(readVectorFile(t, name)), name)
		if !strings.Contains(string(readme), line) {
			t.Errorf("the README does not say %q", line)
		}
	}
}

// A tally counts what of a file was run; a suite that we do not claim is the only reason to skip.
type tally struct{ run, skipped, unwatched int }

func (c *tally) suite(t testing.TB, id Suite) *suite {
	t.Helper()
	s, err := suiteOf(id)
	if err != nil {
		if id != 4 && id != 6 {
			t.Fatal(err)
		}
		c.skipped++
		return nil
	}
	if underRace && id != X25519AES128 {
		c.unwatched++
		return nil
	}
	c.run++
	return s
}

func (c *tally) report(t testing.TB, file string) {
	t.Helper()
	t.Logf("%s: %d cases run, %d skipped (suites 4 and 6, not claimed)", file, c.run, c.skipped)
	if c.unwatched > 0 {
		t.Logf("%s: %d cases are left to the run without the race detector", file, c.unwatched)
	}
	if c.run == 0 {
		t.Errorf("%s: nothing was run", file)
	}
}

// each runs check on every vector of a file whose suite we have.
func each[T any](t *testing.T, file string, suiteID func(*T) Suite, check func(t *testing.T, s *suite, v *T)) {
	t.Parallel()
	var count tally
	defer func() { count.report(t, file) }()
	for i, v := range readVectors[T](t, file) {
		if s := count.suite(t, suiteID(&v)); s != nil {
			for seam, s := range onSeams(t, s.id) {
				t.Run(fmt.Sprintf("%d-suite-%d-%s", i, s.id, seams()[seam]), func(t *testing.T) { check(t, s, &v) })
			}
		}
	}
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got %x, want %x", what, got, want)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestVectorsTreeMath(t *testing.T) {
	t.Parallel()
	type vector struct {
		Leaves                       uint32 `json:"n_leaves"`
		Nodes                        uint32 `json:"n_nodes"`
		Root                         uint32
		Left, Right, Parent, Sibling []*uint32
	}
	list := readVectors[vector](t, "tree-math")
	for _, v := range list {
		if n := nodeWidth(v.Leaves); n != v.Nodes {
			t.Errorf("%d leaves: %d nodes, want %d", v.Leaves, n, v.Nodes)
		}
		root := rootOf(widthFor(v.Leaves))
		if root != v.Root {
			t.Errorf("%d leaves: root %d, want %d", v.Leaves, root, v.Root)
		}
		node := func(ok bool, f func(uint32) uint32, x uint32) *uint32 {
			if !ok {
				return nil
			}
			y := f(x)
			return &y
		}
		for x := range v.Nodes {
			got := []*uint32{node(!isLeaf(x), leftOf, x), node(!isLeaf(x), rightOf, x), node(x != root, parentOf, x), node(x != root, siblingOf, x)}
			want := []*uint32{v.Left[x], v.Right[x], v.Parent[x], v.Sibling[x]}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%d leaves, node %d: %s", v.Leaves, x, d)
			}
		}
	}
	t.Logf("tree-math: %d cases run, 0 skipped", len(list))
}

func TestVectorsDeserialization(t *testing.T) {
	t.Parallel()
	type vector struct {
		Header hexBytes `json:"vlbytes_header"`
		Length int
	}
	list := readVectors[vector](t, "deserialization")
	for _, v := range list {
		r := newReader(v.Header)
		if n := r.length(); n != v.Length || r.finish() != nil {
			t.Errorf("%x: %d %v, want %d", v.Header, n, r.err, v.Length)
		}
		same(t, "encoded", appendLength(nil, v.Length), v.Header)
	}
	t.Logf("deserialization: %d cases run, 0 skipped", len(list))
}

func TestVectorsCryptoBasics(t *testing.T) {
	type vector struct {
		Suite   Suite `json:"cipher_suite"`
		RefHash struct {
			Label      string
			Out, Value hexBytes
		} `json:"ref_hash"`
		Expand struct {
			Label                string
			Secret, Context, Out hexBytes
			Length               int
		} `json:"expand_with_label"`
		Derive struct {
			Label       string
			Secret, Out hexBytes
		} `json:"derive_secret"`
		Tree struct {
			Label       string
			Generation  uint32
			Length      int
			Secret, Out hexBytes
		} `json:"derive_tree_secret"`
		Sign struct {
			Label                         string
			Priv, Pub, Content, Signature hexBytes
		} `json:"sign_with_label"`
		Encrypt struct {
			Label                                     string
			Priv, Pub, Context, Plaintext, Ciphertext hexBytes
			KEM                                       hexBytes `json:"kem_output"`
		} `json:"encrypt_with_label"`
	}
	each(t, "crypto-basics", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		same(t, "RefHash", s.refHash(v.RefHash.Label, v.RefHash.Value), v.RefHash.Out)
		same(t, "ExpandWithLabel", s.expandWithLabel(v.Expand.Secret, v.Expand.Label, v.Expand.Context, v.Expand.Length), v.Expand.Out)
		same(t, "DeriveSecret", s.deriveSecret(v.Derive.Secret, v.Derive.Label), v.Derive.Out)
		out := make([]byte, v.Tree.Length)
		s.treeSecret(out, v.Tree.Secret, v.Tree.Label, v.Tree.Generation)
		same(t, "DeriveTreeSecret", out, v.Tree.Out)

		if err := s.verify(v.Sign.Pub, v.Sign.Label, v.Sign.Content, v.Sign.Signature); err != nil {
			t.Error(err)
		}
		key := must(s.parseSigner(v.Sign.Priv))(t)
		same(t, "signature public key", key.public, v.Sign.Pub)
		sig := must(s.sign(key, v.Sign.Label, v.Sign.Content))(t)
		if err := s.verify(v.Sign.Pub, v.Sign.Label, v.Sign.Content, sig); err != nil {
			t.Error(err)
		}

		private := must(s.privateKey(v.Encrypt.Priv))(t)
		info := encryptInfo(v.Encrypt.Label, v.Encrypt.Context)
		plain := must(s.open(private, info, Ciphertext{v.Encrypt.KEM, v.Encrypt.Ciphertext}))(t)
		same(t, "decrypted", plain, v.Encrypt.Plaintext)
		ct := must(s.seal(must(s.publicKey(v.Encrypt.Pub))(t), hashed(s, info), plain))(t)
		same(t, "decrypted again", must(s.open(private, info, ct))(t), plain)
	})
}

func TestVectorsKeySchedule(t *testing.T) {
	type vector struct {
		Suite   Suite    `json:"cipher_suite"`
		GroupID hexBytes `json:"group_id"`
		Init    hexBytes `json:"initial_init_secret"`
		Epochs  []struct {
			Commit        hexBytes `json:"commit_secret"`
			Confirm       hexBytes `json:"confirmation_key"`
			Transcript    hexBytes `json:"confirmed_transcript_hash"`
			Encryption    hexBytes `json:"encryption_secret"`
			Authenticator hexBytes `json:"epoch_authenticator"`
			Exporter      struct {
				Context, Secret hexBytes
				Label           string
				Length          int
			}
			ExporterSecret hexBytes `json:"exporter_secret"`
			ExternalPub    hexBytes `json:"external_pub"`
			External       hexBytes `json:"external_secret"`
			Context        hexBytes `json:"group_context"`
			Init           hexBytes `json:"init_secret"`
			Joiner         hexBytes `json:"joiner_secret"`
			Membership     hexBytes `json:"membership_key"`
			PSK            hexBytes `json:"psk_secret"`
			Resumption     hexBytes `json:"resumption_psk"`
			SenderData     hexBytes `json:"sender_data_secret"`
			TreeHash       hexBytes `json:"tree_hash"`
			Welcome        hexBytes `json:"welcome_secret"`
		}
	}
	each(t, "key-schedule", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		init := []byte(v.Init)
		for i, e := range v.Epochs {
			c := groupContext{version: 1, suite: s.id, groupID: v.GroupID, epoch: uint64(i), treeHash: e.TreeHash, transcript: e.Transcript}
			same(t, "group context", c.append(nil), e.Context)
			joiner := s.joinerSecret(init, e.Commit, e.Context)
			same(t, "joiner secret", joiner, e.Joiner)
			member := s.memberSecret(joiner, e.PSK)
			same(t, "welcome secret", s.deriveSecret(member, "welcome"), e.Welcome)
			x := s.secretsOf(s.epochSecret(member, e.Context))
			same(t, "sender data secret", x.senderData, e.SenderData)
			same(t, "encryption secret", x.encryption, e.Encryption)
			same(t, "exporter secret", x.exporter, e.ExporterSecret)
			same(t, "external secret", x.external, e.External)
			same(t, "confirmation key", x.confirm, e.Confirm)
			same(t, "membership key", x.membership, e.Membership)
			same(t, "resumption PSK", x.resumption, e.Resumption)
			same(t, "epoch authenticator", x.authenticator, e.Authenticator)
			same(t, "init secret", x.init, e.Init)
			same(t, "external public key", must(s.deriveKeyPair(x.external))(t).public, e.ExternalPub)
			same(t, "exported", s.exportSecret(x.exporter, e.Exporter.Label, e.Exporter.Context, e.Exporter.Length), e.Exporter.Secret)
			init = x.init
		}
	})
}

func TestVectorsPSKSecret(t *testing.T) {
	type vector struct {
		Suite Suite `json:"cipher_suite"`
		PSKs  []struct {
			ID    hexBytes `json:"psk_id"`
			PSK   hexBytes `json:"psk"`
			Nonce hexBytes `json:"psk_nonce"`
		}
		Secret hexBytes `json:"psk_secret"`
	}
	each(t, "psk_secret", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		var ids []*PSKID
		var keys [][]byte
		for _, p := range v.PSKs {
			ids, keys = append(ids, &PSKID{ID: p.ID, Nonce: p.Nonce}), append(keys, p.PSK)
		}
		same(t, "PSK secret", s.pskSecret(ids, keys), v.Secret)
	})
}

func TestVectorsTranscriptHashes(t *testing.T) {
	type vector struct {
		Suite     Suite    `json:"cipher_suite"`
		Key       hexBytes `json:"confirmation_key"`
		Content   hexBytes `json:"authenticated_content"`
		Before    hexBytes `json:"interim_transcript_hash_before"`
		Confirmed hexBytes `json:"confirmed_transcript_hash_after"`
		After     hexBytes `json:"interim_transcript_hash_after"`
	}
	each(t, "transcript-hashes", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		a := must(decode(v.Content, readAuthenticated))(t)
		confirmed := s.confirmedHash(v.Before, a)
		same(t, "confirmed", confirmed, v.Confirmed)
		same(t, "interim", s.interimHash(confirmed, a.auth.confirmation), v.After)
		same(t, "confirmation tag", s.tag(v.Key, confirmed), a.auth.confirmation)
		same(t, "encoded again", a.append(nil), v.Content)
	})
}

func TestVectorsSecretTree(t *testing.T) {
	type vector struct {
		Suite      Suite    `json:"cipher_suite"`
		Encryption hexBytes `json:"encryption_secret"`
		Sender     struct {
			Secret     hexBytes `json:"sender_data_secret"`
			Ciphertext hexBytes
			Key, Nonce hexBytes
		} `json:"sender_data"`
		Leaves [][]struct {
			Generation       uint32
			ApplicationKey   hexBytes `json:"application_key"`
			ApplicationNonce hexBytes `json:"application_nonce"`
			HandshakeKey     hexBytes `json:"handshake_key"`
			HandshakeNonce   hexBytes `json:"handshake_nonce"`
		}
	}
	each(t, "secret-tree", func(v *vector) Suite { return v.Suite }, func(t *testing.T, s *suite, v *vector) {
		var w workbench
		if _, err := w.senderDataAEAD(s, v.Sender.Secret, v.Sender.Ciphertext); err != nil {
			t.Fatal(err)
		}
		same(t, "sender data key", w.outer.key[:s.nk], v.Sender.Key)
		same(t, "sender data nonce", w.outer.nonce[:], v.Sender.Nonce)
		tree := newSecretTree(s, widthFor(uint32(len(v.Leaves))), bytes.Clone(v.Encryption), DefaultWindow())
		for i, leaf := range v.Leaves {
			for _, g := range leaf {
				for _, want := range []struct {
					kind       ContentType
					key, nonce []byte
				}{{ContentApplication, g.ApplicationKey, g.ApplicationNonce}, {ContentCommit, g.HandshakeKey, g.HandshakeNonce}} {
					c := must(tree.peek(uint32(i), want.kind, g.Generation))(t)
					same(t, "key", c.key.key[:s.nk], want.key)
					same(t, "nonce", c.key.nonce[:], want.nonce)
					tree.consume(&c)
				}
			}
		}
	})
}
