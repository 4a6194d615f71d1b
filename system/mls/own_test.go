package mls

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "make our own vectors again")

const ownVectors = "testdata/own-passive-client.json.gz"

// TestOurOwnVectors holds the engine to histories that it made once, in the working group's format for passive clients: a
// change that can't read them any more breaks with every stored and every sent message.
func TestOurOwnVectors(t *testing.T) {
	t.Parallel()
	if *update {
		writeOwnVectors(t)
	}
	f, err := os.Open(ownVectors)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []passiveVector
	if err := json.NewDecoder(z).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(Suites()) {
		t.Fatalf("%d vectors, want one for each of %d suites", len(list), len(Suites()))
	}
	epochs := 0
	for _, v := range list {
		if underRace && v.Suite != X25519AES128 {
			continue
		}
		v.follow(t)
		epochs += len(v.Epochs)
	}
	t.Logf("own: %d cases of %d epochs run, 0 skipped", len(list), epochs)
}

// ownVector is passiveVector as it is written.
type ownVector map[string]any

func writeOwnVectors(t *testing.T) {
	var list []ownVector
	for _, id := range Suites() {
		list = append(list, makeOwnVector(t, id))
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	check(t, err)
	check(t, json.NewEncoder(z).Encode(list))
	check(t, z.Close())
	check(t, os.WriteFile(ownVectors, b.Bytes(), 0o644))
}

// makeOwnVector lets a group live and writes down what one member of it received.
func makeOwnVector(t *testing.T, id Suite) ownVector {
	text := func(b []byte) string { return hex.EncodeToString(b) }
	rng := rand.New(rand.NewPCG(uint64(id), 9420))
	psk := []byte("a key that all have")
	all := newClients(t, id, 6)
	for i, c := range all {
		c.config.Public = i%2 == 0
		c.config.PSK = func(PSKID) ([]byte, error) { return psk, nil }
	}
	writer, passive := all[0], all[1]
	writer.group = must(Create(writer.config, nil))(t)
	b := passive.bundle(t)
	st := must(writer.group.Commit(CommitOptions{Proposals: []Proposal{Add(b.Package)}}))(t)
	check(t, writer.group.Accept(st))
	passive.group = must(Join(passive.config, st.Welcome, b, JoinOptions{}))(t)
	init, leaf := b.PrivateKeys()
	v := ownVector{
		"cipher_suite": id, "external_psks": []ownVector{{"psk_id": text([]byte("k")), "psk": text(psk)}},
		"key_package": text(b.Package.Marshal()), "signature_priv": text(must(passive.config.Identity.PrivateKey())(t)),
		"encryption_priv": text(leaf), "init_priv": text(init), "welcome": text(st.Welcome), "ratchet_tree": nil,
		"initial_epoch_authenticator": text(passive.group.EpochAuthenticator()),
	}
	crew := []*client{writer, passive}
	var epochs []ownVector
	for n := range 12 {
		proposals := []string{}
		propose := func(from *client, m []byte) {
			broadcast(t, crew, from, m)
			proposals = append(proposals, text(m))
		}
		by := crew[rng.IntN(len(crew))]
		for by == passive {
			by = crew[rng.IntN(len(crew))]
		}
		var o CommitOptions
		var joining *client
		var bundle *Bundle
		switch n % 4 {
		case 0:
			joining = newClient(t, id, fmt.Sprint("joiner ", n))
			joining.config.PSK = passive.config.PSK
			bundle = joining.bundle(t)
			o = CommitOptions{Proposals: []Proposal{Add(bundle.Package)}, NoPath: n%8 == 0}
		case 1:
			propose(by, must(by.group.Propose(by.group.ExternalPSK([]byte("k")), nil))(t))
		case 2:
			other := crew[len(crew)-1]
			propose(other, must(other.group.ProposeUpdate(nil))(t))
			by = writer
		}
		st := commit(t, crew, by, o)
		if joining != nil {
			joining.group = must(Join(joining.config, st.Welcome, bundle, JoinOptions{}))(t)
			crew = append(crew, joining)
		}
		epochs = append(epochs, ownVector{"proposals": proposals, "commit": text(st.Message), "epoch_authenticator": text(passive.group.EpochAuthenticator())})
	}
	v["epochs"] = epochs
	return v
}
