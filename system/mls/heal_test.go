package mls

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// split makes a group of four whose halves accept different commits of one epoch, and go on.
func split(t *testing.T) (all []*client) {
	all = newClients(t, X25519AES128, 4)
	createGroup(t, all, CommitOptions{})
	for half := range 2 {
		a, b := all[2*half], all[2*half+1]
		for range 1 + half {
			st := must(a.group.Commit(CommitOptions{}))(t)
			check(t, a.group.Accept(st))
			check(t, b.group.Accept(must(b.group.Open(st.Message))(t).Commit))
		}
	}
	return all
}

func reports(all []*client) (out []Report) {
	for _, c := range all {
		out = append(out, Report{c.group.Index(), c.group.Epoch(), c.group.EpochAuthenticator()})
	}
	return out
}

func TestASplitIsFoundByTheEpochAuthenticator(t *testing.T) {
	t.Parallel()
	all := split(t)
	ours := all[3].group.Compare(reports(all))
	if !slices.Equal(ours.With, []uint32{2, 3}) || !slices.Equal(ours.Forked, []uint32{0, 1}) {
		t.Errorf("from the later half: %+v", ours)
	}
	theirs := all[0].group.Compare(reports(all))
	if !slices.Equal(theirs.With, []uint32{0, 1}) || !slices.Equal(theirs.Ahead, []uint32{2, 3}) {
		t.Errorf("from the earlier half: %+v", theirs)
	}
	// What crosses the split is refused.
	if _, err := all[0].group.Open(must(all[2].group.Seal(nil, nil, text))(t)); !errors.Is(err, ErrFutureEpoch) {
		t.Errorf("a message from the other half: %v", err)
	}
	if _, err := all[2].group.Open(must(all[0].group.Seal(nil, nil, text))(t)); !errors.Is(err, ErrDecrypt) {
		t.Errorf("a message from the other half: %v", err)
	}
	agree(t, all[:2])
	agree(t, all[2:])
}

// TestRejoiningKeepsWhatCouldBeRead: the losing half comes back by external commits and reads what was late.
func TestRejoiningKeepsWhatCouldBeRead(t *testing.T) {
	t.Parallel()
	all := split(t)
	late := must(all[1].group.Seal(nil, nil, text))(t) // within the half that loses
	resumed := bytes.Clone(all[0].group.resumed[1])    // of the epoch before the split
	together := all[2:]
	for _, lost := range all[:2] {
		info := must(all[2].group.GroupInfo(true))(t)
		g, message, err := lost.group.Rejoin(info, ExternalOptions{})
		check(t, err)
		for _, c := range together {
			check(t, c.group.Accept(must(c.group.Open(message))(t).Commit))
		}
		lost.group = g
		together = append(slices.Clone(together), lost)
	}
	agree(t, all)
	if n := len(all[3].group.Members()); n != 4 {
		t.Errorf("%d members after both came back, want 4", n)
	}
	event, err := all[0].group.Open(late)
	if err != nil || !bytes.Equal(event.Application, text) {
		t.Errorf("a late message of the epoch before: %v", err)
	}
	if !bytes.Equal(all[0].group.resumed[1], resumed) {
		t.Error("the resumption PSKs of the epochs before are gone")
	}
	other := newClients(t, X25519AES128, 2)
	createGroup(t, other, CommitOptions{})
	if _, _, err := all[0].group.Rejoin(must(other[0].group.GroupInfo(true))(t), ExternalOptions{}); !errors.Is(err, ErrWrongGroup) {
		t.Errorf("a group info of another group: %v", err)
	}
}

// TestAMemberIsAddedAgain: one that has lost its state sends a key package and is replaced in one commit.
func TestAMemberIsAddedAgain(t *testing.T) {
	t.Parallel()
	all := split(t)
	lost := all[0]
	bundle := lost.bundle(t)
	proposals, err := all[2].group.Readd(bundle.Package)
	check(t, err)
	st := must(all[2].group.Commit(CommitOptions{Proposals: proposals}))(t)
	check(t, all[2].group.Accept(st))
	check(t, all[3].group.Accept(must(all[3].group.Open(st.Message))(t).Commit))
	lost.group = must(Join(lost.config, st.Welcome, bundle, JoinOptions{}))(t)
	agree(t, []*client{all[2], all[3], lost})
	stranger := newClient(t, X25519AES128, "stranger")
	if _, err := all[2].group.Readd(stranger.bundle(t).Package); !errors.Is(err, ErrSender) {
		t.Errorf("a stranger is added again: %v", err)
	}
}

// TestAMarmotGroup: the profile's extensions are asked of every member, and its key packages may be used again.
func TestAMarmotGroup(t *testing.T) {
	t.Parallel()
	admin := [32]byte{1, 2, 3}
	founder := newClient(t, X25519AES128, string(admin[:]))
	member := newClient(t, X25519AES128, "member")
	founder.config.Capabilities, member.config.Capabilities = MarmotCapabilities(), MarmotCapabilities()
	profile := MarmotGroup{NostrID: [32]byte{9}, Name: "a group", Description: "of two", Admins: [][32]byte{admin}, Relays: []string{"wss://relay.example"}, ImageNonce: make([]byte, 12)}
	extensions, err := profile.Extensions()
	check(t, err)
	founder.group = must(Create(founder.config, nil, extensions...))(t)
	bundle := must(member.config.NewKeyPackage(OfLastResort()))(t)
	if !bundle.Package.IsLastResort() || member.bundle(t).Package.IsLastResort() {
		t.Error("which key package is of last resort is not known")
	}
	st := must(founder.group.Commit(CommitOptions{Proposals: []Proposal{Add(bundle.Package)}}))(t)
	check(t, founder.group.Accept(st))
	member.group = must(Join(member.config, st.Welcome, bundle, JoinOptions{}))(t)
	agree(t, []*client{founder, member})
	got, err := member.group.Marmot()
	check(t, err)
	again, err := got.Extension()
	check(t, err)
	if want := must(profile.Extension())(t); !bytes.Equal(again.Data, want.Data) {
		t.Errorf("got %+v, want %+v", got, profile)
	}
	if c := founder.config.Identity.Credential; !got.Admin(&c) || got.Admin(&member.config.Identity.Credential) {
		t.Error("who is an admin is not known")
	}
	// Who does not know the profile can't be added.
	plain := newClient(t, X25519AES128, "plain")
	if _, err := founder.group.Commit(CommitOptions{Proposals: []Proposal{Add(plain.bundle(t).Package)}}); !errors.Is(err, ErrCapabilities) {
		t.Errorf("a member without the profile: %v", err)
	}
	// The same key package serves a second group.
	second := must(Create(founder.config, nil, extensions...))(t)
	st = must(second.Commit(CommitOptions{Proposals: []Proposal{Add(bundle.Package)}}))(t)
	must(Join(member.config, st.Welcome, bundle, JoinOptions{}))(t)
	none, err := newGroupOf(t).Marmot()
	if none != nil || err != nil {
		t.Errorf("a group without the profile says %v, %v", none, err)
	}
}

func newGroupOf(t *testing.T) *Group {
	all := newClients(t, X25519AES128, 1)
	createGroup(t, all, CommitOptions{})
	return all[0].group
}

func TestBadMarmotGroupsGiveTheirError(t *testing.T) {
	t.Parallel()
	good := MarmotGroup{Version: 2, Name: "n"}
	encoded := good.append(nil)
	later := append(MarmotGroup{Version: 3}.bytes(), 1, 2, 3)
	if m, err := ParseMarmotGroup(later); err != nil || m.Version != 3 {
		t.Errorf("a later version: %v", err)
	}
	for want, data := range map[string][]byte{
		"malformed: at byte 0: too short":                                    nil,
		"malformed: Marmot group data of version 0":                          MarmotGroup{}.bytes(),
		"malformed: at byte 43: trailing bytes":                              append(bytes.Clone(encoded), 0),
		"malformed: a name or description that is not UTF-8":                 MarmotGroup{Version: 2, Name: "\xff"}.bytes(),
		"malformed: an admin stands twice in it: duplicate key":              MarmotGroup{Version: 2, Admins: make([][32]byte, 2)}.bytes(),
		`malformed: relay "https://relay.example" is no ws:// or wss:// URL`: MarmotGroup{Version: 2, Relays: []string{"https://relay.example"}}.bytes(),
		"malformed: an image nonce of 11 bytes":                              MarmotGroup{Version: 1, ImageNonce: make([]byte, 11)}.bytes(),
		"malformed: at byte 37: too short":                                   append(MarmotGroup{Version: 2}.bytes()[:36], 1, 5),
	} {
		if _, err := ParseMarmotGroup(data); err == nil || err.Error() != want {
			t.Errorf("%x: %v, want %s", data, err, want)
		}
	}
}

func (m MarmotGroup) bytes() []byte { return m.append(nil) }

func FuzzMarmotGroup(f *testing.F) {
	f.Add(MarmotGroup{Version: 2, Name: "n", Admins: make([][32]byte, 1), Relays: []string{"ws://r"}}.bytes())
	f.Add(MarmotGroup{Version: 1, ImageKey: make([]byte, 32)}.bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMarmotGroup(data)
		if err == nil && m.Version <= marmotVersion && !bytes.Equal(m.append(nil), data) {
			t.Errorf("%x is encoded again as %x", data, m.append(nil))
		}
	})
}
