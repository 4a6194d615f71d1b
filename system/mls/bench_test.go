package mls

import "testing"

// text is a message of seventy bytes.
var text = []byte("This is a message of seventy bytes, about as long as a text in a chat.")

func BenchmarkSeal(b *testing.B) {
	all := newClients(b, X25519AES128, 2)
	createGroup(b, all, CommitOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := all[0].group.Seal(nil, nil, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	all := newClients(b, X25519AES128, 2)
	createGroup(b, all, CommitOptions{})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		m := must(all[0].group.Seal(nil, nil, text))(b)
		b.StartTimer()
		if _, err := all[1].group.Open(m); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSealingAllocatesLittle holds the budget: a signature, the message, and two AES-GCM keys of two objects each.
func TestSealingAllocatesLittle(t *testing.T) {
	all := newClients(t, X25519AES128, 2)
	createGroup(t, all, CommitOptions{})
	n := testing.AllocsPerRun(200, func() { must(all[0].group.Seal(nil, nil, text))(t) })
	if n > 7 {
		t.Errorf("%v allocations to seal a message, want at most 7", n)
	}
	dst := make([]byte, 0, 4096)
	if m := testing.AllocsPerRun(200, func() { must(all[0].group.Seal(dst, nil, text))(t) }); m >= n {
		t.Errorf("%v allocations into a buffer that is large enough, %v without", m, n)
	}
}

// TestSealingToAKeyAllocatesLittle holds HPKE's budget: the ephemeral key and its public key, an AES-GCM key of two
// objects, and the ciphertext.
func TestSealingToAKeyAllocatesLittle(t *testing.T) {
	s := must(suiteOf(X25519AES128))(t)
	to := must(s.publicKey(must(s.generateKeyPair())(t).public))(t)
	info := s.hpkeInfo([]byte("info"))
	n := testing.AllocsPerRun(200, func() { must(s.seal(to, &info, text))(t) })
	if n > 5 {
		t.Errorf("%v allocations to seal to a key, want at most 5", n)
	}
}

// BenchmarkSealTo is HPKE's seal on each seam.
func BenchmarkSealTo(b *testing.B) {
	for i, s := range onSeams(b, X25519AES128) {
		b.Run(seams()[i].String(), func(b *testing.B) {
			to := must(s.publicKey(must(s.generateKeyPair())(b).public))(b)
			info := s.hpkeInfo([]byte("info"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.seal(to, &info, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
