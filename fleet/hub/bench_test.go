package hub_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"toll/fleet"
	"toll/fleet/hub"
	"toll/lab/load"
	"toll/lab/record"
)

// busySlice is a slice of a worker that made so many calls in a second.
func busySlice(calls int) *record.Shard {
	s := new(record.Shard)
	r := rand.New(rand.NewPCG(1, 1))
	for range calls {
		s.Done(time.Duration(100_000+r.ExpFloat64()*200_000), nil)
	}
	return s
}

// What a slice costs server, stream and connections, all in this process: published, stored, confirmed, read back. The metric is
// CPU time of the whole process.
func BenchmarkSliceThroughTheStream(b *testing.B) {
	srv, err := hub.StartServer(hub.ServerConfig{Store: b.TempDir(), Token: token})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	nc, err := nats.Connect("nats://" + token + "@" + srv.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	stream, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "bench", Subjects: []string{"bench.>"}})
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := stream.OrderedConsumer(b.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	got := make(chan struct{}, 1<<16)
	consuming, err := consumer.Consume(func(jetstream.Msg) { got <- struct{}{} })
	if err != nil {
		b.Fatal(err)
	}
	defer consuming.Stop()
	body := fleet.Slice{Run: "run", Worker: "w1", To: time.Second, Shard: busySlice(5000)}.Encode()
	before, n := record.ReadCPU(), 0
	for b.Loop() {
		ack, err := js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprint("bench.", n), Data: body, Header: nats.Header{jetstream.MsgIDHeader: {fmt.Sprint(n)}}})
		if err != nil {
			b.Fatal(err)
		}
		n++
		if n%64 == 0 {
			<-ack.Ok()
		}
	}
	for range n {
		<-got
	}
	b.ReportMetric(float64((record.ReadCPU()-before).Microseconds())/float64(n), "cpu-µs/slice")
	b.ReportMetric(float64(len(body)), "B/slice")
}

// stillWorker is the variable that makes this program a worker that calls nothing: the URL of its coordinator's server.
const stillWorker = "TOLL_TEST_STILL_WORKER"

// A still generator delivers slices as a busy one does, and calls nothing. It writes what its process used to w.
type still struct {
	maker
	w io.Writer
}

func (g *still) Run(ctx context.Context, deliver func(load.Slice)) (load.Outcome, error) {
	all := load.NewSheet(g.local).Slices()
	for i := range all {
		all[i].Shard = busySlice(5000)
	}
	begin := time.Now()
	var first time.Duration
	for i, s := range all {
		select {
		case <-ctx.Done():
			return load.Outcome{}, ctx.Err()
		case <-time.After(time.Until(begin.Add(s.To))):
		}
		if i == 0 { // what the start cost is not the question
			first = record.ReadCPU()
		}
		deliver(s)
	}
	<-time.After(100 * time.Millisecond) // for the last answer
	fmt.Fprintln(g.w, int64(record.ReadCPU()-first)/int64(len(all)))
	return load.Outcome{Elapsed: time.Since(begin)}, nil
}

// workStill works, and ends the program.
func workStill(url string) {
	hub.LeaveUsage()
	dir, err := os.MkdirTemp("", "toll-still")
	if err == nil {
		err = hub.Work(context.Background(), hub.WorkConfig{Access: hub.Access{URL: url}, ID: "still", Dir: dir, Generator: &still{w: os.Stdout}, Hello: fleet.Hello{Host: fleet.Machine{GOMAXPROCS: 2}}})
	}
	os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// What a worker pays in a second for its coordinator: the CPU time of a process that does everything a worker does but call. Each
// wakes a process that sleeps, which is dearer than a word to one that is busy.
func BenchmarkStillWorker(b *testing.B) {
	var sum time.Duration
	n := 0
	for b.Loop() {
		srv, err := hub.StartServer(hub.ServerConfig{Store: b.TempDir(), Token: token})
		if err != nil {
			b.Fatal(err)
		}
		url := "nats://" + token + "@" + srv.Addr()
		c, err := hub.Conduct(b.Context(), hub.Access{URL: url}, fleet.Config{Run: fmt.Sprint("still-", n), Plan: []byte("12 seconds"), Settings: settings(12), Workers: 1, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), stillWorker+"="+url), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		var d time.Duration
		if _, err := fmt.Sscan(string(out), &d); err != nil {
			b.Fatal(err)
		}
		if r, err := c.Wait(b.Context()); err != nil || r.Verdict.Word != fleet.Complete {
			b.Fatal(r.Verdict, err)
		}
		c.Close()
		srv.Close()
		sum, n = sum+d, n+1
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(n), "cpu-µs/s")
}
