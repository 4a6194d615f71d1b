package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toll/contender/owner"
	"toll/system/receipt"
)

type receiptCrashtestCmd struct {
	Kills   int    `help:"How often a running gateway is killed (SIGKILL)." default:"50"`
	Cuts    int    `help:"How often the power of a simulated disk is cut." default:"1000"`
	Mode    string `help:"The gateway's mode, or all in turn: ${enum}." enum:"all,sync,batch,async-sidecar,async-inproc" default:"all"`
	Callers int    `help:"Callers side by side." default:"8"`
	Seed    uint64 `help:"Seed of every random choice." default:"1"`
	Dir     string `help:"Where the logs go; it is kept. Without one, a folder that is removed." placeholder:"FOLDER"`
	JSON    bool   `name:"json" help:"Print the report as JSON."`
}

// Help shows how it is used.
func (receiptCrashtestCmd) Help() string {
	return `Starts a gateway as a process, lets callers sign, kills it at a random moment and starts it again, over and over; in mode async-sidecar the sidecar, the gateway or both are killed. Then asks for every receipt and ticket that a caller held, and checks the log. The simulated disk forgets what was not synced, names in folders included.

  toll receipt crashtest
  toll receipt crashtest --kills 1000 --cuts 1000 --seed 7

Exit: 0 nothing lost, nothing doubled, every receipt the same bytes; 1 otherwise, 3 the test could not be made.`
}

// Run crashes, then audits.
func (c *receiptCrashtestCmd) Run(ctx context.Context, s *streams) error {
	if c.Kills < 0 || c.Cuts < 0 || c.Callers < 1 || c.Callers > 1000 {
		return usage("--kills, --cuts: at least 0; --callers: 1 to 1000")
	}
	var reports []*receipt.CrashReport
	begin := time.Now()
	if c.Kills > 0 {
		r, err := c.kills(ctx, s)
		if err != nil {
			return exit(exitNotMeasured, err)
		}
		reports = append(reports, r)
		if err := c.print(s, "kill -9", r, begin); err != nil {
			return err
		}
	}
	begin = time.Now()
	if c.Cuts > 0 {
		r, err := receipt.PowerCuts{Cuts: c.Cuts, Seed: c.Seed}.Run(ctx)
		if err != nil {
			return exit(exitNotMeasured, err)
		}
		reports = append(reports, r)
		if err := c.print(s, "power cut (simulated)", r, begin); err != nil {
			return err
		}
	}
	for _, r := range reports {
		if r.Failed() {
			return exit(exitMissed, fmt.Errorf("crashtest: %s", r.First))
		}
	}
	return nil
}

func (c *receiptCrashtestCmd) print(s *streams, what string, r *receipt.CrashReport, begin time.Time) error {
	if c.JSON {
		return json.NewEncoder(s.out).Encode(map[string]any{"crash": what, "seed": c.Seed, "report": r})
	}
	fmt.Fprintf(s.out, `%s · %d crashes in %.0f s · seed %d
  acknowledged %d · lost %d · doubled %d · not the same bytes %d · not verified %d · asked again %d
`, what, r.Crashes, time.Since(begin).Seconds(), c.Seed, r.Acknowledged, r.Lost, r.Doubled, r.Differing, r.Unverified, r.Repeats)
	if r.Syncs != nil {
		fmt.Fprintf(s.out, "  signed after a crash %d · hand-overs of the key %d · torn bytes cut off %d\n", r.Replayed, r.Rotations, r.TornBytes)
	}
	return nil
}

// killsOfALog is how often one log's gateway is killed before the log is audited and a new one begun.
const killsOfALog = 100

func (c *receiptCrashtestCmd) kills(ctx context.Context, s *streams) (*receipt.CrashReport, error) {
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = owner.Folder("toll-crash-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	modes := []string{c.Mode}
	if c.Mode == "all" {
		modes = []string{"batch", "sync", "async-sidecar", "async-inproc"}
	}
	report := new(receipt.CrashReport)
	rnd := rand.New(rand.NewPCG(c.Seed, 2))
	each := min(killsOfALog, (c.Kills+len(modes)-1)/len(modes))
	for n := 0; report.Crashes < c.Kills; n++ {
		x := &crasher{cmd: c, s: s, rand: rnd, report: report, mode: modes[n%len(modes)], dir: filepath.Join(dir, fmt.Sprint(n)), held: make(map[int]receipt.Receipt)}
		if err := x.log(ctx, min(each, c.Kills-report.Crashes)); err != nil {
			return nil, fmt.Errorf("crashtest, log %d, mode %s: %w", n, x.mode, err)
		}
	}
	return report, nil
}

// A crasher is one log, the processes that write it, and what callers hold of it.
type crasher struct {
	cmd    *receiptCrashtestCmd
	s      *streams
	rand   *rand.Rand
	report *receipt.CrashReport
	mode   string
	dir    string
	pins   string
	next   int // number of the next new request

	gateway, sidecar *child
	client           *receipt.Client

	mu   sync.Mutex
	held map[int]receipt.Receipt // by the request's number; nil is a ticket
	last []int                   // acknowledged in this life
}

// log goes through so many lives of one log and audits it.
func (x *crasher) log(ctx context.Context, lives int) error {
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return err
	}
	x.pins = filepath.Join(x.dir, "pinned.json")
	key, err := receipt.GenerateKey(filepath.Join(x.dir, "key.pem"))
	if err != nil {
		return err
	}
	pins := &receipt.Pins{Gateway: "crashtest", Keys: []receipt.Pin{receipt.PinOf(key.Public)}}
	if err := pins.WriteFile(x.pins); err != nil {
		return err
	}
	defer x.end()
	for range lives {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.life(ctx); err != nil {
			return err
		}
		x.report.Crashes++
	}
	x.report.Acknowledged += len(x.held)
	return x.audit(ctx)
}

// life starts what does not run, asks again for what was acknowledged last, and kills under load.
func (x *crasher) life(ctx context.Context) error {
	if err := x.start(ctx); err != nil {
		return err
	}
	last := x.last
	x.last = nil
	if err := x.askAgain(ctx, last); err != nil {
		return err
	}
	loaded, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	first := x.next
	x.next += 1_000_000
	for i := range x.cmd.Callers {
		seed := x.rand.Uint64()
		wg.Go(func() { x.call(loaded, first+i*10_000, rand.New(rand.NewPCG(seed, 3))) })
	}
	timer := time.NewTimer(time.Duration(x.rand.IntN(40_000)) * time.Microsecond)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	x.kill()
	cancel()
	wg.Wait()
	return x.client.Close()
}

// start starts the sidecar and the gateway, as far as they do not run, and connects.
func (x *crasher) start(ctx context.Context) (err error) {
	key := filepath.Join(x.dir, "key.pem")
	socket, side := filepath.Join(x.dir, "g", "s"), filepath.Join(x.dir, "g", "c")
	if x.mode == "async-sidecar" && x.sidecar == nil {
		x.sidecar, err = startChild("receipt", "sidecar", "--gateway", "crashtest", "--key", key, "--unix", side, "--dir", filepath.Join(x.dir, "sidecar"), "--stdin")
		if err != nil {
			return err
		}
	}
	if x.gateway == nil {
		args := []string{"receipt", "serve", "--gateway", "crashtest", "--mode", x.mode, "--dir", filepath.Join(x.dir, "log"), "--unix", socket, "--stdin"}
		if x.mode == "async-sidecar" {
			args = append(args, "--sidecar", side, "--pins", x.pins)
		} else {
			args = append(args, "--key", key)
		}
		if x.gateway, err = startChild(args...); err != nil {
			return err
		}
	}
	x.client, err = receipt.Dial(ctx, socket)
	return err
}

// kill ends the gateway, the sidecar or both, at once.
func (x *crasher) kill() {
	which := x.rand.IntN(4)
	if x.sidecar != nil && which > 0 {
		x.sidecar.kill()
		x.sidecar = nil
	}
	if x.sidecar != nil || which != 1 || x.mode != "async-sidecar" {
		x.gateway.kill()
		x.gateway = nil
	}
}

// call makes requests until the gateway is gone.
func (x *crasher) call(ctx context.Context, n int, rnd *rand.Rand) {
	for ; ctx.Err() == nil; n++ {
		a := crashArrival(n)
		if rnd.IntN(4) == 0 {
			if x.client.Accept(ctx, &a) != nil {
				return
			}
			x.hold(n, nil)
			continue
		}
		r, err := x.client.Sign(ctx, &a)
		if err != nil {
			return
		}
		x.hold(n, r)
	}
}

func (x *crasher) hold(n int, r receipt.Receipt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held[n] = r
	x.last = append(x.last, n)
}

// crashArrival is a request by its number.
func crashArrival(n int) receipt.Arrival {
	return receipt.Arrival{
		RequestID: fmt.Sprintf("crash-%d", n), RequestHash: fmt.Sprintf("%064x", n),
		Tenant: "crash", Namespace: "test", PolicyID: "p", PolicyVersion: int64(n % 5),
	}
}

// askAgain asks for requests that were acknowledged, and compares.
func (x *crasher) askAgain(ctx context.Context, numbers []int) error {
	for _, n := range numbers {
		a := crashArrival(n)
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		r, err := x.client.Sign(limited, &a)
		cancel()
		var refused *receipt.Refusal
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("asking for request %d again: %w; the gateway said: %s", n, err, x.gateway.said())
		}
		x.report.Repeats++
		held := x.held[n]
		switch {
		case err != nil:
			x.wrong(&x.report.Lost, "request %d was acknowledged, and then: %v", n, err)
		case held == nil:
			x.held[n] = r
		case !bytes.Equal(held, r):
			x.wrong(&x.report.Differing, "request %d: the receipt is %s, it was %s", n, r, held)
		}
	}
	return nil
}

func (x *crasher) wrong(count *int, format string, args ...any) {
	*count++
	if x.report.First == "" {
		x.report.First = fmt.Sprintf(format, args...)
	}
}

// audit asks for everything that is held, stops the gateway, and checks the log and every receipt against it.
func (x *crasher) audit(ctx context.Context) error {
	if err := x.start(ctx); err != nil {
		return err
	}
	all := make([]int, 0, len(x.held))
	for n := range x.held {
		all = append(all, n)
	}
	slices.Sort(all)
	if err := errors.Join(x.askAgain(ctx, all), x.client.Close()); err != nil {
		return err
	}
	if err := x.end(); err != nil {
		return err
	}
	view, err := receipt.ReadLog(filepath.Join(x.dir, "log"))
	if err != nil {
		x.wrong(&x.report.Lost, "the log: %v", err)
		return nil
	}
	if view.Repeated > 0 {
		x.wrong(&x.report.Doubled, "%d requests stand in the log twice", view.Repeated)
	}
	pins, err := receipt.LoadPins(x.pins)
	if err != nil {
		return err
	}
	v := &receipt.Verifier{Pins: pins, Log: view.Log()}
	places := make(map[int64]int)
	for n, r := range x.held {
		verdict, err := v.Verify(r)
		if err != nil || verdict.Code != receipt.Valid {
			x.wrong(&x.report.Unverified, "request %d: %s %s %v", n, verdict.Code, verdict.Detail, err)
			continue
		}
		if other, taken := places[verdict.Envelope.Seq]; taken {
			x.wrong(&x.report.Doubled, "requests %d and %d are both at seq %d", n, other, verdict.Envelope.Seq)
		}
		places[verdict.Envelope.Seq] = n
		if verdict.Envelope.Arrival != crashArrival(n) {
			x.wrong(&x.report.Unverified, "request %d got the receipt of another", n)
		}
	}
	return nil
}

// end stops what runs, the gateway first.
func (x *crasher) end() error {
	var errs []error
	for _, p := range []**child{&x.gateway, &x.sidecar} {
		if *p != nil {
			errs = append(errs, (*p).stop())
			*p = nil
		}
	}
	return errors.Join(errs...)
}

// A child is our own binary, running.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	err   tail
}

// startChild starts our own binary and waits for its ready line.
func startChild(args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &child{cmd: exec.Command(self, args...)}
	p.cmd.Stderr, p.cmd.WaitDelay = &p.err, drainTime
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		p.kill()
		return nil, fmt.Errorf("%s %s was never ready: %w; it said: %s", args[0], args[1], err, p.said())
	}
	return p, nil
}

func (p *child) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.stdin.Close()
}

// stop closes its stdin and waits.
func (p *child) stop() error {
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w; it said: %s", err, p.said())
	}
	return nil
}

func (p *child) said() string { return p.err.String() }

// A tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

const keptTail = 4 << 10

// Write keeps the end of b.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if n := len(t.b) - keptTail; n > 0 {
		t.b = t.b[n:]
	}
	return len(b), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
