package kafka_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/kafka"
)

func newPublisher(t *testing.T, f *faulty) *kafka.Publisher {
	t.Helper()
	p, err := kafka.NewPublisher(f.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// toPartitions makes one record per given partition.
func toPartitions(partitions ...int32) []kafka.Record {
	records := make([]kafka.Record, len(partitions))
	for i, p := range partitions {
		records[i] = kafka.Record{Partition: p, Value: []byte("1")}
	}
	return records
}

func TestAcknowledgedPrefixEndsBeforeTheFirstFailure(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{2}, Err: kerr.MessageTooLarge})
	offsets, err := p.Send(t.Context(), topic, toPartitions(0, 1, 0, 2, 0, 2, 1, 0, 0, 0))
	var partial *kafka.PartialError
	if !errors.As(err, &partial) || partial.Acked != 3 || !errors.Is(err, sarama.ErrMessageSizeTooLarge) {
		t.Fatalf("got %v", err)
	}
	want := []int64{0, 0, 1, -1, 2, -1, 1, 3, 4, 5}
	for i, o := range offsets {
		if o != want[i] {
			t.Errorf("record %d is at offset %d, want %d", i, o, want[i])
		}
	}
}

// A producer id is used until something fails: the next call cuts other batches under the same sequence numbers,
// which a broker would acknowledge as duplicates without writing them.
func TestProducerIDIsThrownAwayAfterAFailure(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	taken := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Observe: true, Count: -1})
	for range 2 {
		if _, err := p.Send(t.Context(), topic, toPartitions(0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if n := taken.Hits(); n != 1 {
		t.Errorf("%d producer ids for two good calls", n)
	}
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{0}, Err: kerr.PolicyViolation})
	if _, err := p.Send(t.Context(), topic, toPartitions(0)); err == nil {
		t.Fatal("no error")
	}
	if _, err := p.Send(t.Context(), topic, toPartitions(0)); err != nil {
		t.Fatal(err)
	}
	if n := taken.Hits(); n != 2 {
		t.Errorf("%d producer ids, want a second one after the failure", n)
	}
}

func TestTimeoutAfterTheAppendWritesOnce(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{0}, Err: kerr.RequestTimedOut, Count: 2})
	offsets, err := p.Send(t.Context(), topic, toPartitions(0, 0))
	if err != nil || offsets[0] != 0 || offsets[1] != 1 {
		t.Fatalf("offsets %v, %v", offsets, err)
	}
	if got := read(t, f, 0); len(got) != 2 {
		t.Errorf("the log has %d records, want 2", len(got))
	}
}

func TestCancelledCallReturnsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	arrived, release := make(chan struct{}), make(chan struct{})
	f.onProduce(1, func() {
		close(arrived)
		<-release
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.Send(ctx, topic, toPartitions(0))
		done <- err
	}()
	<-arrived
	cancel()
	select {
	case err := <-done:
		var partial *kafka.PartialError
		if !errors.As(err, &partial) || !errors.Is(err, context.Canceled) || partial.Acked != 0 {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("still waiting for the broker")
	}
	close(release)
	if _, err := p.Send(t.Context(), topic, toPartitions(0)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestAnswerWithoutThePartitionIsNotTakenForSuccess(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	f.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		return r.ResponseKind(), nil, true
	})
	if _, err := p.Send(t.Context(), topic, toPartitions(0)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, f, 0); len(got) != 1 {
		t.Errorf("the log has %d records, want 1", len(got))
	}
}

func TestLargeCallsAreCutBelowTheBrokersLimit(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	value := []byte(strings.Repeat("0", 256<<10-1) + "1")
	records := make([]kafka.Record, 20)
	for i := range records {
		records[i] = kafka.Record{Partition: int32(i % 2), Key: "k", Value: value}
	}
	if _, err := p.Send(t.Context(), topic, records); err != nil {
		t.Fatal(err)
	}
	for partition := range int32(2) {
		if got := read(t, f, partition); len(got) != 10 {
			t.Errorf("partition %d has %d records, want 10", partition, len(got))
		}
	}
}

func TestWatermillMessagesBecomeRecords(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, 1)
	p := newPublisher(t, f)
	m := message.NewMessage("1", []byte(`{"a":1}`))
	m.Metadata.Set(kafka.KeyMetadata, "foobar")
	m.Metadata.Set("ce_type", "shop.feira.test.v1")
	if err := p.Publish(topic, m); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(topic); err != nil {
		t.Errorf("nothing to publish: %v", err)
	}
	// Java's murmur2 of "foobar" is -790332482.
	got := records(t, f, (-790332482&0x7fffffff)%partitions)[0]
	if string(got.Key) != "foobar" || string(got.Value) != `{"a":1}` || len(got.Headers) != 1 || string(got.Headers[0].Value) != "shop.feira.test.v1" {
		t.Errorf("got %+v", got)
	}
}

func TestClosedPublisherSaysSo(t *testing.T) {
	t.Parallel()
	p := newPublisher(t, newFaulty(t, 1))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Send(t.Context(), topic, toPartitions(0)); !errors.Is(err, kafka.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
