package mls_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"toll/system/mls"
)

// Live interoperation with OpenMLS itself, of the version that peers/rust/openmls pins and measures. Its binding for
// JavaScript takes neither key packages nor trees as bytes, so its clients are a program of their own.

// startOpenMLS starts the program that TOLL_OPENMLS names.
func startOpenMLS(t *testing.T) *script {
	t.Helper()
	program := os.Getenv("TOLL_OPENMLS")
	if program == "" {
		t.Skip("it needs a program that takes minutes to build, which .ci/long does: " +
			"cargo build --locked --profile interop --features interop in peers/rust/openmls; set TOLL_OPENMLS to its path to run it")
	}
	return startScript(t, peer{name: "OpenMLS", full: true}, t.TempDir(), program)
}

func TestInteropOpenMLS(t *testing.T) {
	t.Parallel()
	s := startOpenMLS(t)
	seeds := uint64(3)
	if more := os.Getenv("HISTORY_SEEDS"); more != "" {
		seeds = get(strconv.ParseUint(more, 10, 64))(t)
	}
	for _, id := range []mls.Suite{mls.X25519AES128, mls.P256AES128, mls.X25519ChaCha} {
		for _, public := range []bool{false, true} {
			for _, apart := range []bool{false, true} {
				t.Run(fmt.Sprintf("suite %d public %v tree apart %v", id, public, apart), func(t *testing.T) {
					w := way{id: id, public: public, apart: apart}
					ourGroup(t, s, w)
					theirGroup(t, s, w)
					externalCommits(t, s, w)
					proposals(t, s, w)
					outsiders(t, s, w)
					lateAndBad(t, s, w)
				})
			}
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("suite %d 200 epochs, seed %d", id, seed), func(t *testing.T) { manyEpochs(t, s, id, 200, seed) })
		}
	}
	t.Run("suites that it has not", func(t *testing.T) {
		s.t = t
		for _, id := range []mls.Suite{mls.P521AES256, mls.P384AES256} {
			if a := s.try("client", "none", question{"suite": id}); a.Error == "" {
				t.Errorf("suite %d: OpenMLS has it now; it belongs into the list above", id)
			}
		}
	})
	t.Log(s.tally())
}

// tally lists what went between the engines, counted.
func (s *script) tally() string {
	var list []string
	for what, n := range s.counts {
		list = append(list, fmt.Sprintf("%d %s", n, what))
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(after(a), after(b)) })
	return s.name + ": " + strings.Join(list, ", ")
}

func after(s string) string {
	_, rest, _ := strings.Cut(s, " ")
	return rest
}

// pair is a group of ours with b of theirs and c of ours in it.
func pair(t *testing.T, s *script, w way) *mixed {
	m := newMixed(t, s, w)
	m.our("a")
	m.ours["a"] = get(mls.Create(m.config["a"], nil))(t)
	b, c := m.their("b"), m.our("c")
	m.commit("a", mls.CommitOptions{Proposals: []mls.Proposal{add(t, b), add(t, c)}}, "b", "c")
	m.agree()
	return m
}

// propose has one of ours or theirs propose, and everyone take it in.
func (m *mixed) propose(by string, p mls.Proposal) {
	m.t.Helper()
	m.deliver(by, get(m.ours[by].Propose(p, nil))(m.t))
	m.count("proposals", by)
}

func (m *mixed) theyPropose(by string, what question) {
	m.t.Helper()
	m.deliver(by, unhex(m.t, m.s.ask("propose", by, question{"what": what, "publicly": m.public}).Message))
	m.count("proposals", by)
}

// update has a member propose a fresh leaf of its own.
func (m *mixed) update(by string) {
	m.t.Helper()
	if m.ours[by] == nil {
		m.theyPropose(by, question{"type": "update"})
		return
	}
	m.deliver(by, get(m.ours[by].ProposeUpdate(nil))(m.t))
	m.count("proposals", by)
}

// proposals: each kind that both engines make, by reference, from each and committed by each.
func proposals(t *testing.T, s *script, w way) {
	m := pair(t, s, w)
	d := m.their("d")
	m.propose("a", add(t, d))
	m.theirCommit("b", nil, "d")
	m.agree()
	e := m.our("e")
	m.theyPropose("d", question{"type": "add", "keyPackage": hex.EncodeToString(e)})
	m.commit("a", mls.CommitOptions{}, "e")
	m.agree()

	for _, by := range []string{"a", "b"} {
		m.update("c")
		m.update("d")
		m.commitBy(by)
		m.agree()
		m.chat()
	}

	// A resumption PSK is of an epoch in which all were members.
	epoch := m.ours["a"].Epoch()
	m.commitBy("b")
	m.commitBy("c")
	m.propose("a", m.ours["a"].ResumptionPSK(m.ours["a"].ID(), epoch))
	m.theyPropose("b", question{"type": "resume", "epoch": epoch + 1})
	m.commitBy("d")
	m.agree()
	m.propose("a", m.ours["a"].ExternalPSK([]byte("shared")))
	m.theyPropose("b", question{"type": "resume", "epoch": epoch})
	m.theyPropose("d", question{"type": "psk", "id": hex.EncodeToString([]byte("shared"))})
	m.commitBy("c")
	m.agree()

	// A PSK in a commit that adds: the joiner needs it to read its welcome.
	f, g := m.our("f"), m.their("g")
	m.theirCommit("b", []question{{"type": "add", "keyPackage": hex.EncodeToString(f)}, {"type": "psk", "id": hex.EncodeToString([]byte("shared"))}}, "f")
	m.agree()
	m.commit("f", mls.CommitOptions{Proposals: []mls.Proposal{add(t, g), m.ours["f"].ExternalPSK([]byte("shared"))}}, "g")
	m.agree()

	// The list of external senders is a group context extension.
	outside := get(mls.NewIdentity(w.id, mls.Basic([]byte("outside"))))(t)
	m.theirCommit("b", []question{{"type": "senders", "senders": []question{{"name": "outside", "key": hex.EncodeToString(outside.PublicKey())}}}})
	m.agree()
	want := mls.ExternalSendersExtension([]mls.External{{SignatureKey: outside.PublicKey(), Credential: outside.Credential}})
	if got := m.ours["a"].Extensions(); len(got) != 1 || got[0].Type != want.Type || !bytes.Equal(got[0].Data, want.Data) {
		t.Fatalf("extensions %v, want %v", got, want)
	}
	m.commit("a", mls.CommitOptions{Proposals: []mls.Proposal{mls.SetExtensions()}})
	m.agree()
	m.theyPropose("d", question{"type": "senders", "senders": []question{{"name": "outside", "key": hex.EncodeToString(outside.PublicKey())}}})
	m.commitBy("e")
	m.propose("e", mls.SetExtensions())
	m.commitBy("g")
	m.agree()

	// Each leaves by a proposal of its own, and each is removed by one of another.
	m.propose("c", mls.Remove(m.index("c")))
	m.leaving = "c"
	m.commitBy("d")
	m.agree()
	m.theyPropose("d", question{"type": "remove", "leaf": m.index("d")})
	m.leaving = "d"
	m.commitBy("a")
	m.agree()
	m.propose("a", mls.Remove(m.index("g")))
	m.leaving = "g"
	m.commitBy("b")
	m.agree()
	m.theyPropose("b", question{"type": "remove", "leaf": m.index("e")})
	m.leaving = "e"
	m.commitBy("f")
	m.agree()
	m.chat()
}

// commitBy commits what was proposed.
func (m *mixed) commitBy(name string) {
	m.t.Helper()
	if m.ours[name] != nil {
		m.commit(name, mls.CommitOptions{})
		return
	}
	m.theirCommit(name, nil)
}

// outsiders: proposals of who is not a member, to groups that each engine made.
func outsiders(t *testing.T, s *script, w way) {
	ourSender := get(mls.NewIdentity(w.id, mls.Basic([]byte("our sender"))))(t)
	for _, made := range []string{"here", "there"} {
		m := newMixed(t, s, w)
		theirSender := unhex(t, s.ask("client", "their sender", question{"suite": w.id}).Key)
		b := m.their("b")
		m.our("a")
		if made == "here" {
			m.ours["a"] = get(mls.Create(m.config["a"], nil, mls.ExternalSendersExtension([]mls.External{
				{SignatureKey: ourSender.PublicKey(), Credential: ourSender.Credential},
				{SignatureKey: theirSender, Credential: mls.Basic([]byte("their sender"))},
			})))(t)
			m.commit("a", mls.CommitOptions{Proposals: []mls.Proposal{add(t, b)}}, "b")
		} else {
			s.ask("create", "b", question{"groupId": "0011223344", "senders": []question{
				{"name": "our sender", "key": hex.EncodeToString(ourSender.PublicKey())},
				{"name": "their sender", "key": hex.EncodeToString(theirSender)},
			}})
			m.theirs = []string{"b"}
			m.theirCommit("b", []question{{"type": "add", "keyPackage": hex.EncodeToString(m.bundle["a"].Package.Marshal())}}, "a")
		}
		m.agree()
		place := func() mls.Place { return mls.Place{GroupID: m.ours["a"].ID(), Epoch: m.ours["a"].Epoch()} }
		offer := func(who string, more question) []byte {
			q := question{"groupId": hex.EncodeToString(place().GroupID), "epoch": place().Epoch}
			for k, v := range more {
				q[k] = v
			}
			return unhex(t, s.ask("offer", who, q).Message)
		}

		// Each asks to be added.
		m.our("c")
		m.deliver("", get(mls.ProposeJoin(m.config["c"].Identity, place(), m.bundle["c"].Package))(t))
		m.theirCommit("b", nil, "c")
		m.agree()
		m.their("d")
		m.deliver("", offer("d", nil))
		m.commit("a", mls.CommitOptions{}, "d")
		m.agree()
		m.chat()

		// External senders add and remove.
		e := m.their("e")
		m.deliver("", get(mls.ProposeExternal(ourSender, place(), 0, add(t, e)))(t))
		m.theirCommit("b", nil, "e")
		m.agree()
		f := m.our("f")
		m.deliver("", offer("their sender", question{"sender": 1, "what": question{"type": "add", "keyPackage": hex.EncodeToString(f)}}))
		m.commit("c", mls.CommitOptions{}, "f")
		m.agree()
		m.deliver("", get(mls.ProposeExternal(ourSender, place(), 0, mls.Remove(m.index("d"))))(t))
		m.leaving = "d"
		m.theirCommit("e", nil)
		m.agree()
		m.deliver("", offer("their sender", question{"sender": 1, "what": question{"type": "remove", "leaf": m.index("c")}}))
		m.leaving = "c"
		m.commit("f", mls.CommitOptions{})
		m.agree()
		m.chat()
		s.counts["proposals of outsiders of ours"] += 3
		s.counts["proposals of outsiders of theirs"] += 3
	}
}

// lateAndBad: messages of epochs that are over are read; changed and repeated ones are refused, and nothing is lost by that.
func lateAndBad(t *testing.T, s *script, w way) {
	m := pair(t, s, w)
	early := get(m.ours["a"].Seal(nil, nil, []byte("early")))(t)
	theirEarly := unhex(t, s.ask("send", "b", question{"text": hex.EncodeToString([]byte("early"))}).Message)
	for _, by := range []string{"a", "b", "c"} {
		m.commitBy(by)
	}
	m.hear("a", early, "early")
	m.hear("b", theirEarly, "early")

	message := get(m.ours["a"].Seal(nil, nil, []byte("whole")))(t)
	theirMessage := unhex(t, s.ask("send", "b", question{"text": hex.EncodeToString([]byte("whole"))}).Message)
	refused := func(what string, message, theirMessage []byte) {
		t.Helper()
		if a := s.try("process", "b", question{"message": hex.EncodeToString(message)}); a.Error == "" {
			t.Errorf("OpenMLS takes in what %s", what)
		}
		if _, err := m.ours["c"].Open(theirMessage); err == nil {
			t.Errorf("we take in what %s", what)
		}
		s.counts["bad messages refused of ours"]++
		s.counts["bad messages refused of theirs"]++
	}
	for _, at := range []int{1, 2, 17, 40} {
		refused("was changed", changed(message, at), changed(theirMessage, at))
	}
	m.hear("a", message, "whole")
	m.hear("b", theirMessage, "whole")
	refused("was read before", message, theirMessage)

	// A commit that was changed on its way does not end the epoch; the whole one does.
	st := get(m.ours["a"].Commit(mls.CommitOptions{OmitTree: w.apart}))(t)
	if a := s.try("process", "b", question{"message": hex.EncodeToString(changed(st.Message, 30))}); a.Error == "" {
		t.Error("OpenMLS takes in a commit that was changed")
	}
	if err := m.ours["a"].Accept(st); err != nil {
		t.Fatal(err)
	}
	m.committed("a", st.Message, nil, nil, nil)
	m.agree()
	theirCommit := unhex(t, s.ask("commit", "b", question{"publicly": w.public}).Commit)
	if _, err := m.ours["a"].Open(changed(theirCommit, 30)); err == nil {
		t.Error("we take in a commit that was changed")
	}
	m.committed("b", theirCommit, nil, nil, nil)
	m.agree()
	m.chat()
}

// changed flips a bit of the byte that is at places before the end.
func changed(message []byte, at int) []byte {
	c := bytes.Clone(message)
	c[len(c)-at] ^= 1
	return c
}

// fullEpoch is an epoch of all that may happen at once: a member comes, by a welcome or from outside, or comes again; another
// goes; some propose; somebody commits; and a message of the epoch is read after its end.
func (m *mixed) fullEpoch(rng *rand.Rand, n int, joining, leaving string) {
	m.t.Helper()
	m.public, m.apart = rng.IntN(2) == 0, rng.IntN(3) == 0
	writer := m.anyBut(leaving, "", rng)
	text := fmt.Sprintf("late in %d", n)
	late := m.say(writer, text)
	readers := slices.DeleteFunc(m.names(), func(name string) bool { return name == writer || name == leaving })

	switch k := rng.IntN(8); {
	case joining != "" && k < 3:
		m.come(rng, joining)
	case joining == "" && leaving == "" && k == 0:
		again := m.anyBut(writer, "", rng)
		readers = slices.DeleteFunc(readers, func(name string) bool { return name == again })
		m.comeAgain(rng, again)
	default:
		by := m.anyBut(leaving, "", rng)
		for range rng.IntN(4) {
			switch who := m.anyBut(by, leaving, rng); rng.IntN(3) {
			case 0:
				m.mixIn(who)
			default:
				m.updateOnce(who)
			}
		}
		clear(m.updated)
		m.epoch(by, joining, leaving)
	}
	m.reload(rng)
	for _, name := range readers {
		m.hearOne(name, writer, late, text)
	}
	speaker := m.anyBut("", "", rng)
	text = fmt.Sprintf("after %d", n)
	m.hear(speaker, m.say(speaker, text), text)
}

// reload has one of ours and one of theirs go on with what they stored.
func (m *mixed) reload(rng *rand.Rand) {
	m.t.Helper()
	name := m.anyOfOurs(rng, "")
	m.ours[name] = get(mls.Load(m.config[name], get(m.ours[name].Snapshot(0))(m.t)))(m.t)
	m.s.ask("reload", m.theirs[rng.IntN(len(m.theirs))], nil)
}

func (m *mixed) say(name, text string) []byte {
	m.t.Helper()
	if g := m.ours[name]; g != nil {
		return get(g.Seal(nil, nil, []byte(text)))(m.t)
	}
	return unhex(m.t, m.s.ask("send", name, question{"text": hex.EncodeToString([]byte(text))}).Message)
}

// come has a new member join from outside.
func (m *mixed) come(rng *rand.Rand, name string) {
	m.t.Helper()
	if name[0] == 'o' {
		m.our(name)
		m.enter(name, m.theirs[rng.IntN(len(m.theirs))], false)
		return
	}
	m.their(name)
	m.theyEnter(name, m.anyOfOurs(rng, ""))
}

// comeAgain has a member take its own place anew, as one does that lost its state.
func (m *mixed) comeAgain(rng *rand.Rand, name string) {
	m.t.Helper()
	if m.ours[name] != nil {
		m.enter(name, m.theirs[rng.IntN(len(m.theirs))], true)
		return
	}
	m.theyEnter(name, m.anyOfOurs(rng, name))
}

func (m *mixed) anyOfOurs(rng *rand.Rand, but string) string {
	names := slices.DeleteFunc(m.names(), func(n string) bool { return n == but || m.ours[n] == nil })
	return names[rng.IntN(len(names))]
}

// updateOnce has a member propose an update, but not a second one in an epoch.
func (m *mixed) updateOnce(name string) {
	m.t.Helper()
	if m.updated[name] {
		return
	}
	m.updated[name] = true
	m.update(name)
}

// mixIn has a member propose the PSK that all have.
func (m *mixed) mixIn(name string) {
	m.t.Helper()
	if g := m.ours[name]; g != nil {
		m.propose(name, g.ExternalPSK([]byte("shared")))
		return
	}
	m.theyPropose(name, question{"type": "psk", "id": hex.EncodeToString([]byte("shared"))})
}
