package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"toll/system/receipt"
)

type receiptCmd struct {
	Sign      receiptSignCmd      `cmd:"" help:"Sign one arrival, or a line each."`
	Serve     receiptServeCmd     `cmd:"" help:"Give every arriving request its receipt, over HTTP and a unix socket."`
	Sidecar   receiptSidecarCmd   `cmd:"" help:"Hold the key and sign for a gateway that does not."`
	Verify    receiptVerifyCmd    `cmd:"" help:"Judge receipts offline, by pinned keys."`
	Fsck      receiptFsckCmd      `cmd:"" help:"Read a log, check every entry, and change nothing."`
	Publish   receiptPublishCmd   `cmd:"" help:"Write a log's tiles and checkpoint as static files (C2SP tlog-tiles)."`
	Keys      receiptKeysCmd      `cmd:"" help:"Make, hand over and revoke keys."`
	Crashtest receiptCrashtestCmd `cmd:"" help:"Kill a gateway under load again and again, cut its power, and look for what was lost."`
	JCSCheck  receiptJCSCheckCmd  `cmd:"" name:"jcs-check" help:"Run the bad-input pack against any JSON canonicalizer (RFC 8785)."`
}

// An identity is who signs.
type identity struct {
	Gateway string `help:"The gateway's name; it stands in every receipt, and is the origin of its checkpoints." required:"" placeholder:"NAME"`
	Key     string `help:"Private key: PKCS#8 in PEM, mode 0600." env:"TOLL_RECEIPT_KEY" placeholder:"FILE"`
}

func (i identity) load() (receipt.Key, error) {
	if i.Key == "" {
		return receipt.Key{}, usage("--key: give a private key file (toll receipt keys new makes one)")
	}
	k, err := receipt.LoadKey(i.Key)
	if err != nil {
		return k, usage("--key: %w", err)
	}
	return k, nil
}

// openInput opens a file, or stdin for "-".
func openInput(s *streams, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.in), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("%w", err)
	}
	return f, nil
}

// documents yields the JSON documents of a file: one that spans lines, or one on each line.
func documents(in io.Reader, most int) ([][]byte, error) {
	const wholeFile = 64 << 20
	text, err := io.ReadAll(io.LimitReader(in, wholeFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > wholeFile:
		return nil, fmt.Errorf("more than %d MiB", wholeFile>>20)
	case json.Valid(text) && len(text) <= most:
		return [][]byte{text}, nil
	}
	var out [][]byte
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, most+1)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			out = append(out, bytes.Clone(line))
		}
	}
	if len(out) == 0 && lines.Err() == nil {
		return nil, errors.New("it is empty")
	}
	return out, lines.Err()
}

type receiptSignCmd struct {
	identity
	Dir  string `help:"The gateway's log; without one nothing is kept, and the receipt is the first of its kind." placeholder:"FOLDER"`
	File string `arg:"" optional:"" help:"Arrivals in JSON, one or a line each; - is stdin." default:"-"`
}

// Help shows how it is used.
func (receiptSignCmd) Help() string {
	return `An arrival is {"request_id":…,"request_hash":64 hex digits,"tenant":…,"namespace":…,"policy":{"id":…,"version":1}}; anything else in it is refused, so no plaintext gets in.

  toll receipt sign --gateway gw.example --key key.pem arrival.json
  toll receipt sign --gateway gw.example --key key.pem --dir log -

Exit: 0 signed, 1 an arrival was refused, 2 bad usage, 3 the log can't be used.`
}

// Run signs what it is given.
func (c *receiptSignCmd) Run(ctx context.Context, s *streams) error {
	key, err := c.load()
	if err != nil {
		return err
	}
	in, err := openInput(s, c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	docs, err := documents(in, receipt.MaxArrival)
	if err != nil {
		return usage("%s: %w", c.File, err)
	}
	cfg := receipt.Config{Name: c.Gateway, Key: key, Mode: receipt.Batched, Dir: c.Dir}
	if c.Dir != "" {
		cfg.Durability = receipt.Fsync
	}
	gw, err := receipt.Open(cfg)
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	refused := 0
	for i, doc := range docs {
		a, err := receipt.ParseArrival(doc)
		var r receipt.Receipt
		if err == nil {
			r, err = gw.Sign(ctx, a)
		}
		if err != nil {
			refused++
			fmt.Fprintf(s.err, "toll: arrival %d: %v\n", i+1, err)
			continue
		}
		fmt.Fprintf(s.out, "%s\n", r)
	}
	if err := gw.Close(); err != nil {
		return exit(exitNotMeasured, err)
	}
	if refused > 0 {
		return exit(exitMissed, fmt.Errorf("%d of %d arrivals were refused", refused, len(docs)))
	}
	return nil
}

type receiptVerifyCmd struct {
	Files []string `arg:"" optional:"" help:"Receipts, one or a line each; - is stdin." default:"-"`
	Keys  string   `help:"The keys to trust: a key set with the gateway's name. A receipt's own words are never believed." required:"" type:"existingfile" placeholder:"FILE"`
	Log   string   `help:"The gateway's log, to hold the receipts against." placeholder:"FOLDER"`
	JSON  bool     `name:"json" help:"Print the verdicts as JSON, a line each."`
}

// Help shows how it is used.
func (receiptVerifyCmd) Help() string {
	return `Needs no network. Receipts of form single and batch are judged alike, and two checkpoints that contradict each other are found.

  toll receipt verify receipt.json --keys pinned.json
  toll receipt verify - --keys pinned.json --log log --json

Exit: 0 all valid, 1 one is not (the verdict says why), 2 unusable input.`
}

// Run judges every receipt.
func (c *receiptVerifyCmd) Run(s *streams) error {
	pins, err := receipt.LoadPins(c.Keys)
	if err != nil {
		return usage("--keys: %w", err)
	}
	v := &receipt.Verifier{Pins: pins}
	if c.Log != "" {
		view, err := receipt.ReadLog(c.Log)
		if err != nil {
			return usage("--log: %w", err)
		}
		v.Log = view.Log()
	}
	invalid := 0
	for _, name := range c.Files {
		in, err := openInput(s, name)
		if err != nil {
			return err
		}
		docs, err := documents(in, receipt.MaxReceipt)
		in.Close()
		if err != nil {
			return usage("%s: %w", name, err)
		}
		for i, doc := range docs {
			verdict, err := v.Verify(doc)
			if err != nil {
				return usage("%s: receipt %d: %w", name, i+1, err)
			}
			if verdict.Code != receipt.Valid {
				invalid++
			}
			if err := c.print(s, verdict); err != nil {
				return err
			}
		}
	}
	if invalid > 0 {
		return exit(exitMissed, nil)
	}
	return nil
}

func (c *receiptVerifyCmd) print(s *streams, v receipt.Verdict) error {
	if c.JSON {
		return json.NewEncoder(s.out).Encode(v)
	}
	line := v.Code
	if v.Detail != "" {
		line += ": " + v.Detail
	}
	if e := v.Envelope; v.Code == receipt.Valid {
		line += fmt.Sprintf(": %s %s seq %d of %s, %s, %s/%s", v.Form, e.Type, e.Seq, e.Gateway, e.ArrivedAt.Format("2006-01-02T15:04:05.000Z"), e.Tenant, e.RequestID)
	}
	_, err := fmt.Fprintln(s.out, line)
	return err
}

type receiptFsckCmd struct {
	Dir  string `arg:"" help:"The log's folder." type:"existingdir"`
	JSON bool   `name:"json" help:"Print the report as JSON."`
}

// Help shows how it is used.
func (receiptFsckCmd) Help() string {
	return `Checks every checksum, envelope, place, hand-over of the key and root, and finds a request that stands twice.

  toll receipt fsck log

Exit: 0 sound (a torn end is cut off when a gateway opens the log), 1 damaged, with the file and byte, 2 unusable.`
}

// Run reads the log.
func (c *receiptFsckCmd) Run(s *streams) error {
	view, err := receipt.ReadLog(c.Dir)
	var d *receipt.Damage
	switch {
	case errors.As(err, &d):
		return exit(exitMissed, err)
	case err != nil:
		return usage("%w", err)
	}
	if c.JSON {
		if err := json.NewEncoder(s.out).Encode(view); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.out, "%d entries in %d groups, %d of them with their signatures; %d epochs, %d hand-overs of the key\nroot %s, next key %s\n",
			view.Entries, view.Groups, view.Signed, view.Epochs, view.Rotated, view.Root, view.KID)
		if view.Torn > 0 {
			fmt.Fprintf(s.out, "%d torn bytes at %s\n", view.Torn, view.TornAt)
		}
	}
	if view.Repeated > 0 {
		return exit(exitMissed, fmt.Errorf("%d requests stand in the log twice", view.Repeated))
	}
	return nil
}

type receiptPublishCmd struct {
	identity
	Dir string `help:"The log's folder." required:"" type:"existingdir" placeholder:"FOLDER"`
	Out string `help:"Where the static files go." required:"" placeholder:"FOLDER"`
}

// Help shows how it is used.
func (receiptPublishCmd) Help() string {
	return `The gateway must not be running; toll receipt serve --tiles publishes while it does.

  toll receipt publish --gateway gw.example --key key.pem --dir log --out public`
}

// Run signs the log's checkpoint and publishes.
func (c *receiptPublishCmd) Run(s *streams) error {
	key, err := c.load()
	if err != nil {
		return err
	}
	gw, err := receipt.Open(receipt.Config{Name: c.Gateway, Key: key, Dir: c.Dir, Durability: receipt.Fsync})
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	note, err := gw.Checkpoint()
	if err := errors.Join(err, gw.Close()); err != nil {
		return exit(exitNotMeasured, err)
	}
	if err := receipt.PublishTiles(c.Dir, c.Out, note); err != nil {
		return exit(exitNotMeasured, err)
	}
	_, size, _ := strings.Cut(string(note), "\n")
	size, _, _ = strings.Cut(size, "\n")
	fmt.Fprintf(s.out, "%s: %s entries\n", filepath.Join(c.Out, "checkpoint"), size)
	return nil
}

type receiptKeysCmd struct {
	New    keysNewCmd    `cmd:"" help:"Make a private key, and pin it."`
	Rotate keysRotateCmd `cmd:"" help:"Hand a log over to a new key: both sign an entry of it."`
	Revoke keysRevokeCmd `cmd:"" help:"Mark a pinned key: what it signed from a place on is not believed."`
}

type keysNewCmd struct {
	File    string `arg:"" help:"Where the private key goes; it must not exist."`
	Gateway string `help:"The gateway's name." required:"" placeholder:"NAME"`
	Pins    string `help:"Where the set of pinned keys goes; it must not exist." placeholder:"FILE"`
}

// Help shows how it is used.
func (keysNewCmd) Help() string {
	return `The private key is never printed.

  toll receipt keys new key.pem --gateway gw.example --pins pinned.json`
}

// Run makes the key.
func (c *keysNewCmd) Run(s *streams) error {
	if _, err := os.Lstat(c.Pins); err == nil {
		return usage("--pins %s: it exists; toll receipt keys rotate adds to it", c.Pins)
	}
	key, err := receipt.GenerateKey(c.File)
	if err != nil {
		return usage("%w", err)
	}
	if c.Pins != "" {
		pins := &receipt.Pins{Gateway: c.Gateway, Keys: []receipt.Pin{receipt.PinOf(key.Public)}}
		if err := pins.WriteFile(c.Pins); err != nil {
			return usage("--pins: %w", err)
		}
	}
	fmt.Fprintln(s.out, key.KID)
	return nil
}

type keysRotateCmd struct {
	identity
	Next string `help:"The next private key." required:"" placeholder:"FILE"`
	Dir  string `help:"The log's folder." required:"" type:"existingdir" placeholder:"FOLDER"`
	Pins string `help:"The set of pinned keys, to be extended." required:"" type:"existingfile" placeholder:"FILE"`
}

// Help shows how it is used.
func (keysRotateCmd) Help() string {
	return `The gateway must not be running. Everything that the old key signed is synced first, so that it is not needed again. If this is broken off, run it again.

  toll receipt keys rotate --gateway gw.example --key key.pem --next next.pem --dir log --pins pinned.json`
}

// Run rotates.
func (c *keysRotateCmd) Run(s *streams) error {
	old, err := c.load()
	if err != nil {
		return err
	}
	next, err := receipt.LoadKey(c.Next)
	if err != nil {
		return usage("--next: %w", err)
	}
	pins, err := receipt.LoadPins(c.Pins)
	if err != nil {
		return usage("--pins: %w", err)
	}
	r, err := receipt.Rotate(receipt.Config{Name: c.Gateway, Key: old, Dir: c.Dir}, next)
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	v := &receipt.Verifier{Pins: pins}
	verdict, err := v.Verify(r)
	if err != nil || verdict.Code != receipt.Valid {
		return exit(exitNotMeasured, fmt.Errorf("the hand-over is in the log, but by %s it is %s %s %v", c.Pins, verdict.Code, verdict.Detail, err))
	}
	if err := errors.Join(pins.Rotate(old.KID, next.Public, verdict.Envelope.Seq), pins.WriteFile(c.Pins)); err != nil {
		return exit(exitNotMeasured, err)
	}
	fmt.Fprintf(s.out, "%s\n", r)
	return nil
}

type keysRevokeCmd struct {
	KID  string `arg:"" help:"The key's id."`
	From int64  `help:"First place in the log that another may have signed." required:"" placeholder:"SEQ"`
	Pins string `help:"The set of pinned keys." required:"" type:"existingfile" placeholder:"FILE"`
}

// Help shows how it is used.
func (keysRevokeCmd) Help() string {
	return `Receipts of a revoked key are believed only with the log, and only before the place given: whoever has the key can claim any time and place.

  toll receipt keys revoke kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k --from 1000 --pins pinned.json`
}

// Run marks the key.
func (c *keysRevokeCmd) Run() error {
	pins, err := receipt.LoadPins(c.Pins)
	if err != nil {
		return usage("--pins: %w", err)
	}
	if c.From < 0 {
		return usage("--from: %d; want a place in the log", c.From)
	}
	if err := pins.Revoke(c.KID, c.From); err != nil {
		return usage("%w", err)
	}
	return pins.WriteFile(c.Pins)
}
