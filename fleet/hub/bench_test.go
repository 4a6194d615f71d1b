package hub_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"toll/fleet"
	"toll/fleet/hub"
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
