package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// someReceipts returns receipts of each form: a single one and three of one batch.
func someReceipts(t testing.TB) (single Receipt, batch []Receipt) {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }
	single, err := open(t, Config{Now: now}).Sign(t.Context(), testArrival(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range open(t, Config{Mode: Batched, Now: now}).SignBatch(t.Context(), []Arrival{testArrival(1), testArrival(2), testArrival(3)}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		batch = append(batch, o.Receipt)
	}
	return single, batch
}

func swap(t testing.TB, r Receipt, old, new string) Receipt {
	t.Helper()
	if bytes.Count(r, []byte(old)) == 0 {
		t.Fatalf("%q is not in %s", old, r)
	}
	return bytes.Replace(r, []byte(old), []byte(new), 1)
}

// between returns what stands between two texts of a receipt.
func between(r Receipt, from, to string) string {
	_, rest, _ := strings.Cut(string(r), from)
	text, _, _ := strings.Cut(rest, to)
	return text
}

func TestEachFaultHasItsVerdict(t *testing.T) {
	t.Parallel()
	single, batch := someReceipts(t)
	key, other := testKey(t, "key"), testKey(t, "other")
	at := func(n int64) *int64 { return &n }
	marked := func(change func(*Pin)) *Pins {
		p := pinned(key)
		change(&p.Keys[0])
		return p
	}
	sig := between(single, `"sig":"`, `"`)
	raw, _ := base64.RawURLEncoding.DecodeString(sig)
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14}
	malleable, carry := bytes.Clone(raw), 0
	for i := range 32 { // S + L verifies where S < L is not checked
		sum := int(malleable[32+i]) + carry
		if i < len(order) {
			sum += int(order[i])
		}
		if i == 31 {
			sum += 0x10
		}
		malleable[32+i], carry = byte(sum), sum>>8
	}
	checkpoint := between(batch[0], `"checkpoint":"`, `","envelope"`)
	proof := between(batch[1], `"proof":[`, `]`)
	for _, c := range []struct {
		name string
		r    Receipt
		pins *Pins
		want string
	}{
		{"single", single, pinned(key), Valid},
		{"batch", batch[0], pinned(key), Valid},
		{"white space and order do not matter", []byte(" " + strings.Replace(string(single), `"form"`, "\n \"form\"", 1)), pinned(key), Valid},
		{"another key is pinned", single, pinned(other), UnknownKID},
		{"one character of the id", swap(t, single, "request-00000001", "request-00000002"), pinned(key), LeafMismatch},
		{"the same in a batch", swap(t, batch[0], "request-00000001", "request-00000009"), pinned(key), ProofMismatch},
		{"the algorithm", swap(t, single, `"alg":"Ed25519"`, `"alg":"Ed448"`), pinned(key), AlgMismatch},
		{"the kid", swap(t, single, key.KID, other.KID), pinned(key, other), LeafMismatch},
		{"the version", swap(t, single, `"v":1`, `"v":2`), pinned(key), BadEnvelope},
		{"the type", swap(t, single, `"type":"arrival"`, `"type":"departure"`), pinned(key), BadEnvelope},
		{"a rotation of a receipt", swap(t, single, `"type":"arrival"`, `"type":"rotation"`), pinned(key), BadEnvelope},
		{"a member more in the envelope", swap(t, single, `"v":1`, `"v":1,"x":1`), pinned(key), BadEnvelope},
		{"the time's form", swap(t, single, "00:00:00.000Z", "00:00:00Z"), pinned(key), BadEnvelope},
		{"the leaf", swap(t, single, between(single, `"leaf":"`, `"`), strings.Repeat("A", 43)+"="), pinned(key), LeafMismatch},
		{"the signature", swap(t, single, sig, strings.Repeat("A", 86)), pinned(key), BadSignature},
		{"S + L for S", swap(t, single, sig, base64.RawURLEncoding.EncodeToString(malleable)), pinned(key), MalleableSig},
		{"another gateway", single, &Pins{Gateway: "another", Keys: []Pin{PinOf(key.Public)}}, WrongGateway},
		{"the checkpoint's size", swap(t, batch[0], testName+`\n3\n`, testName+`\n4\n`), pinned(key), BadSignature},
		{"the checkpoint's size with a zero in front", swap(t, batch[0], testName+`\n3\n`, testName+`\n03\n`), pinned(key), BadCheckpoint},
		{"the checkpoint's origin", swap(t, batch[0], testName+`\n3\n`, `other\n3\n`), pinned(key), BadCheckpoint},
		{"the checkpoint's signature line", swap(t, batch[0], "— "+testName, "— another"), pinned(key), BadCheckpoint},
		{"no checkpoint", swap(t, batch[0], checkpoint, ""), pinned(key), BadCheckpoint},
		{"a hash of the proof", swap(t, batch[0], between(batch[0], `"proof":["`, `"`), strings.Repeat("A", 43)+"="), pinned(key), ProofMismatch},
		{"another's proof", swap(t, batch[0], between(batch[0], `"proof":[`, `]`), proof), pinned(key), ProofMismatch},
		{"no proof", swap(t, batch[0], between(batch[0], `"proof":[`, `]`), ""), pinned(key), SizeMismatch},
		{"a seq beyond the tree", swap(t, batch[2], `"seq":2`, `"seq":7`), pinned(key), SizeMismatch},
		{"revoked from the start", single, marked(func(p *Pin) { p.Revoked = at(0) }), RevokedKey},
		{"revoked later, without the log", single, marked(func(p *Pin) { p.Revoked = at(1000) }), RevokedKey},
		{"retired before", batch[2], marked(func(p *Pin) { p.Retired = at(1) }), RetiredKey},
		{"retired there", batch[2], marked(func(p *Pin) { p.Retired = at(2) }), RetiredKey},
		{"retired after", batch[2], marked(func(p *Pin) { p.Retired = at(3) }), Valid},
		{"a key from later on", batch[0], marked(func(p *Pin) { p.From = 1 }), NotYetKey},
	} {
		v := &Verifier{Pins: c.pins, Now: func() time.Time { return time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC) }}
		got, err := v.Verify(c.r)
		if err != nil || got.Code != c.want {
			t.Errorf("%s: verdict %s (%s), %v; want %s", c.name, got.Code, got.Detail, err, c.want)
		}
	}
	v := &Verifier{Pins: pinned(key), Now: func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }}
	wantVerdict(t, v, single, FutureTime)
}

// Every single bit that is changed anywhere makes a receipt something else than valid.
func TestNoBitCanBeChanged(t *testing.T) {
	t.Parallel()
	single, batch := someReceipts(t)
	for _, r := range []Receipt{single, batch[1]} {
		for i := range r {
			bad := bytes.Clone(r)
			bad[i] ^= 1
			v := &Verifier{Pins: pinned(testKey(t, "key"))}
			if got, err := v.Verify(bad); err == nil && got.Code == Valid {
				t.Fatalf("byte %d changed, and still valid: %s", i, bad)
			}
		}
	}
}

func TestTwoRootsOfOneSizeAreFound(t *testing.T) {
	t.Parallel()
	a, err := open(t, Config{Mode: Batched}).Sign(t.Context(), testArrival(1))
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(t, Config{Mode: Batched}).Sign(t.Context(), testArrival(2))
	if err != nil {
		t.Fatal(err)
	}
	v := &Verifier{Pins: pinned(testKey(t, "key"))}
	wantVerdict(t, v, a, Valid)
	wantVerdict(t, v, b, Inconsistent)
}

// logOf is a log that a verifier was given.
type logOf struct {
	leaves []Hash
	roots  map[uint64]Hash
}

func (l logOf) Leaf(seq uint64) (Hash, bool) {
	if seq >= uint64(len(l.leaves)) {
		return Hash{}, false
	}
	return l.leaves[seq], true
}

func (l logOf) Root(size uint64) (Hash, bool) {
	h, ok := l.roots[size]
	return h, ok
}

func TestTheLogDecidesOnARevokedKey(t *testing.T) {
	t.Parallel()
	_, batch := someReceipts(t)
	revoked := int64(3)
	pins := pinned(testKey(t, "key"))
	pins.Keys[0].Revoked = &revoked
	var all logOf
	var f frontier
	all.roots = make(map[uint64]Hash)
	for _, r := range batch {
		p, err := parseReceipt(r)
		if err != nil {
			t.Fatal(err)
		}
		leaf, _ := leafHash(nil, p.envelope)
		all.leaves = append(all.leaves, leaf)
		f.add(leaf)
		all.roots[f.size] = f.root()
	}
	wantVerdict(t, &Verifier{Pins: pins, Log: all}, batch[1], Valid)
	wantVerdict(t, &Verifier{Pins: pins, Log: logOf{all.leaves[:2], all.roots}}, batch[2], NotInLog)
	wantVerdict(t, &Verifier{Pins: pins, Log: logOf{all.leaves, nil}}, batch[1], NotInLog)
	other := map[uint64]Hash{3: all.leaves[0]}
	wantVerdict(t, &Verifier{Pins: pins, Log: logOf{all.leaves, other}}, batch[1], Inconsistent)
}

// A checkpoint is a signed note to the library that others read them with.
func TestCheckpointsAreSignedNotes(t *testing.T) {
	t.Parallel()
	_, batch := someReceipts(t)
	var doc struct{ Checkpoint string }
	if err := json.Unmarshal(batch[0], &doc); err != nil {
		t.Fatal(err)
	}
	text, err := note.NewEd25519VerifierKey(testName, testKey(t, "key").Public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open([]byte(doc.Checkpoint), note.VerifierList(verifier)); err != nil {
		t.Errorf("%v: %q", err, doc.Checkpoint)
	}
}

func TestWhatIsNoReceiptIsUnusable(t *testing.T) {
	t.Parallel()
	single, batch := someReceipts(t)
	for in, want := range map[string]string{
		"":                   "malformed at byte 0: empty",
		"hello":              "malformed at byte 0: syntax",
		string(single) + "x": "malformed at byte " + string(appendUint(nil, uint64(len(single)))) + ": trailing-data",
		`{}`:                 "invalid: /envelope: is missing",
		`[]`:                 "invalid: want an object",
		`{"envelope":1,"form":"single","leaf":"","sig":""}`:               "invalid: /envelope: want an object",
		`{"envelope":{},"form":"double","leaf":"","sig":""}`:              "invalid: /form: want single, batch or rotation",
		`{"envelope":{},"form":"single","leaf":"AA","sig":""}`:            "invalid: /leaf: want 32 bytes in base64",
		string(swap(t, single, `"sig":"`, `"sig":"A`)):                    "invalid: /sig: want 64 bytes in base64url without padding",
		string(swap(t, single, `,"leaf"`, `,"key":"x","leaf"`)):           "invalid: /key: there is no such member; the schema is closed",
		string(swap(t, single, `"form":"single"`, `"form":"batch"`)):      "invalid: /form: is batch, but the members are those of another form",
		string(swap(t, batch[0], `"proof":[`, `"proof":[1,`)):             "invalid: /proof: want an array of at most 64 hashes of 32 bytes in base64",
		`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: "malformed at byte 36: too-deep",
		strings.Repeat(" ", MaxReceipt+1):                                 "too_large at byte 16384: too-large",
	} {
		v := &Verifier{Pins: pinned(testKey(t, "key"))}
		_, err := v.Verify([]byte(in))
		var r *Refusal
		if !errors.As(err, &r) || err.Error() != want {
			t.Errorf("%.80q: got %v, want %s", in, err, want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	single, batch := someReceipts(f)
	f.Add([]byte(single))
	for _, b := range batch {
		f.Add([]byte(b))
	}
	f.Add([]byte(`{"envelope":{},"form":"rotation","leaf":"","sig":"","sig_new":""}`))
	pins := pinned(testKey(f, "key"))
	valid := map[string]bool{}
	for _, r := range append(batch, single) {
		valid[between(r, `"envelope":`, `,"form"`)] = true
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v := &Verifier{Pins: pins, Now: func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }}
		got, err := v.Verify(doc)
		if err != nil || got.Code != Valid {
			return
		}
		canonical, err := got.Envelope.MarshalJSON()
		if err != nil || !valid[string(canonical)] {
			t.Fatalf("a forgery: %s", doc)
		}
	})
}

func FuzzPins(f *testing.F) {
	key := testKey(f, "key")
	f.Add((&Pins{Gateway: testName, Keys: []Pin{PinOf(key.Public)}}).Encode())
	f.Add([]byte(`{"gateway":"g","keys":[{"kty":"OKP","crv":"Ed25519","x":"","kid":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePins(text)
		if err != nil {
			return
		}
		again, err := ParsePins(p.Encode())
		if err != nil || len(again.Keys) != len(p.Keys) {
			t.Fatalf("%s reads as %s, %v", text, p.Encode(), err)
		}
	})
}

func TestPinsAreReadStrictly(t *testing.T) {
	t.Parallel()
	key := testKey(t, "key")
	good := string((&Pins{Gateway: testName, Keys: []Pin{PinOf(key.Public)}}).Encode())
	if _, err := ParsePins([]byte(good)); err != nil {
		t.Fatal(err)
	}
	x := base64.RawURLEncoding.EncodeToString(key.Public)
	other := base64.RawURLEncoding.EncodeToString(testKey(t, "other").Public)
	for want, text := range map[string]string{
		"unknown field":              strings.Replace(good, `"kty"`, `"kty2"`, 1),
		"no keys":                    `{"gateway":"g"}`,
		"gateway \"\" is empty":      strings.Replace(good, testName, "", 1),
		"has a character other than": strings.Replace(good, testName, "a b", 1),
		"want OKP Ed25519":           strings.Replace(good, "Ed25519", "P-256", 1),
		"x is not 32 bytes":          strings.Replace(good, x, x[1:], 1),
		"is not its thumbprint":      strings.Replace(good, x, other, 1),
		"something stands behind":    good + "{}",
		"stands twice":               string((&Pins{Gateway: "g", Keys: []Pin{PinOf(key.Public), PinOf(key.Public)}}).Encode()),
		"unexpected EOF":             good[:20],
	} {
		if _, err := ParsePins([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEd25519IsWhatRFC8032Says(t *testing.T) {
	t.Parallel()
	// RFC 8032 §7.1, test 2.
	seed := []byte("\x4c\xcd\x08\x9b\x28\xff\x96\xda\x9d\xb6\xc3\x46\xec\x11\x4e\x0f\x5b\x8a\x31\x9f\x35\xab\xa6\x24\xda\x8c\xf6\xed\x4f\xb8\xa6\xfb")
	want := "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
	k, err := NewKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := k.sign([]byte{0x72})
	if err != nil || strings.ToLower(hexOf(sig)) != want {
		t.Errorf("got %x, %v", sig, err)
	}
	// RFC 8037 appendix A.3: the thumbprint of appendix A.2's key.
	x, _ := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if got := KID(x); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("thumbprint %s", got)
	}
}
