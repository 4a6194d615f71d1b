package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"toll/system/mls"
	"toll/wire/engine"
)

// groupText is what an application message says: as long as the text of the published benchmark, 70 bytes.
const groupText = "This is a message of seventy bytes, about as long as a text in a chat."

// A groupCase is a case of the benchmark group.
type groupCase struct {
	op        string // create_group, join_welcome, send_app_message, ingest_app_message, commit, ingest_commit
	members   int    // beside the one that creates the group
	first     bool   // the first message of an epoch, whose keys are still to be derived
	populated bool   // the committer's copath has keys; else the tree is as a mass add leaves it
}

// parseGroupCase reads a case's name: create_group/32, join_welcome, send_app_message/first.
func parseGroupCase(name string) (groupCase, error) {
	op, parameter, given := strings.Cut(name, "/")
	c := groupCase{op: op, members: 1}
	bad := fmt.Errorf("case %q is none of this engine", name)
	switch op {
	case "send_app_message":
		if c.first = parameter == "first"; given && !c.first {
			return c, bad
		}
		return c, nil
	case "ingest_app_message":
		if given {
			return c, bad
		}
		return c, nil
	case "commit", "ingest_commit":
		if parameter, c.populated = strings.CutSuffix(parameter, "/populated"); !given {
			return c, bad
		}
	case "create_group", "join_welcome":
		if !given {
			if op != "join_welcome" {
				return c, bad
			}
			return c, nil
		}
	default:
		return c, bad
	}
	n, err := strconv.Atoi(parameter)
	if err != nil || n < 1 || n > 10_000 {
		return c, bad
	}
	c.members = n
	return c, nil
}

// A groupInput is what a contender of the benchmark says beside the case.
type groupInput struct {
	Seam  string `json:"seam"`  // standard, fast or voi; empty for the engine's default
	Layer string `json:"layer"` // engine, engine+store or engine+envelope; empty for engine
	Dir   string `json:"dir"`   // where layer engine+store keeps its groups

	seam mls.Seam
}

func parseGroupInput(data json.RawMessage) (in groupInput, err error) {
	if len(data) > 0 {
		if err := json.Unmarshal(data, &in); err != nil {
			return in, fmt.Errorf("the contender's input: %w", err)
		}
	}
	for _, s := range []mls.Seam{mls.FastCurves, mls.StandardCurves, mls.VoiCurves} {
		if in.Seam == s.String() {
			in.seam = s
			return in, nil
		}
	}
	if in.Seam != "" {
		return in, fmt.Errorf("the contender's input: seam %q is none of fast, standard and voi", in.Seam)
	}
	return in, nil
}

// VoiCurves says whether this binary has the seam voi.
func VoiCurves() bool {
	id, err := mls.NewIdentity(mls.X25519AES128, mls.Basic(nil))
	if err == nil {
		_, err = id.Use(mls.VoiCurves)
	}
	return err == nil
}

// group is the engine of system/mls. Whatever a case needs is made before its window; each call has a group of its own
// where the operation uses one up.
func group(_ context.Context, q engine.Question) (engine.Work, error) {
	c, err := parseGroupCase(q.Case)
	if err != nil {
		return engine.Work{}, err
	}
	if q.Callers != 1 {
		return engine.Work{}, fmt.Errorf("case %s: a group has one writer, so one caller; %d were asked for", q.Case, q.Callers)
	}
	input, err := parseGroupInput(q.Input)
	if err != nil {
		return engine.Work{}, err
	}
	layer, err := openLayer(input.Layer, input.Dir)
	if err != nil {
		return engine.Work{}, err
	}
	b := &groupBench{groupCase: c, seam: input.seam, layer: layer, calls: q.Calls}
	work := engine.Work{Collected: true, Check: b.check}
	switch c.op {
	case "create_group":
		work.Call, err = b.create()
	case "join_welcome":
		work.Call, err = b.join()
	case "send_app_message":
		work.Call, err = b.send()
	case "ingest_app_message":
		work.Call, err = b.ingest()
	case "commit":
		work.Call, err = b.commit()
	case "ingest_commit":
		work.Call, err = b.ingestCommit()
	}
	if err != nil {
		return engine.Work{}, errors.Join(fmt.Errorf("case %s: %w", q.Case, err), layer.close())
	}
	loud := quietHeap()
	work.Close = func() error { return errors.Join(loud(), layer.close()) }
	return work, nil
}

// preTouched is how much heap is there before a window begins, so that no page is new in it.
const preTouched = 32 << 20

// quietHeap touches the heap that a stretch will use and keeps the collector out of it. What it returns puts that back.
func quietHeap() func() error {
	old := debug.SetGCPercent(-1)
	ballast := make([][]byte, preTouched>>16)
	for i := range ballast {
		ballast[i] = make([]byte, 1<<16)
		for at := 0; at < 1<<16; at += 4096 {
			ballast[i][at] = 1
		}
	}
	runtime.KeepAlive(ballast)
	return func() error {
		debug.SetGCPercent(old)
		return nil
	}
}

type groupCall = func(context.Context, int, int, *engine.Parts) error

// A groupBench makes the calls of one stretch and checks what came of them.
type groupBench struct {
	groupCase
	seam   mls.Seam
	layer  *groupLayer
	calls  int
	verify func(i int) error // looks into call i's result
}

func (b *groupBench) check() (int, error) {
	for i := range b.calls {
		if err := b.verify(i); err != nil {
			return i, fmt.Errorf("call %d: %w", i, err)
		}
	}
	return b.calls, nil
}

// groupClient is a client with its key package.
type groupClient struct {
	config mls.Config
	bundle *mls.Bundle
}

func newGroupClient(name string, seam mls.Seam) (groupClient, error) {
	id, err := mls.NewIdentity(mls.X25519AES128, mls.Basic([]byte(name)))
	if err == nil {
		id, err = id.Use(seam)
	}
	if err != nil {
		return groupClient{}, err
	}
	c := groupClient{config: mls.Config{Identity: id}}
	c.bundle, err = c.config.NewKeyPackage()
	return c, err
}

func newGroupClients(n int, seam mls.Seam) ([]groupClient, error) {
	out := make([]groupClient, n)
	for i := range out {
		var err error
		if out[i], err = newGroupClient(fmt.Sprintf("member-%04d", i), seam); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// create times: a group of one, then one commit with an update path that adds everyone, and the welcome for them.
func (b *groupBench) create() (groupCall, error) {
	founder, err := newGroupClient("founder", b.seam)
	if err != nil {
		return nil, err
	}
	invited, err := newGroupClients(b.members, b.seam)
	if err != nil {
		return nil, err
	}
	packages := make([][]byte, len(invited))
	for i, c := range invited {
		packages[i] = c.bundle.Package.Marshal()
	}
	welcomes, authenticators := make([][]byte, b.calls), make([][]byte, b.calls)
	b.verify = func(i int) error {
		welcome, err := b.layer.unpack(welcomes[i])
		if err != nil {
			return err
		}
		return joins(invited[i%len(invited)], welcome, authenticators[i])
	}
	return func(_ context.Context, _, i int, _ *engine.Parts) error {
		g, err := mls.Create(founder.config, nil)
		if err != nil {
			return err
		}
		if err := b.layer.keep(g); err != nil {
			return err
		}
		adds := make([]mls.Proposal, len(packages))
		for j, p := range packages {
			k, err := mls.ParseKeyPackage(p)
			if err != nil {
				return err
			}
			adds[j] = mls.Add(k)
		}
		st, err := g.Commit(mls.CommitOptions{Proposals: adds})
		if err != nil {
			return err
		}
		if err := g.Accept(st); err != nil {
			return err
		}
		authenticators[i] = g.EpochAuthenticator()
		welcomes[i], err = b.layer.pack(st.Welcome)
		return err
	}, nil
}

// joins checks that a client can join with a welcome and is in the right epoch.
func joins(c groupClient, welcome, authenticator []byte) error {
	g, err := mls.Join(c.config, welcome, c.bundle, mls.JoinOptions{})
	if err != nil {
		return err
	}
	return sameEpoch(g, authenticator)
}

func sameEpoch(g *mls.Group, authenticator []byte) error {
	if g == nil || !bytes.Equal(g.EpochAuthenticator(), authenticator) {
		return errors.New("another epoch authenticator")
	}
	return nil
}

// found makes a group whose last added member joins it too.
func found(members int, seam mls.Seam) (founder, joiner *mls.Group, last groupClient, welcome []byte, err error) {
	founder, joiner, others, welcome, err := foundOf(members, seam)
	if err != nil {
		return nil, nil, last, nil, err
	}
	return founder, joiner, others[members-1], welcome, nil
}

// foundOf is found, with all that were added.
func foundOf(members int, seam mls.Seam) (founder, joiner *mls.Group, others []groupClient, welcome []byte, err error) {
	first, err := newGroupClient("founder", seam)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if others, err = newGroupClients(members, seam); err != nil {
		return nil, nil, nil, nil, err
	}
	if founder, err = mls.Create(first.config, nil); err != nil {
		return nil, nil, nil, nil, err
	}
	var o mls.CommitOptions
	for _, c := range others {
		o.Proposals = append(o.Proposals, mls.Add(c.bundle.Package))
	}
	st, err := founder.Commit(o)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	last := others[members-1]
	if joiner, err = mls.Join(last.config, st.Welcome, last.bundle, mls.JoinOptions{}); err != nil {
		return nil, nil, nil, nil, err
	}
	return founder, joiner, others, st.Welcome, founder.Accept(st)
}

// party makes the group of a commit's case: the founder's copath is blank, or has the keys that one member of each of its
// subtrees gives it with a commit.
func (b *groupBench) party() (founder, joiner *mls.Group, err error) {
	founder, joiner, others, welcome, err := foundOf(b.members, b.seam)
	if err != nil || !b.populated {
		return founder, joiner, err
	}
	everyone := []*mls.Group{founder, joiner}
	for leaf := 1; leaf < b.members; leaf *= 2 {
		g, err := mls.Join(others[leaf-1].config, welcome, others[leaf-1].bundle, mls.JoinOptions{})
		if err != nil {
			return nil, nil, err
		}
		everyone = append(everyone, g)
	}
	for _, g := range everyone[2:] {
		st, err := g.Commit(mls.CommitOptions{})
		if err != nil {
			return nil, nil, err
		}
		if err := g.Accept(st); err != nil {
			return nil, nil, err
		}
		for _, o := range everyone {
			if o == g {
				continue
			}
			if err := follows(o, st.Message); err != nil {
				return nil, nil, err
			}
		}
	}
	return founder, joiner, nil
}

// follows takes in another's commit.
func follows(g *mls.Group, message []byte) error {
	event, err := g.Open(message)
	if err != nil {
		return err
	}
	return g.Accept(event.Commit)
}

// commit times a commit without proposals: an update path, made, signed, encrypted and accepted.
func (b *groupBench) commit() (groupCall, error) {
	founder, joiner, err := b.party()
	if err != nil {
		return nil, err
	}
	if err := b.layer.keep(founder); err != nil {
		return nil, err
	}
	commits, authenticators := make([][]byte, b.calls), make([][]byte, b.calls)
	b.verify = func(i int) error {
		commit, err := b.layer.unpack(commits[i])
		if err != nil {
			return err
		}
		if err := follows(joiner, commit); err != nil {
			return err
		}
		return sameEpoch(joiner, authenticators[i])
	}
	return func(_ context.Context, _, i int, _ *engine.Parts) error {
		st, err := founder.Commit(mls.CommitOptions{})
		if err != nil {
			return err
		}
		if err := founder.Accept(st); err != nil {
			return err
		}
		authenticators[i] = founder.EpochAuthenticator()
		commits[i], err = b.layer.pack(st.Message)
		return err
	}, nil
}

// join times: a welcome's bytes in, a group that has checked the whole tree out.
func (b *groupBench) join() (groupCall, error) {
	founder, _, last, welcome, err := found(b.members, b.seam)
	if err != nil {
		return nil, err
	}
	joined := make([]*mls.Group, b.calls)
	want := founder.EpochAuthenticator()
	b.verify = func(i int) error { return sameEpoch(joined[i], want) }
	packed, err := b.layer.pack(welcome)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, _, i int, _ *engine.Parts) error {
		welcome, err := b.layer.unpack(packed)
		if err != nil {
			return err
		}
		if joined[i], err = mls.Join(last.config, welcome, last.bundle, mls.JoinOptions{}); err != nil {
			return err
		}
		return b.layer.keep(joined[i])
	}, nil
}

// send times one message, of a group of two; the first of each group, or those after it.
func (b *groupBench) send() (groupCall, error) {
	n := 1
	if b.first {
		n = b.calls
	}
	senders, receivers := make([]*mls.Group, n), make([]*mls.Group, n)
	for i := range n {
		var err error
		if senders[i], receivers[i], _, _, err = found(b.members, b.seam); err != nil {
			return nil, err
		}
	}
	if err := b.layer.keep(senders...); err != nil {
		return nil, err
	}
	if !b.first {
		if _, err := senders[0].Seal(nil, nil, []byte(groupText)); err != nil {
			return nil, err
		}
	}
	sent := make([][]byte, b.calls)
	b.verify = func(i int) error {
		message, err := b.layer.unpack(sent[i])
		if err != nil {
			return err
		}
		return reads(receivers[i%n], message)
	}
	return func(_ context.Context, _, i int, _ *engine.Parts) error {
		message, err := senders[i%n].Seal(nil, nil, []byte(groupText))
		if err == nil {
			sent[i], err = b.layer.pack(message)
		}
		return err
	}, nil
}

func reads(g *mls.Group, message []byte) error {
	event, err := g.Open(message)
	if err == nil && string(event.Application) != groupText {
		err = fmt.Errorf("it says %.80q", event.Application)
	}
	return err
}

// ingest times the reading of one message after another, of a group of two.
func (b *groupBench) ingest() (groupCall, error) {
	sender, receiver, _, _, err := found(b.members, b.seam)
	if err != nil {
		return nil, err
	}
	messages, texts := make([][]byte, b.calls), make([][]byte, b.calls)
	opening, err := sender.Seal(nil, nil, []byte(groupText))
	if err != nil {
		return nil, err
	}
	if err := reads(receiver, opening); err != nil {
		return nil, err
	}
	if err := b.layer.keep(receiver); err != nil {
		return nil, err
	}
	for i := range messages {
		message, err := sender.Seal(nil, nil, []byte(groupText))
		if err == nil {
			messages[i], err = b.layer.pack(message)
		}
		if err != nil {
			return nil, err
		}
	}
	b.verify = func(i int) error {
		if string(texts[i]) != groupText {
			return fmt.Errorf("it says %.80q", texts[i])
		}
		return nil
	}
	return func(_ context.Context, _, i int, _ *engine.Parts) error {
		message, err := b.layer.unpack(messages[i])
		if err != nil {
			return err
		}
		event, err := receiver.Open(message)
		texts[i] = event.Application
		return err
	}, nil
}

// ingestCommit times the check and acceptance of another member's commit, an update path without proposals; each is the next
// epoch's. The founder alone commits: unless the case says populated, most parents are blank, as they are after a mass add.
func (b *groupBench) ingestCommit() (groupCall, error) {
	founder, joiner, err := b.party()
	if err != nil {
		return nil, err
	}
	commits, authenticators, got := make([][]byte, b.calls), make([][]byte, b.calls), make([][]byte, b.calls)
	// The committer's key was met before, as the floor has it and as it is in every epoch but the first.
	opening, err := founder.Commit(mls.CommitOptions{})
	if err != nil {
		return nil, err
	}
	if err := follows(joiner, opening.Message); err != nil {
		return nil, err
	}
	if err := founder.Accept(opening); err != nil {
		return nil, err
	}
	for i := range commits {
		st, err := founder.Commit(mls.CommitOptions{})
		if err != nil {
			return nil, err
		}
		if err := founder.Accept(st); err != nil {
			return nil, err
		}
		authenticators[i] = founder.EpochAuthenticator()
		if commits[i], err = b.layer.pack(st.Message); err != nil {
			return nil, err
		}
	}
	if err := b.layer.keep(joiner); err != nil {
		return nil, err
	}
	b.verify = func(i int) error {
		if !bytes.Equal(got[i], authenticators[i]) {
			return errors.New("another epoch authenticator")
		}
		return nil
	}
	return func(_ context.Context, _, i int, _ *engine.Parts) error {
		commit, err := b.layer.unpack(commits[i])
		if err != nil {
			return err
		}
		if err := follows(joiner, commit); err != nil {
			return err
		}
		got[i] = joiner.EpochAuthenticator()
		return nil
	}, nil
}
