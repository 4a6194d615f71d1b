package mls

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// heap is what is alive, bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestALargeGroupJoinsAndMemoryIsStated founds a group of MEMBERS (1,000), whose last member joins with the tree out of
// band, and states what a group takes. A member's leaf node, its tree hash and its place in the index are 1.5 KiB at most,
// and the epochs that are kept share nearly all of it.
func TestALargeGroupJoinsAndMemoryIsStated(t *testing.T) {
	members := 1000
	if s := os.Getenv("MEMBERS"); s != "" {
		members = must(strconv.Atoi(s))(t)
	}
	founder := newClient(t, X25519AES128, "founder")
	founder.group = must(Create(founder.config, nil))(t)
	o := CommitOptions{OmitTree: true}
	var last *client
	var bundle *Bundle
	for range members - 1 {
		last = newClient(t, X25519AES128, "a member with a name of some length")
		bundle = last.bundle(t)
		o.Proposals = append(o.Proposals, Add(bundle.Package))
	}
	start := time.Now()
	st := must(founder.group.Commit(o))(t)
	created := time.Since(start)
	check(t, founder.group.Accept(st))
	tree := founder.group.Tree()
	welcome, message := st.Welcome, len(st.Message)
	o, st = CommitOptions{}, nil
	if n := len(founder.group.Members()); n != members {
		t.Fatalf("%d members, want %d", n, members)
	}

	start = time.Now()
	last.group = must(Join(last.config, welcome, bundle, JoinOptions{Tree: tree}))(t)
	joined := time.Since(start)
	with := heap()
	last.group = nil
	size := with - heap()
	last.group = must(Join(last.config, welcome, bundle, JoinOptions{Tree: tree}))(t)
	agree(t, []*client{founder, last})
	for range DefaultWindow().Past {
		st := must(founder.group.Commit(CommitOptions{}))(t)
		check(t, founder.group.Accept(st))
		check(t, last.group.Accept(must(last.group.Open(st.Message))(t).Commit))
	}
	kept := len(last.group.past)
	with = heap()
	last.group.past = nil
	past := with - heap()
	agree(t, []*client{founder, last})
	t.Logf("%d members: commit of %d KB and welcome of %d KB in %v, tree of %d KB out of band, joined in %v, a group takes %d KB, %d B per member, %d past epochs %d KB",
		members, message>>10, len(welcome)>>10, created.Round(time.Millisecond), len(tree)>>10, joined.Round(time.Millisecond), size>>10, size/int64(members), kept, past>>10)
	if underRace {
		return // memory is another thing there
	}
	if size > int64(members)*1536 {
		t.Errorf("a group of %d members takes %d bytes, more than 1.5 KiB per member", members, size)
	}
	if past > size/4 {
		t.Errorf("past epochs take %d bytes of a group that takes %d: they share no tree", past, size)
	}
	runtime.KeepAlive(founder)
}
