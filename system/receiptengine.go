package system

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"toll/system/receipt"
	"toll/wire/engine"
)

// receiptName is the gateway of the benchmark receipt.
const receiptName = "gateway.example"

// receiptInput is what the benchmark's engine is told beside the case.
type receiptInput struct {
	Contender string `json:"contender"` // sync, sync-fast, batch, inproc-async or floor
	Dir       string `json:"dir"`       // of a durable case: where the log goes; it must exist, and is the caller's to remove
}

// receipts is the engine of system/receipt: one gateway for the life of the process, so that its log and its memory of ids
// are those of a server that runs. Receipts are verified after the clock has stopped, every one, and tampered ones must fail.
func receipts() engine.Bench {
	b := new(receiptBench)
	return b.work
}

type receiptBench struct {
	input  receiptInput
	volume string // volatile or durable
	gw     *receipt.Gateway
	key    receipt.Key
	next   int // number of the next request
}

func (b *receiptBench) work(_ context.Context, q engine.Question) (engine.Work, error) {
	op, volume, ok := strings.Cut(q.Case, "/")
	if !ok || op != "receipt" && op != "accept" || volume != "volatile" && volume != "durable" {
		return engine.Work{}, fmt.Errorf("case %q is none of this engine; want receipt or accept, /volatile or /durable", q.Case)
	}
	var in receiptInput
	d := json.NewDecoder(strings.NewReader(string(q.Input)))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return engine.Work{}, fmt.Errorf("case %s: its input: %w", q.Case, err)
	}
	if b.gw != nil && (b.input != in || b.volume != volume) {
		return engine.Work{}, errors.New("this process has the gateway of another contender or case")
	}
	if b.gw == nil {
		if err := b.open(in, volume); err != nil {
			return engine.Work{}, err
		}
	}
	w := &receiptWork{bench: b, calls: q.Calls, arrivals: make([]receipt.Arrival, q.Calls), receipts: make([]receipt.Receipt, q.Calls)}
	for i := range w.arrivals {
		w.arrivals[i] = BenchArrival(b.next)
		b.next++
	}
	switch {
	case in.Contender == "floor":
		return w.floor()
	case op == "accept":
		w.tickets = make([]receipt.Ticket, q.Calls)
		return engine.Work{Call: w.accept, Check: w.check, Collected: true}, nil
	case in.Contender == "sync" || in.Contender == "sync-fast":
		return engine.Work{Call: w.signTimed, Check: w.check, Collected: true}, nil
	}
	return engine.Work{Call: w.sign, Check: w.check, Collected: true}, nil
}

// BenchArrival is request number n of the benchmark receipt: as large as the published benchmark's, 342 bytes as an envelope.
func BenchArrival(n int) receipt.Arrival {
	var seed [8]byte
	for i := range seed {
		seed[i] = byte(n >> (8 * i))
	}
	sum := sha256.Sum256(seed[:])
	return receipt.Arrival{
		RequestID: "req-" + strconv.Itoa(100_000_000+n), RequestHash: hex.EncodeToString(sum[:]),
		Tenant: "acme", Namespace: "prod", PolicyID: "policy-7", PolicyVersion: 3,
	}
}

func (b *receiptBench) open(in receiptInput, volume string) error {
	seed := sha256.Sum256([]byte("toll benchmark receipt"))
	signer := crypto.Signer(ed25519.NewKeyFromSeed(seed[:]))
	if in.Contender == "sync-fast" {
		fast, ok := fastSigner(seed[:])
		if !ok {
			return errors.New("this binary has no faster Ed25519; build it with the tag voi")
		}
		signer = fast
	}
	key, err := receipt.NewKey(signer)
	if err != nil {
		return err
	}
	modes := map[string]receipt.Mode{
		"sync": receipt.Sync, "sync-fast": receipt.Sync, "floor": receipt.Sync, "batch": receipt.Batched, "inproc-async": receipt.Inproc,
	}
	mode, ok := modes[in.Contender]
	if !ok {
		return fmt.Errorf("contender %q is none of this engine", in.Contender)
	}
	cfg := receipt.Config{Name: receiptName, Key: key, Mode: mode}
	if volume == "durable" {
		if _, err := os.Stat(in.Dir); err != nil {
			return fmt.Errorf("a durable case: its folder: %w", err)
		}
		cfg.Dir, cfg.Durability = filepath.Join(in.Dir, "log"), receipt.Fsync
	}
	b.gw, err = receipt.Open(cfg)
	b.input, b.volume, b.key = in, volume, key
	return err
}

// receiptWork is one stretch.
type receiptWork struct {
	bench    *receiptBench
	calls    int
	arrivals []receipt.Arrival
	receipts []receipt.Receipt
	tickets  []receipt.Ticket
}

func (w *receiptWork) sign(ctx context.Context, _, i int, _ *engine.Parts) (err error) {
	w.receipts[i], err = w.bench.gw.Sign(ctx, w.arrivals[i])
	return err
}

func (w *receiptWork) signTimed(ctx context.Context, _, i int, parts *engine.Parts) (err error) {
	var t receipt.Timing
	w.receipts[i], err = w.bench.gw.SignTimed(ctx, w.arrivals[i], &t)
	parts.Add("envelope", t.Envelope)
	parts.Add("sign", t.Sign)
	return err
}

func (w *receiptWork) accept(ctx context.Context, _, i int, _ *engine.Parts) (err error) {
	w.tickets[i], err = w.bench.gw.Accept(ctx, w.arrivals[i])
	return err
}

// floor is the signature alone, of the envelope that the others sign: what no receipt with one signature each can be below.
func (w *receiptWork) floor() (engine.Work, error) {
	messages := make([][]byte, w.calls)
	for i := range messages {
		r, err := w.bench.gw.Sign(context.Background(), w.arrivals[i])
		if err != nil {
			return engine.Work{}, err
		}
		if messages[i], err = envelopeOf(r); err != nil {
			return engine.Work{}, err
		}
	}
	sigs, key := make([][]byte, w.calls), w.bench.key
	return engine.Work{
		Call: func(_ context.Context, _, i int, _ *engine.Parts) (err error) {
			sigs[i], err = key.Signer.Sign(nil, messages[i], crypto.Hash(0))
			return err
		},
		Check: func() (int, error) {
			for i, s := range sigs {
				if !ed25519.Verify(key.Public, messages[i], s) {
					return i, fmt.Errorf("signature %d does not verify", i)
				}
			}
			return len(sigs), nil
		},
		Collected: true,
	}, nil
}

func envelopeOf(r receipt.Receipt) ([]byte, error) {
	var doc struct {
		Envelope json.RawMessage `json:"envelope"`
	}
	err := json.Unmarshal(r, &doc)
	return doc.Envelope, err
}

// check verifies every receipt, those behind tickets included, and that what was tampered with does not pass.
func (w *receiptWork) check() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for i, t := range w.tickets {
		var err error
		if w.receipts[i], err = t.Wait(ctx); err != nil {
			return 0, fmt.Errorf("the receipt of ticket %d: %w", i, err)
		}
	}
	pins := &receipt.Pins{Gateway: receiptName, Keys: []receipt.Pin{receipt.PinOf(w.bench.key.Public)}}
	return VerifyReceipts(pins, w.receipts, w.arrivals)
}

// FastSign reports whether this binary has an Ed25519 that is faster than the standard library's.
func FastSign() bool {
	_, ok := fastSigner(make([]byte, ed25519.SeedSize))
	return ok
}

// VerifyReceipts verifies receipts by pinned keys, that each is of its arrival (nil: of any) and that no two have one place,
// and returns how many it verified. Controls with one byte changed must fail, or nothing is believed.
func VerifyReceipts(pins *receipt.Pins, all []receipt.Receipt, arrivals []receipt.Arrival) (int, error) {
	v := &receipt.Verifier{Pins: pins}
	places := make(map[int64]bool, len(all))
	n := 0
	for i, r := range all {
		if r == nil {
			continue // a call that failed
		}
		verdict, err := v.Verify(r)
		switch {
		case err != nil:
			return n, fmt.Errorf("receipt %d: %w", i, err)
		case verdict.Code != receipt.Valid:
			return n, fmt.Errorf("receipt %d: %s: %s", i, verdict.Code, verdict.Detail)
		case arrivals != nil && verdict.Envelope.Arrival != arrivals[i]:
			return n, fmt.Errorf("receipt %d is that of another request", i)
		case places[verdict.Envelope.Seq]:
			return n, fmt.Errorf("receipt %d: another has its place %d", i, verdict.Envelope.Seq)
		}
		places[verdict.Envelope.Seq] = true
		if n++; n%97 == 1 {
			if err := controlFails(pins, r, i); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// controlFails changes one byte of a receipt's hash: a verifier that takes it would take anything.
func controlFails(pins *receipt.Pins, r receipt.Receipt, i int) error {
	const name = `"request_hash":"`
	bad := append(receipt.Receipt(nil), r...)
	at := strings.Index(string(bad), name) + len(name) + i%64
	bad[at] ^= 1 // a digit becomes another, or no digit
	v := &receipt.Verifier{Pins: pins}
	if verdict, err := v.Verify(bad); err == nil && verdict.Code == receipt.Valid {
		return fmt.Errorf("control: receipt %d with its byte %d changed passed", i, at)
	}
	return nil
}
