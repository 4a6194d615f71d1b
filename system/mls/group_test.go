package mls

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func publicly(all []*client, public bool) []*client {
	for _, c := range all {
		c.config.Public = public
	}
	return all
}

func TestMembersComeUpdateAndGo(t *testing.T) {
	t.Parallel()
	eachSuite(t, func(t *testing.T, id Suite, public bool) {
		all := publicly(newClients(t, id, 7), public)
		createGroup(t, all[:5], CommitOptions{})
		crew := all[:5]
		chat(t, crew)

		// An Update by reference, and one that its author does not see committed.
		update := must(crew[1].group.ProposeUpdate([]byte("fresh")))(t)
		broadcast(t, crew, crew[1], update)
		commit(t, crew, crew[2], CommitOptions{})
		agree(t, crew)

		// A Remove by reference; the removed member learns of it.
		broadcast(t, crew, crew[4], must(crew[4].group.Propose(Remove(3), nil))(t))
		gone := crew[3]
		st := must(crew[0].group.Commit(CommitOptions{}))(t)
		check(t, crew[0].group.Accept(st))
		event := must(gone.group.Open(st.Message))(t)
		if !event.Commit.Expels {
			t.Fatal("the removed member was not told")
		}
		check(t, gone.group.Accept(event.Commit))
		if _, err := gone.group.Seal(nil, nil, nil); !errors.Is(err, ErrInactive) {
			t.Errorf("a removed member sends: %v", err)
		}
		if _, err := gone.group.Export("x", nil, 8); !errors.Is(err, ErrInactive) {
			t.Errorf("a removed member exports: %v", err)
		}
		crew = []*client{all[0], all[1], all[2], all[4]}
		broadcast(t, crew, all[0], st.Message)
		agree(t, crew)

		// Two more: one without a path, one by a proposal of another member.
		b := all[5].bundle(t)
		st = commit(t, crew, crew[1], CommitOptions{Proposals: []Proposal{Add(b.Package)}, NoPath: true})
		all[5].group = must(Join(all[5].config, st.Welcome, b, JoinOptions{}))(t)
		crew = append(crew, all[5])
		agree(t, crew)
		b = all[6].bundle(t)
		broadcast(t, crew, crew[4], must(crew[4].group.Propose(Add(b.Package), nil))(t))
		st = commit(t, crew, crew[3], CommitOptions{OmitTree: true})
		if _, err := Join(all[6].config, st.Welcome, b, JoinOptions{}); !errors.Is(err, ErrGroupInfo) {
			t.Errorf("joined without a tree: %v", err)
		}
		all[6].group = must(Join(all[6].config, st.Welcome, b, JoinOptions{Tree: crew[0].group.Tree()}))(t)
		crew = append(crew, all[6])
		agree(t, crew)
		chat(t, crew)
		for _, c := range crew {
			commit(t, crew, c, CommitOptions{})
			agree(t, crew)
		}
		chat(t, crew)
	})
}

func TestPSKsExtensionsAndExternalSenders(t *testing.T) {
	t.Parallel()
	quickSuites(t, func(t *testing.T, id Suite, public bool) {
		all := publicly(newClients(t, id, 5), public)
		server := newClient(t, id, "server")
		keys := map[string][]byte{"one": bytes.Repeat([]byte{1}, 32), "two": []byte("short")}
		for _, c := range all {
			c.config.PSK = func(p PSKID) ([]byte, error) {
				if k := keys[string(p.ID)]; k != nil {
					return k, nil
				}
				return nil, errors.New("no such key")
			}
		}
		crew := all[:3]
		senders := ExternalSendersExtension([]External{{server.config.Identity.PublicKey(), server.config.Identity.Credential}})
		createGroup(t, crew, CommitOptions{}, senders)

		g := crew[0].group
		commit(t, crew, crew[0], CommitOptions{Proposals: []Proposal{g.ExternalPSK([]byte("one")), g.ExternalPSK([]byte("two"))}, NoPath: true})
		agree(t, crew)
		commit(t, crew, crew[1], CommitOptions{Proposals: []Proposal{crew[1].group.ResumptionPSK(g.ID(), 1)}})
		agree(t, crew)
		if _, err := g.Commit(CommitOptions{Proposals: []Proposal{g.ExternalPSK([]byte("three"))}}); !errors.Is(err, ErrPSK) {
			t.Errorf("an unknown PSK: %v", err)
		}

		// The server proposes to add one member; another asks for itself.
		at := Place{g.ID(), g.Epoch()}
		b3, b4 := all[3].bundle(t), all[4].bundle(t)
		broadcast(t, crew, nil, must(ProposeExternal(server.config.Identity, at, 0, Add(b3.Package)))(t))
		broadcast(t, crew, nil, must(ProposeJoin(all[4].config.Identity, at, b4.Package))(t))
		// Two members propose one PSK, and the committer has it a third time: three nonces.
		for _, c := range crew[:2] {
			broadcast(t, crew, c, must(c.group.Propose(c.group.ExternalPSK([]byte("one")), nil))(t))
		}
		covered := 0
		crew[2].group.config.forge = func(_ string, v any) {
			if c, ok := v.(*Commit); ok {
				covered = len(c.Proposals)
			}
		}
		st := commit(t, crew, crew[2], CommitOptions{Proposals: []Proposal{crew[2].group.ExternalPSK([]byte("one"))}})
		if covered != 5 {
			t.Errorf("the commit covers %d proposals, want 5", covered)
		}
		all[3].group = must(Join(all[3].config, st.Welcome, b3, JoinOptions{}))(t)
		all[4].group = must(Join(all[4].config, st.Welcome, b4, JoinOptions{}))(t)
		agree(t, all)

		required := Required{Credentials: []CredentialType{BasicCredential}}.Extension()
		commit(t, all, all[3], CommitOptions{Proposals: []Proposal{SetExtensions(required)}})
		agree(t, all)
		if n := len(all[0].group.Extensions()); n != 1 {
			t.Errorf("%d extensions, want 1", n)
		}
		chat(t, all)
	})
}

func TestExternalCommits(t *testing.T) {
	t.Parallel()
	eachSuite(t, func(t *testing.T, id Suite, public bool) {
		all := publicly(newClients(t, id, 5), public)
		crew := all[:4]
		createGroup(t, crew, CommitOptions{})
		info := must(crew[1].group.GroupInfo(true))(t)
		group, message, err := JoinExternal(all[4].config, info, ExternalOptions{Data: []byte("hello")})
		check(t, err)
		all[4].group = group
		broadcast(t, crew, nil, message)
		crew = all
		agree(t, crew)

		// Resync: a member that lost its state takes its own place again.
		lost := crew[2]
		info = must(crew[0].group.GroupInfo(false))(t)
		group, message, err = JoinExternal(lost.config, info, ExternalOptions{Remove: true, Tree: crew[0].group.Tree()})
		check(t, err)
		lost.group = group
		broadcast(t, crew, lost, message)
		agree(t, crew)
		if n := len(crew[0].group.Members()); n != 5 {
			t.Errorf("%d members after a resync, want 5", n)
		}
		chat(t, crew)
		commit(t, crew, lost, CommitOptions{})
		agree(t, crew)

		if _, _, err := JoinExternal(newClient(t, id, "late").config, info, ExternalOptions{}); !errors.Is(err, ErrGroupInfo) {
			t.Errorf("joined without a tree: %v", err)
		}
		info = must(crew[0].group.GroupInfo(true))(t)
		if _, _, err := JoinExternal(newClient(t, id, "nobody").config, info, ExternalOptions{Remove: true}); !errors.Is(err, ErrArgument) {
			t.Errorf("came back without having been there: %v", err)
		}
	})
}

func TestReinitialisedAndBranchedGroups(t *testing.T) {
	t.Parallel()
	for _, id := range Suites() {
		if underRace && id != X25519AES128 {
			continue
		}
		all := newClients(t, id, 3)
		createGroup(t, all, CommitOptions{})

		// A branch of two.
		b := all[2].bundle(t)
		branch, st, err := all[0].group.Branch(all[0].config, nil, nil, []*KeyPackage{b.Package})
		check(t, err)
		joined := must(Join(all[2].config, st.Welcome, b, JoinOptions{From: all[2].group}))(t)
		if !bytes.Equal(branch.EpochAuthenticator(), joined.EpochAuthenticator()) {
			t.Error("the branch's members differ")
		}
		if _, err := Join(all[2].config, st.Welcome, b, JoinOptions{}); !errors.Is(err, ErrPSK) {
			t.Errorf("joined a branch without the group: %v", err)
		}

		// The whole group moves to another ciphersuite.
		next := Suites()[(slices.Index(Suites(), id)+1)%len(Suites())]
		reinit := ReInit{GroupID: []byte("the next one"), Suite: next}
		commit(t, all, all[1], CommitOptions{Proposals: []Proposal{Reinitialise(reinit)}})
		if _, err := all[0].group.Seal(nil, nil, []byte("x")); !errors.Is(err, ErrInactive) {
			t.Errorf("a group that was reinitialised sends: %v", err)
		}
		moved := newClients(t, next, 3)
		b0, b2 := moved[0].bundle(t), moved[2].bundle(t)
		follow, st, err := all[1].group.Follow(moved[1].config, []*KeyPackage{b0.Package, b2.Package})
		check(t, err)
		moved[1].group = follow
		moved[0].group = must(Join(moved[0].config, st.Welcome, b0, JoinOptions{From: all[0].group}))(t)
		moved[2].group = must(Join(moved[2].config, st.Welcome, b2, JoinOptions{From: all[2].group}))(t)
		agree(t, moved)
		chat(t, moved)

		// One that leaves a member out is not the same group.
		b0 = moved[0].bundle(t)
		_, st, err = all[1].group.Follow(moved[1].config, []*KeyPackage{b0.Package})
		check(t, err)
		if _, err := Join(moved[0].config, st.Welcome, b0, JoinOptions{From: all[0].group}); !errors.Is(err, ErrWelcome) {
			t.Errorf("joined a successor that lacks a member: %v", err)
		}
	}
}

func TestOwnCommitsEchoLoseRacesAndRollBack(t *testing.T) {
	t.Parallel()
	all := newClients(t, X25519AES128, 3)
	createGroup(t, all, CommitOptions{})
	a, b, c := all[0], all[1], all[2]
	mine := must(a.group.Commit(CommitOptions{}))(t)
	theirs := must(b.group.Commit(CommitOptions{}))(t)

	// The echo of one's own commit is the very same staged commit.
	event := must(a.group.Open(mine.Message))(t)
	if !event.Own || event.Commit != mine {
		t.Fatalf("the echo of our own commit is %+v", event)
	}
	// The race is lost: the other's commit is taken, one's own is of no use any more.
	a.open(t, theirs.Message)
	if err := a.group.Accept(mine); !errors.Is(err, ErrStale) {
		t.Errorf("accepted a commit of an epoch that is over: %v", err)
	}
	a.group.Discard(mine)
	check(t, b.group.Accept(theirs))
	c.open(t, theirs.Message)
	agree(t, all)

	// A discarded commit leaves the group able to go on, and can't be accepted any more.
	dropped := must(a.group.Commit(CommitOptions{Proposals: []Proposal{Remove(1)}}))(t)
	a.group.Discard(dropped)
	a.group.Discard(dropped)
	if err := a.group.Accept(dropped); !errors.Is(err, ErrStale) || dropped.Epoch() != a.group.Epoch()+1 || dropped.EpochAuthenticator() != nil {
		t.Errorf("accepted what was discarded: %v", err)
	}
	chat(t, all)
	commit(t, all, a, CommitOptions{})
	agree(t, all)

	// The other side of a fork is found by the epoch authenticator.
	left := must(a.group.Commit(CommitOptions{}))(t)
	right := must(b.group.Commit(CommitOptions{}))(t)
	check(t, a.group.Accept(left))
	check(t, b.group.Accept(right))
	now := a.group.Epoch()
	if err := a.group.CheckAuthenticator(now, b.group.EpochAuthenticator()); !errors.Is(err, ErrForked) {
		t.Errorf("a fork: %v", err)
	}
	if err := a.group.CheckAuthenticator(now-1, c.group.EpochAuthenticator()); err != nil {
		t.Errorf("the epoch before the fork: %v", err)
	}
	if err := c.group.CheckAuthenticator(now, a.group.EpochAuthenticator()); !errors.Is(err, ErrFutureEpoch) {
		t.Errorf("an epoch to come: %v", err)
	}
	if err := a.group.CheckAuthenticator(0, nil); !errors.Is(err, ErrPastEpoch) {
		t.Errorf("an epoch long ago: %v", err)
	}
}

func TestPendingProposalsComeFirst(t *testing.T) {
	t.Parallel()
	all := newClients(t, X25519AES128, 2)
	createGroup(t, all, CommitOptions{})
	broadcast(t, all, all[0], must(all[0].group.ProposeUpdate(nil))(t))
	for _, c := range all {
		if _, err := c.group.Seal(nil, nil, []byte("x")); !errors.Is(err, ErrPending) {
			t.Errorf("%s sends while a proposal is pending: %v", c.name, err)
		}
	}
	commit(t, all, all[1], CommitOptions{})
	chat(t, all)
}
