package receipt

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func testKey(t testing.TB, seed string) Key {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	k, err := NewKey(ed25519.NewKeyFromSeed(sum[:]))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func testArrival(n int) Arrival {
	sum := sha256.Sum256(fmt.Append(nil, n))
	return Arrival{
		RequestID: fmt.Sprintf("request-%08d", n), RequestHash: hex.EncodeToString(sum[:]),
		Tenant: "acme", Namespace: "prod", PolicyID: "policy-7", PolicyVersion: 3,
	}
}

const testName = "gateway.example"

func open(t testing.TB, cfg Config) *Gateway {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = testName
	}
	if cfg.Key.Public == nil {
		cfg.Key = testKey(t, "key")
	}
	gw, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gw.Close() })
	return gw
}

func pinned(keys ...Key) *Pins {
	p := &Pins{Gateway: testName}
	for _, k := range keys {
		p.Keys = append(p.Keys, PinOf(k.Public))
	}
	return p
}

func wantVerdict(t testing.TB, v *Verifier, r []byte, want string) Verdict {
	t.Helper()
	got, err := v.Verify(r)
	if err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	if got.Code != want {
		t.Fatalf("verdict %s (%s), want %s, of %s", got.Code, got.Detail, want, r)
	}
	return got
}

// everyGateway runs a test on each mode, volatile and durable.
func everyGateway(t *testing.T, test func(t *testing.T, cfg Config)) {
	for _, mode := range []Mode{Sync, Batched, Inproc} {
		for _, d := range []Durability{None, Fsync} {
			t.Run(string(mode)+"/"+string(d), func(t *testing.T) {
				t.Parallel()
				cfg := Config{Name: testName, Key: testKey(t, "key"), Mode: mode, Durability: d}
				if d == Fsync {
					cfg.Dir = filepath.Join(t.TempDir(), "log")
				}
				test(t, cfg)
			})
		}
	}
}

func TestEveryArrivalGetsAReceiptThatVerifies(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		gw := open(t, cfg)
		const callers, each = 16, 30
		receipts := make([]Receipt, callers*each)
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					n := c*each + i
					r, err := gw.Sign(t.Context(), testArrival(n))
					if err != nil {
						t.Error(err)
						return
					}
					receipts[n] = r
				}
			})
		}
		wg.Wait()
		v := &Verifier{Pins: pinned(cfg.Key)}
		seqs := make(map[int64]bool)
		for n, r := range receipts {
			got := wantVerdict(t, v, r, Valid)
			if got.Envelope.Arrival != testArrival(n) || seqs[got.Envelope.Seq] {
				t.Fatalf("receipt of %d is %+v", n, got.Envelope)
			}
			seqs[got.Envelope.Seq] = true
			again, err := gw.Sign(t.Context(), testArrival(n))
			if err != nil || !bytes.Equal(again, r) {
				t.Fatalf("asked again: %v\n%s\n%s", err, again, r)
			}
		}
		if len(seqs) != callers*each {
			t.Errorf("%d places for %d receipts", len(seqs), callers*each)
		}
	})
}

func TestTheSameIDWithAnotherHashIsAConflict(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		gw := open(t, cfg)
		a := testArrival(1)
		first, err := gw.Sign(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		other := a
		other.RequestHash = testArrival(2).RequestHash
		for _, out := range gw.SignBatch(t.Context(), []Arrival{a, other, a}) {
			var r *Refusal
			if out.Err == nil && !bytes.Equal(out.Receipt, first) {
				t.Errorf("another receipt: %s", out.Receipt)
			}
			if out.Err != nil && (!errors.As(out.Err, &r) || r.Code != Conflict) {
				t.Errorf("got %v", out.Err)
			}
		}
		if _, err := gw.Sign(t.Context(), other); err == nil || err.(*Refusal).Status() != 409 {
			t.Errorf("got %v", err)
		}
		elsewhere := other
		elsewhere.Tenant = "other"
		if _, err := gw.Sign(t.Context(), elsewhere); err != nil {
			t.Errorf("another tenant: %v", err)
		}
	})
}

func TestAcceptThenWait(t *testing.T) {
	t.Parallel()
	everyGateway(t, func(t *testing.T, cfg Config) {
		gw := open(t, cfg)
		ticket, err := gw.Accept(t.Context(), testArrival(5))
		if err != nil {
			t.Fatal(err)
		}
		r, err := ticket.Wait(t.Context())
		if err != nil || !ticket.Ready() {
			t.Fatal(err)
		}
		wantVerdict(t, &Verifier{Pins: pinned(cfg.Key)}, r, Valid)
		found, err := gw.Find("acme", testArrival(5).RequestID)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := found.Wait(t.Context()); err != nil || !bytes.Equal(again, r) {
			t.Errorf("found %s, %v", again, err)
		}
		if _, err := gw.Find("another", testArrival(5).RequestID); err == nil || err.(*Refusal).Code != NotFound {
			t.Errorf("another tenant's: %v", err)
		}
	})
}

// Receipts are the same bytes after the log was opened again: from memory, from the index, and with the index removed.
func TestReceiptsOutliveTheGateway(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Sync, Batched, Inproc} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			cfg := Config{Name: testName, Key: testKey(t, "key"), Mode: mode, Dir: filepath.Join(t.TempDir(), "log"), Remember: 32, Segment: 8 << 10, MaxBatch: 8}
			var all []Receipt
			epoch := int64(0)
			for life := range 4 {
				if life == 3 {
					if err := removeIndex(cfg.Dir); err != nil {
						t.Fatal(err)
					}
				}
				gw := open(t, cfg)
				for n, want := range all {
					got, err := gw.Sign(t.Context(), testArrival(n))
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("life %d, receipt %d: %v\n got %s\nwant %s", life, n, err, got, want)
					}
				}
				for range 100 {
					r, err := gw.Sign(t.Context(), testArrival(len(all)))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, r)
				}
				v := wantVerdict(t, &Verifier{Pins: pinned(cfg.Key)}, all[len(all)-1], Valid)
				if v.Envelope.Epoch <= epoch || v.Envelope.Seq != int64(len(all)-1) {
					t.Errorf("life %d: epoch %d after %d, seq %d", life, v.Envelope.Epoch, epoch, v.Envelope.Seq)
				}
				epoch = v.Envelope.Epoch
				if err := gw.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestASyncReceiptAllocatesTwice(t *testing.T) {
	gw := open(t, Config{Remember: 64})
	arrivals := make([]Arrival, 2000)
	for i := range arrivals {
		arrivals[i] = testArrival(i)
	}
	i := 0
	n := testing.AllocsPerRun(1500, func() {
		if _, err := gw.Sign(context.Background(), arrivals[i]); err != nil {
			t.Fatal(err)
		}
		i++
	})
	if n > 2 {
		t.Errorf("%v allocations per receipt; want 2: the receipt and the signature", n)
	}
}

func BenchmarkSync(b *testing.B) {
	gw := open(b, Config{})
	a := testArrival(0)
	id := []byte(a.RequestID)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i, v := len(id)-1, n; i > 7; i, v = i-1, v/10 {
			id[i] = byte('0' + v%10)
		}
		a.RequestID = string(id)
		if _, err := gw.Sign(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignAlone(b *testing.B) {
	k := testKey(b, "key")
	env, _ := appendEnvelope(nil, &Arrival{RequestID: "x"}, testName, k.KID, []byte(time.Now().UTC().Format(timeLayout)), 1, 1)
	for b.Loop() {
		k.sign(env)
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			gw := open(b, Config{Mode: Batched})
			arrivals := make([]Arrival, size)
			for i := range arrivals {
				arrivals[i] = testArrival(i)
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				for i := range arrivals {
					arrivals[i].RequestID = fmt.Sprintf("request-%08d", n)
					n++
				}
				for _, o := range gw.SignBatch(b.Context(), arrivals) {
					if o.Err != nil {
						b.Fatal(o.Err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/receipt")
		})
	}
}

func BenchmarkCallers(b *testing.B) {
	for _, mode := range []Mode{Sync, Batched} {
		for _, callers := range []int{1, 16, 64, 128} {
			b.Run(fmt.Sprintf("%s/%d", mode, callers), func(b *testing.B) {
				gw := open(b, Config{Mode: mode})
				b.SetParallelism(callers)
				b.ReportAllocs()
				var mu sync.Mutex
				next := 0
				b.RunParallel(func(pb *testing.PB) {
					mu.Lock()
					n := next
					next += 100_000_00
					mu.Unlock()
					a := testArrival(0)
					for pb.Next() {
						n++
						a.RequestID = fmt.Sprintf("request-%d", n)
						if _, err := gw.Sign(b.Context(), a); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}

func removeIndex(dir string) error { return os.Remove(filepath.Join(dir, indexFile)) }
