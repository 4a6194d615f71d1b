package system

import (
	"testing"

	"toll/system/mls"
)

// ingested is how many commits a benchmark has ready. A commit to a thousand takes a hundred times as long to make as to
// take in, so that the receiver goes back to where they begin.
const ingested = 32

// A receiver takes in one commit after another.
type receiver struct {
	config  mls.Config
	state   []byte // before the first commit
	commits [][]byte
	group   *mls.Group
}

func newReceiver(b *testing.B, members int) *receiver {
	founder, joiner, others, _, err := foundOf(members, mls.FastCurves)
	if err != nil {
		b.Fatal(err)
	}
	r := &receiver{config: others[members-1].config}
	if r.state, err = joiner.Snapshot(0); err != nil {
		b.Fatal(err)
	}
	for range met + ingested {
		st, err := founder.Commit(mls.CommitOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := founder.Accept(st); err != nil {
			b.Fatal(err)
		}
		r.commits = append(r.commits, st.Message)
	}
	return r
}

// met is how many commits it takes until the committer's key is kept with its multiples, as the floor has it.
const met = 2

// rewind goes back to the first commit.
func (r *receiver) rewind(b *testing.B) {
	var err error
	if r.group, err = mls.Load(r.config, r.state); err != nil {
		b.Fatal(err)
	}
	for _, c := range r.commits[:met] {
		if err := follows(r.group, c); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkIngest(b *testing.B, members int) {
	r := newReceiver(b, members)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i %= ingested; i == 0 {
			b.StopTimer()
			r.rewind(b)
			b.StartTimer()
		}
		if err := follows(r.group, r.commits[met+i]); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkIngestFloor(b *testing.B, members int) {
	c := groupCase{op: "ingest_commit", members: members}
	f, err := newFloor(c, mls.FastCurves)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := f.ingestCommit(c); err != nil {
			b.Fatal(err)
		}
	}
}

// A commit after a mass add, and its floor.
func BenchmarkIngestCommit1000(b *testing.B)      { benchmarkIngest(b, 1000) }
func BenchmarkIngestCommit1000Floor(b *testing.B) { benchmarkIngestFloor(b, 1000) }
func BenchmarkIngestCommit8(b *testing.B)         { benchmarkIngest(b, 8) }
func BenchmarkIngestCommit8Floor(b *testing.B)    { benchmarkIngestFloor(b, 8) }
