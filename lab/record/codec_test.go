package record_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/record"
)

func randomShard(r *rand.Rand) *record.Shard {
	s := new(record.Shard)
	for range r.IntN(500) {
		var err error
		if r.IntN(9) == 0 {
			err = record.Fail([]string{record.Timeout, record.Status}[r.IntN(2)], errors.New("x"))
		}
		s.Sent(time.Duration(r.Int64N(1<<(10+r.IntN(30)))), time.Duration(r.Int64N(1<<20)), err)
	}
	s.Dropped, s.Active = r.Int64N(9), time.Duration(r.Int64N(1<<40))
	m := s.Mark()
	m.Bytes(r.IntN(1<<20), r.IntN(1<<20))
	m.Part("sign", time.Duration(r.IntN(1<<20)))
	m.BadPart("verify")
	return s
}

func TestAShardGoesOutAndComesBack(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	for range 200 {
		s := randomShard(r)
		back, err := record.ParseShard(s.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range []*record.Hist{&s.Latency, &s.Failing, &s.Service, &s.Late, s.Parts["sign"]} {
			if o := []*record.Hist{&back.Latency, &back.Failing, &back.Service, &back.Late, back.Parts["sign"]}[i]; !h.Equal(o) {
				t.Errorf("histogram %d differs", i)
			}
		}
		if d := cmp.Diff(s.Failures, back.Failures) + cmp.Diff(s.BadParts, back.BadParts); d != "" {
			t.Error(d)
		}
		if back.Dropped != s.Dropped || back.Active != s.Active || back.Out != s.Out || back.In != s.In || back.FailedNS != s.FailedNS {
			t.Errorf("counters differ: %+v, %+v", back, s)
		}
	}
}

func TestWhatIsNoShardIsRefused(t *testing.T) {
	t.Parallel()
	empty := new(record.Shard).AppendBinary(nil)
	one := new(record.Shard)
	one.Done(5, nil)
	good := one.AppendBinary(nil) // 5 counters, then count 1, sum 5, least 5, most 5, 1 bucket, distance 5, count 1
	with := func(at int, v byte) []byte {
		b := append([]byte{}, good...)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, "it ends within a counter"},
		{empty[:7], "it ends within a histogram's count"},
		{append(append([]byte{}, empty...), 1), "1 bytes behind its end"},
		{with(5, 2), "a histogram of 2 values whose buckets hold 1, the last one beside its most"},
		{with(7, 6), "a histogram's least is 6, its most 5"},
		{with(8, 7), "a histogram of 1 values whose buckets hold 1, the last one beside its most"},
		{with(10, 6), "a histogram's least is 5, and its first bucket another's"},
		{with(11, 0), "bucket 5 with 0 values"},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "a counter is 9223372036854775807; at most 36028797018963967"},
		{append(append([]byte{}, empty[:9]...), 66, 0), "the number of failures is 66; at most 65"},
		{append(append([]byte{}, empty[:9]...), 2, 1, 'a', 1, 1, 'a', 1, 0, 0), `failures: "a" stands twice`},
		{append(append([]byte{}, empty[:9]...), 1, 9, 'a'), "it ends within a name"},
	} {
		if _, err := record.ParseShard(c.in); !errors.Is(err, record.ErrEncoding) || err.Error() != "not an encoded shard: "+c.want {
			t.Errorf("%x: %v, want %s", c.in, err, c.want)
		}
	}
}

func FuzzParseShard(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 9))
	f.Add([]byte{})
	for range 20 {
		f.Add(randomShard(r).AppendBinary(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := record.ParseShard(b)
		if err != nil {
			return
		}
		again, err := record.ParseShard(s.AppendBinary(nil))
		if err != nil || !again.Latency.Equal(&s.Latency) {
			t.Errorf("what was parsed does not come back: %v", err)
		}
	})
}

func BenchmarkShardEncode(b *testing.B) {
	s := randomShard(rand.New(rand.NewPCG(3, 9)))
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = s.AppendBinary(dst[:0])
	}
	b.ReportMetric(float64(len(dst)), "bytes")
}

func BenchmarkShardParse(b *testing.B) {
	data := randomShard(rand.New(rand.NewPCG(3, 9))).AppendBinary(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := record.ParseShard(data); err != nil {
			b.Fatal(err)
		}
	}
}
