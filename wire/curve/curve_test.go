package curve_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"filippo.io/edwards25519"

	"toll/wire/curve"
)

// random is deterministic bytes.
func random(seed uint64, n int) []byte {
	var out []byte
	for i := uint64(0); len(out) < n; i++ {
		var in [16]byte
		binary.LittleEndian.PutUint64(in[:], seed)
		binary.LittleEndian.PutUint64(in[8:], i)
		digest := sha512.Sum512(in[:])
		out = append(out, digest[:]...)
	}
	return out[:n]
}

func TestSignaturesAreThoseOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for i := range uint64(300) {
		seed := random(i, 32)
		s, err := curve.NewSigner(seed)
		if err != nil {
			t.Fatal(err)
		}
		key := ed25519.NewKeyFromSeed(seed)
		if !bytes.Equal(s.Public(), key[32:]) {
			t.Fatalf("seed %x: public key %x, want %x", seed, s.Public(), key[32:])
		}
		message := random(i+1000, int(i))
		if got, want := s.Sign(nil, message), ed25519.Sign(key, message); !bytes.Equal(got, want) {
			t.Fatalf("seed %x: signature %x, want %x", seed, got, want)
		}
	}
}

func TestKeysAreThoseOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	private := [][]byte{bytes.Repeat([]byte{0xff}, 32), make([]byte, 32)}
	for i := range uint64(300) {
		private = append(private, random(i, 32))
	}
	peer := must(ecdh.X25519().NewPrivateKey(random(7, 32)))(t)
	for _, p := range private {
		want := must(ecdh.X25519().NewPrivateKey(p))(t)
		if got := curve.Base((*[32]byte)(p)); !bytes.Equal(got[:], want.PublicKey().Bytes()) {
			t.Fatalf("private key %x: %x, want %x", p, got, want.PublicKey().Bytes())
		}
		var out [32]byte
		if !curve.Shared(&out, (*[32]byte)(p), (*[32]byte)(peer.PublicKey().Bytes())) {
			t.Fatalf("private key %x: nothing shared", p)
		}
		if shared := must(want.ECDH(peer.PublicKey()))(t); !bytes.Equal(out[:], shared) {
			t.Fatalf("private key %x: %x shared, want %x", p, out, shared)
		}
	}
}

// must is a value that has no error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// FuzzShared compares with the standard library on whatever is called a public key.
func FuzzShared(f *testing.F) {
	f.Add(random(1, 32), random(2, 32))
	for _, p := range torsion() {
		f.Add(random(1, 32), p.BytesMontgomery())
	}
	f.Add(random(1, 32), bytes.Repeat([]byte{0xff}, 32))
	f.Fuzz(func(t *testing.T, private, public []byte) {
		if len(private) != 32 || len(public) != 32 {
			return
		}
		var got [32]byte
		ok := curve.Shared(&got, (*[32]byte)(private), (*[32]byte)(public))
		want, err := must(ecdh.X25519().NewPrivateKey(private))(t).ECDH(must(ecdh.X25519().NewPublicKey(public))(t))
		if ok != (err == nil) || ok && !bytes.Equal(got[:], want) {
			t.Errorf("private %x public %x: %x %v, want %x %v", private, public, got, ok, want, err)
		}
	})
}

// torsion lists the eight points of small order.
func torsion() []*edwards25519.Point {
	// A point of order eight: l times a point that has a part of every order.
	l, _ := new(edwards25519.Scalar).SetCanonicalBytes([]byte("\xec\xd3\xf5\x5c\x1a\x63\x12\x58\xd6\x9c\xf7\xa2\xde\xf9\xde\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10"))
	for i := uint64(1); ; i++ {
		p, err := new(edwards25519.Point).SetBytes(random(i, 32))
		if err != nil {
			continue
		}
		// l P = (l-1) P + P; random points have a part of small order more often than not.
		q := new(edwards25519.Point).ScalarMult(l, p)
		q.Add(q, p)
		out := []*edwards25519.Point{edwards25519.NewIdentityPoint()}
		for range 7 {
			out = append(out, new(edwards25519.Point).Add(out[len(out)-1], q))
		}
		if out[4].Equal(out[0]) == 0 {
			return out
		}
	}
}

// verifiers are all the ways to verify one signature.
func verifiers(public, message, signature []byte) map[string]bool {
	out := map[string]bool{"single": curve.Verify(public, message, signature)}
	var b curve.Batch
	b.Add(public, message, signature)
	out["batch of one"] = b.Verify()
	// Among good ones of others and of a key that is met twice.
	var many curve.Batch
	for i := range uint64(9) {
		s, _ := curve.NewSigner(random(i/2, 32))
		many.Add(s.Public(), message, s.Sign(nil, message))
		if i == 4 {
			many.Add(public, message, signature)
		}
	}
	out["batch of ten"] = many.Verify()
	k, ok := curve.Expand(public)
	out["expanded"] = ok && k.Verify(message, signature)
	return out
}

func agree(t *testing.T, public, message, signature []byte) (accepted bool) {
	t.Helper()
	all := verifiers(public, message, signature)
	for way, got := range all {
		if got != all["single"] {
			t.Errorf("%s says %v, single says %v: public %x message %x signature %x", way, got, all["single"], public, message, signature)
		}
	}
	return all["single"]
}

// forgery signs under a key with a part of small order, with an R that has one: what a batch of any construction can't tell
// from a good signature, and what a check without the cofactor refuses.
func forgery(a, r uint64, message []byte) (public, signature []byte) {
	small := torsion()
	seed := random(99, 64)
	private, _ := new(edwards25519.Scalar).SetUniformBytes(seed)
	nonce, _ := new(edwards25519.Scalar).SetUniformBytes(random(100, 64))
	bigA := new(edwards25519.Point).ScalarBaseMult(private)
	bigR := new(edwards25519.Point).ScalarBaseMult(nonce)
	public = bigA.Add(bigA, small[a]).Bytes()
	encoded := bigR.Add(bigR, small[r]).Bytes()
	k := challengeOf(encoded, public, message)
	s := new(edwards25519.Scalar).MultiplyAdd(k, private, nonce)
	return public, append(encoded, s.Bytes()...)
}

func TestAllWaysToVerifyAgreeOnPointsOfMixedOrder(t *testing.T) {
	t.Parallel()
	message, strict := []byte("who signed this?"), 0
	for a := range uint64(8) {
		for r := range uint64(8) {
			public, signature := forgery(a, r, message)
			if !agree(t, public, message, signature) {
				t.Errorf("torsion %d in A, %d in R: refused; the equation with the cofactor holds", a, r)
			}
			if !ed25519.Verify(public, message, signature) {
				strict++
			}
			signature[40] ^= 1
			if agree(t, public, message, signature) {
				t.Errorf("torsion %d in A, %d in R: accepted with another S", a, r)
			}
		}
	}
	if strict == 0 {
		t.Error("the standard library accepts them all, so they are not of mixed order")
	}
}

func TestWhatNobodyHonestEncodesIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	s := must(curve.NewSigner(random(1, 32)))(t)
	message := []byte("text")
	good := s.Sign(nil, message)
	if !agree(t, s.Public(), message, good) {
		t.Fatal("a good signature is refused")
	}
	high := bytes.Clone(good) // S + l
	carry := 0
	for i, b := range []byte("\xed\xd3\xf5\x5c\x1a\x63\x12\x58\xd6\x9c\xf7\xa2\xde\xf9\xde\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10") {
		carry += int(high[32+i]) + int(b)
		high[32+i], carry = byte(carry), carry>>8
	}
	tests := map[string][2][]byte{
		"S + l":              {s.Public(), high},
		"short":              {s.Public(), good[:63]},
		"long":               {s.Public(), append(bytes.Clone(good), 0)},
		"empty":              {s.Public(), nil},
		"key of 31 bytes":    {s.Public()[:31], good},
		"another key":        {must(curve.NewSigner(random(2, 32)))(t).Public(), good},
		"y = p + 3":          {append(append([]byte{0xf0}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f), good},
		"R with y = p + 3":   {s.Public(), append(append(append([]byte{0xf0}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f), good[32:]...)},
		"R off the curve":    {s.Public(), append(append([]byte{2}, make([]byte, 31)...), good[32:]...)},
		"A off the curve":    {append([]byte{2}, make([]byte, 31)...), good},
		"identity, all zero": {append([]byte{1}, make([]byte, 31)...), append(append([]byte{1}, make([]byte, 31)...), make([]byte, 32)...)},
	}
	for i, p := range torsion() {
		name := string(rune('0' + i))
		tests["A of small order "+name] = [2][]byte{p.Bytes(), good}
		tests["R of small order "+name] = [2][]byte{s.Public(), append(p.Bytes(), good[32:]...)}
		// S = k a makes 8 S B = 8 R + 8 k A hold for an R of small order.
		k := challengeOf(p.Bytes(), s.Public(), message)
		sum := new(edwards25519.Scalar).Multiply(k, privateOf(random(1, 32)))
		tests["R of small order that verifies "+name] = [2][]byte{s.Public(), append(p.Bytes(), sum.Bytes()...)}
	}
	for name, v := range tests {
		if agree(t, v[0], message, v[1]) {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzVerify holds all ways to verify to the same answer, and to the standard library's where that says yes.
func FuzzVerify(f *testing.F) {
	for i := range uint64(4) {
		s, _ := curve.NewSigner(random(i, 32))
		f.Add(s.Public(), []byte("text"), s.Sign(nil, []byte("text")), uint8(i), uint8(3*i))
	}
	for a := range uint64(8) {
		public, signature := forgery(a, 7-a, []byte("text"))
		f.Add(public, []byte("text"), signature, uint8(0), uint8(0))
	}
	small := torsion()
	f.Fuzz(func(t *testing.T, public, message, signature []byte, a, r uint8) {
		if len(public) == 32 && len(signature) == 64 {
			// What is given, with a part of small order added to A and to R.
			public, signature = bytes.Clone(public), bytes.Clone(signature)
			if p, err := new(edwards25519.Point).SetBytes(public); err == nil && a%8 > 0 {
				copy(public, p.Add(p, small[a%8]).Bytes())
			}
			if p, err := new(edwards25519.Point).SetBytes(signature[:32]); err == nil && r%8 > 0 {
				copy(signature, p.Add(p, small[r%8]).Bytes())
			}
		}
		accepted := agree(t, public, message, signature)
		if len(public) == 32 && ed25519.Verify(public, message, signature) && !curve.SmallOrder(public) && !curve.SmallOrder(signature[:32]) && canonical(public) && !accepted {
			t.Errorf("refused what the standard library accepts: public %x message %x signature %x", public, message, signature)
		}
	})
}

func canonical(public []byte) bool {
	p, err := new(edwards25519.Point).SetBytes(public)
	return err == nil && bytes.Equal(p.Bytes(), public)
}

func TestABatchFindsOneBadSignatureAmongMany(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 7, 63, 64, 65, 200} {
		var b curve.Batch
		publics, signatures := make([][]byte, n), make([][]byte, n)
		for i := range n {
			s := must(curve.NewSigner(random(uint64(i/2), 32)))(t)
			publics[i], signatures[i] = s.Public(), s.Sign(nil, []byte{byte(i)})
			b.Add(publics[i], []byte{byte(i)}, signatures[i])
		}
		if !b.Verify() {
			t.Errorf("%d good signatures are refused", n)
		}
		for _, bad := range []int{0, n / 2, n - 1} {
			b.Reset()
			for i := range n {
				message := []byte{byte(i)}
				if i == bad {
					message[0]++
				}
				b.Add(publics[i], message, signatures[i])
			}
			if b.Verify() {
				t.Errorf("signature %d of %d is bad, and accepted", bad, n)
			}
		}
	}
}

// TestSmallOrderKeys holds the list of encodings to what X25519 itself says of them.
func TestSmallOrderKeys(t *testing.T) {
	t.Parallel()
	key := must(ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{7}, 32)))(t)
	eight := func(s string) []byte { return must(hex.DecodeString(s))(t) }
	p := func(low byte) []byte {
		return append(append([]byte{low}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f)
	}
	for _, u := range [][]byte{make([]byte, 32), append([]byte{1}, make([]byte, 31)...), p(0xec), p(0xed), p(0xee), eight("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"), eight("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")} {
		for _, top := range []byte{0, 0x80} {
			v := bytes.Clone(u)
			v[31] |= top
			public := must(ecdh.X25519().NewPublicKey(v))(t)
			if _, err := key.ECDH(public); err == nil {
				t.Errorf("%x is not of small order", v)
			}
			if !curve.SmallOrder(v) {
				t.Errorf("%x is not in the list", v)
			}
		}
	}
	for i := range 100 {
		if k := must(ecdh.X25519().NewPrivateKey(random(uint64(i), 32)))(t); curve.SmallOrder(k.PublicKey().Bytes()) {
			t.Errorf("%x is in the list", k.PublicKey().Bytes())
		}
	}
}

func BenchmarkSign(b *testing.B) {
	s := must(curve.NewSigner(random(1, 32)))(b)
	message, dst := random(2, 270), make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		s.Sign(dst, message)
	}
}

func BenchmarkKeyVerify(b *testing.B) {
	s := must(curve.NewSigner(random(1, 32)))(b)
	message := random(2, 270)
	signature := s.Sign(nil, message)
	k, _ := curve.Expand(s.Public())
	b.ReportAllocs()
	for b.Loop() {
		if !k.Verify(message, signature) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkExpand(b *testing.B) {
	s := must(curve.NewSigner(random(1, 32)))(b)
	for b.Loop() {
		curve.Expand(s.Public())
	}
}

func BenchmarkStandard(b *testing.B) {
	key := ed25519.NewKeyFromSeed(random(1, 32))
	message := random(2, 270)
	signature := ed25519.Sign(key, message)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			ed25519.Sign(key, message)
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			ed25519.Verify(ed25519.PublicKey(key[32:]), message, signature)
		}
	})
	b.Run("generate", func(b *testing.B) {
		for b.Loop() {
			if _, err := ecdh.X25519().GenerateKey(rand.Reader); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBase(b *testing.B) {
	private := [32]byte(random(1, 32))
	b.ReportAllocs()
	for b.Loop() {
		curve.Base(&private)
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 2, 16, 64} {
		for _, each := range []int{1, 2} {
			b.Run(string(rune('0'+each))+"/"+string(rune('0'+n/10))+string(rune('0'+n%10)), func(b *testing.B) {
				message := random(2, 270)
				publics, signatures := make([][]byte, n), make([][]byte, n)
				for i := range n {
					s := must(curve.NewSigner(random(uint64(i/each), 32)))(b)
					publics[i], signatures[i] = s.Public(), s.Sign(nil, message)
				}
				b.ReportAllocs()
				var batch curve.Batch
				for b.Loop() {
					batch.Reset()
					for i := range n {
						batch.Add(publics[i], message, signatures[i])
					}
					if !batch.Verify() {
						b.Fatal("refused")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/signature")
			})
		}
	}
}
