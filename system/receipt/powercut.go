package receipt

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// PowerCuts says how to simulate power cuts.
type PowerCuts struct {
	Cuts int
	Seed uint64

	skip string // a kind of sync to leave out: then something must be lost
}

// CrashReport is what crashes left of what was acknowledged.
type CrashReport struct {
	Crashes      int            `json:"crashes"`
	Acknowledged int            `json:"acknowledged"` // receipts and tickets that callers held when the crash came
	Lost         int            `json:"lost"`         // of them, not there afterwards
	Doubled      int            `json:"doubled"`      // places or requests that got two different receipts
	Differing    int            `json:"differing"`    // receipts that were not the same bytes afterwards
	Unverified   int            `json:"unverified"`   // receipts that do not verify, or that the log does not hold
	Replayed     int            `json:"replayed"`     // acknowledged and not signed when the crash came, signed afterwards
	Rotations    int            `json:"rotations"`    // hand-overs of the key that were made between crashes
	TornBytes    int64          `json:"torn_bytes"`   // that a crash left behind the last whole record
	Repeats      int            `json:"repeats"`      // retries that got their receipt again
	Syncs        map[string]int `json:"syncs,omitempty"`
	First        string         `json:"first,omitempty"` // what was wrong first
}

// Failed reports whether anything was lost, doubled or different.
func (r *CrashReport) Failed() bool { return r.Lost+r.Doubled+r.Differing+r.Unverified > 0 }

func (r *CrashReport) note(count *int, format string, args ...any) {
	*count++
	if r.First == "" {
		r.First = fmt.Sprintf(format, args...)
	}
}

// livesOfADisk is how many cuts a simulated disk goes through before a new one takes its place.
const livesOfADisk = 8

// Run cuts the power of a gateway under load so many times, at random operations of its disk, and looks afterwards for
// everything that was acknowledged.
func (p PowerCuts) Run(ctx context.Context) (*CrashReport, error) {
	report := &CrashReport{Syncs: make(map[string]int)}
	rnd := rand.New(rand.NewPCG(p.Seed, 1))
	for report.Crashes < p.Cuts {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		d := &drill{rand: rnd, report: report, disk: newSimDisk(rnd), held: make(map[int]Receipt), epochs: make(map[int64]bool)}
		d.disk.skip, d.sidecar = p.skip, rnd.IntN(4) == 0
		d.newKey()
		for range min(livesOfADisk, p.Cuts-report.Crashes) {
			if err := d.life(ctx); err != nil {
				return report, err
			}
			report.Crashes++
			if p.skip != "" && report.Failed() {
				return report, nil
			}
		}
		report.Acknowledged += len(d.held)
	}
	return report, nil
}

// A drill is one disk and what callers hold of what was written to it.
type drill struct {
	rand   *rand.Rand
	report *CrashReport
	disk   *simDisk
	keys   []Key // the last one signs
	next   int   // number of the next new request
	// sidecar has a signer with a memory of its own, on the same disk, make all signatures.
	sidecar bool
	epochs  map[int64]bool

	mu   sync.Mutex
	held map[int]Receipt // by the request's number; an empty one is a ticket
}

func (d *drill) newKey() {
	sum := sha256.Sum256(fmt.Append(nil, "drill ", d.rand.Uint64()))
	k, err := NewKey(ed25519.NewKeyFromSeed(sum[:]))
	if err != nil {
		panic("a key from a seed: " + err.Error())
	}
	d.keys = append(d.keys, k)
}

func (d *drill) key() Key { return d.keys[len(d.keys)-1] }

func (d *drill) config() Config {
	return Config{
		Name: "drill", Key: d.key(), Mode: []Mode{Sync, Batched, Inproc}[d.rand.IntN(3)], Dir: "/log", Durability: Fsync,
		MaxBatch: 4, Segment: int64(1500 + d.rand.IntN(4000)), files: d.disk,
	}
}

// open opens a gateway on the disk, and its sidecar if it has one.
func (d *drill) open() (gw *Gateway, closeAll func() error, err error) {
	cfg := d.config()
	if !d.sidecar {
		if gw, err = Open(cfg); err != nil {
			return nil, nil, err
		}
		return gw, gw.Close, nil
	}
	s, err := NewSidecar(SidecarConfig{Name: cfg.Name, Key: cfg.Key, Dir: "/guard", files: d.disk})
	if err != nil {
		return nil, nil, err
	}
	// In this process a notary does not wait for anything; the timeout only bounds how long Close tries without power.
	cfg.Mode, cfg.Notary, cfg.Key, cfg.Timeout = Sidecar, s, PublicKey(cfg.Key.Public), drillTimeout/10
	if gw, err = Open(cfg); err != nil {
		s.Close()
		return nil, nil, err
	}
	return gw, func() error { return errors.Join(gw.Close(), s.Close()) }, nil
}

// drillTimeout bounds what waits for a sidecar that has no power.
const drillTimeout = 200 * time.Millisecond

// drillArrival is a request by its number.
func drillArrival(n int) Arrival {
	sum := sha256.Sum256(fmt.Append(nil, "request ", n))
	return Arrival{fmt.Sprintf("r-%d", n), hex.EncodeToString(sum[:]), "tenant", "drill", "p", int64(n % 7)}
}

// life opens a gateway on the disk, lets callers sign until the power goes, and looks for what they hold.
func (d *drill) life(ctx context.Context) error {
	d.disk.left = d.rand.IntN(60)
	gw, closeAll, err := d.open()
	if err == nil {
		powered, cancel := context.WithCancel(ctx)
		d.disk.gone = cancel
		d.callers(powered, gw)
		cancel()
		closeAll() // the power is gone: it can only fail
	} else if !errors.Is(err, errPower) {
		d.report.note(&d.report.Lost, "the log could not be opened: %v", err)
		return nil
	}
	if d.rand.IntN(6) == 0 && !d.sidecar {
		d.disk = d.disk.cut()
		d.disk.left = d.rand.IntN(25)
		d.rotate()
	}
	for kind, n := range d.disk.syncs {
		d.report.Syncs[kind] += n
	}
	d.disk = d.disk.cut()
	return d.audit(ctx)
}

// callers sign side by side until the power is gone.
func (d *drill) callers(ctx context.Context, gw *Gateway) {
	first := d.next
	d.next += 400
	var wg sync.WaitGroup
	for c := range 4 {
		seed := d.rand.Uint64()
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range 100 {
				if !d.call(ctx, gw, first+c*100+i, rnd) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// call makes one request, now and then only for a ticket, and now and then once more. It reports whether the power was there.
func (d *drill) call(ctx context.Context, gw *Gateway, n int, rnd *rand.Rand) bool {
	if rnd.IntN(4) == 0 {
		if _, err := gw.Accept(ctx, drillArrival(n)); err != nil {
			return false
		}
		d.hold(n, nil)
		return true
	}
	r, err := gw.Sign(ctx, drillArrival(n))
	if err != nil {
		return false
	}
	d.hold(n, r)
	if rnd.IntN(4) > 0 {
		return true
	}
	again, err := gw.Sign(ctx, drillArrival(n))
	if err == nil && !bytes.Equal(r, again) {
		d.mu.Lock()
		d.report.note(&d.report.Doubled, "request %d got two receipts", n)
		d.mu.Unlock()
	}
	return err == nil
}

func (d *drill) hold(n int, r Receipt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[n] = r
}

// rotate hands over to a new key while the power may go. Whether it was done, the log tells.
func (d *drill) rotate() {
	old := d.key()
	cfg := d.config()
	d.newKey()
	if _, err := Rotate(cfg, d.key()); err == nil {
		d.report.Rotations++
		return
	} else if !errors.Is(err, errPower) {
		d.report.note(&d.report.Lost, "the key could not be handed over: %v", err)
		return
	}
	d.disk = d.disk.cut()
	cfg = d.config()
	cfg.Key, cfg.files = old, d.disk
	if _, err := Rotate(cfg, d.key()); err != nil { // finishes it, or makes it
		d.report.note(&d.report.Lost, "a hand-over of the key that the power broke off could not be finished: %v", err)
		return
	}
	d.report.Rotations++
}

// audit opens the log with the power on and asks for everything that is held.
func (d *drill) audit(ctx context.Context) error {
	gw, closeAll, err := d.open()
	if err != nil {
		d.report.note(&d.report.Lost, "after the cut the log could not be opened: %v", err)
		return nil
	}
	d.report.Replayed += int(gw.counts.replayed.Load())
	d.report.TornBytes += gw.counts.torn.Load()
	if d.epochs[gw.epoch] && gw.tree.size > 0 {
		d.report.note(&d.report.Doubled, "epoch %d came twice", gw.epoch)
	}
	d.epochs[gw.epoch-1] = true
	pins := &Pins{Gateway: "drill"}
	for _, k := range d.keys {
		pins.Keys = append(pins.Keys, PinOf(k.Public))
	}
	for n, r := range d.held {
		d.look(ctx, gw, n, r)
	}
	if err := closeAll(); err != nil {
		return err
	}
	view, err := readLog(d.disk, "/log")
	if err != nil {
		return err
	}
	if view.Repeated > 0 {
		d.report.note(&d.report.Doubled, "%d requests stand in the log twice", view.Repeated)
	}
	v := &Verifier{Pins: pins, Log: view.Log()}
	for n, r := range d.held {
		if verdict, err := v.Verify(r); err != nil || verdict.Code != Valid {
			d.report.note(&d.report.Unverified, "request %d: %s %s %v", n, verdict.Code, verdict.Detail, err)
		}
	}
	return nil
}

// look asks again for one request that was acknowledged.
func (d *drill) look(ctx context.Context, gw *Gateway, n int, held Receipt) {
	ticket, err := gw.Find("tenant", fmt.Sprintf("r-%d", n))
	if err != nil {
		d.report.note(&d.report.Lost, "request %d was acknowledged: %v", n, err)
		delete(d.held, n)
		return
	}
	limited, cancel := context.WithTimeout(ctx, 50*drillTimeout)
	defer cancel()
	r, err := ticket.Wait(limited)
	switch {
	case err != nil:
		d.report.note(&d.report.Lost, "request %d was acknowledged: %v", n, err)
		delete(d.held, n)
		return
	case held == nil:
		d.held[n] = r // what a ticket was for
	case !bytes.Equal(r, held):
		d.report.note(&d.report.Differing, "request %d: the receipt is %s, it was %s", n, r, held)
	}
	again, err := gw.Sign(ctx, drillArrival(n))
	if err != nil || !bytes.Equal(again, r) {
		d.report.note(&d.report.Doubled, "request %d, asked again: %v", n, err)
	}
	d.report.Repeats++
}
