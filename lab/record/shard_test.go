package record_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/record"
)

func TestFailuresNeverEnterTheLatencies(t *testing.T) {
	t.Parallel()
	var s record.Shard
	s.KeepRaw(10)
	s.Done(time.Second, record.Fail(record.WrongID, errors.New("7 instead of 8")))
	s.Done(time.Millisecond, nil)
	s.Done(time.Hour, context.DeadlineExceeded)
	if s.Latency.Count() != 1 || s.Latency.Max() != int64(time.Millisecond) || len(s.Raw()) != 1 {
		t.Errorf("latencies hold %d values up to %d, raw %v", s.Latency.Count(), s.Latency.Max(), s.Raw())
	}
	if d := cmp.Diff(map[string]int64{"wrong_id": 1, "timeout": 1}, s.Failures); d != "" {
		t.Error(d)
	}
	if s.Ops() != 3 || s.FailedNS != int64(time.Hour+time.Second) {
		t.Errorf("ops %d, failed for %d ns", s.Ops(), s.FailedNS)
	}
}

func TestKindsOfErrors(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		record.Timeout:   fmt.Errorf("reading: %w", os.ErrDeadlineExceeded),
		record.Connect:   &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		record.Closed:    &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		record.ShortBody: fmt.Errorf("call 3: %w", record.Fail(record.ShortBody, errors.New("3 of 8 bytes"))),
		record.Other:     errors.New("who knows"),
	} {
		if got := record.KindOf(err); got != want {
			t.Errorf("%v is of kind %s, want %s", err, got, want)
		}
	}
}

func TestKindsOfFailureAreBounded(t *testing.T) {
	t.Parallel()
	var s record.Shard
	for i := range 10_000 {
		s.Done(1, record.Fail(fmt.Sprint("kind-", i), errors.New("x")))
	}
	if len(s.Failures) > 65 || s.Failed() != 10_000 {
		t.Errorf("%d kinds, %d failures", len(s.Failures), s.Failed())
	}
}

func TestACalleesOwnTimeReplacesOurs(t *testing.T) {
	t.Parallel()
	var s record.Shard
	m := s.Mark()
	m.Took(5 * time.Microsecond)
	m.Alloc(3, 96)
	m.Part("sign", 2*time.Microsecond)
	m.Bytes(10, 20)
	s.Done(time.Second, nil)
	s.Done(time.Millisecond, nil)
	if s.Latency.Min() != 5000 || s.Latency.Max() != int64(time.Millisecond) {
		t.Errorf("min %d, max %d", s.Latency.Min(), s.Latency.Max())
	}
	if !s.AllocsKnown || s.Allocs != 3 || s.AllocBytes != 96 || s.Parts["sign"].Count() != 1 || s.Out != 10 || s.In != 20 {
		t.Errorf("got %+v", s.Parts)
	}
	var none record.Mark
	none.Part("x", 1)
	none.Bytes(1, 1)
	none.Took(1)
	none.Alloc(1, 1)
}

func TestMergedShardsHoldEverything(t *testing.T) {
	t.Parallel()
	a, b := new(record.Shard), new(record.Shard)
	for i, s := range []*record.Shard{a, b} {
		s.KeepRaw(4)
		s.Done(time.Duration(i+1), nil)
		s.Done(time.Duration(10), errors.New("x"))
		s.Mark().Part("p", 7)
		s.Mark().Bytes(1, 2)
	}
	a.Merge(b)
	if a.Ops() != 4 || a.Latency.Count() != 2 || a.Failed() != 2 || a.Parts["p"].Count() != 2 || a.Out != 2 || a.In != 4 || a.FailedNS != 20 {
		t.Errorf("got %d ops, %d successes, %d failures, %v", a.Ops(), a.Latency.Count(), a.Failed(), a.Parts)
	}
	if d := cmp.Diff([]int64{1, 2}, a.Raw()); d != "" {
		t.Error(d)
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	var s record.Shard
	s.KeepRaw(200_000)
	m := s.Mark()
	if n := testing.AllocsPerRun(100_000, func() {
		m.Bytes(100, 100)
		s.Done(12_345, nil)
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func BenchmarkDone(b *testing.B) {
	var s record.Shard
	b.ReportAllocs()
	var d time.Duration
	for b.Loop() {
		d += 997
		s.Done(d&(1<<20-1), nil)
	}
}

func BenchmarkReadMeter(b *testing.B) {
	for b.Loop() {
		record.ReadMeter()
	}
}

func TestTheMeterSeesAllocationsAndCPU(t *testing.T) {
	before := record.ReadMeter()
	var keep [][]byte
	for range 1000 {
		keep = append(keep, make([]byte, 1024))
	}
	used := record.ReadMeter().Sub(before)
	if used.Allocs < 1000 || used.AllocBytes < 1000*1024 || used.CPU < 0 || len(keep) != 1000 {
		t.Errorf("after 1000 objects of 1 KiB: %+v", used)
	}
	if sum := used.Add(used); sum.Allocs != 2*used.Allocs {
		t.Errorf("a sum of two: %+v", sum)
	}
}
