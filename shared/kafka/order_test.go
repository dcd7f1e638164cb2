package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
)

const (
	total = 3000
	round = 1000 // events that a relay sends at once
)

// sender sends positions from+1 … to and returns how long the acknowledged prefix is.
type sender func(from, to int64) (int, error)

// partitionOf spreads positions unevenly, so that the batches of partitions differ in size.
func partitionOf(position int64) int32 { return int32(position * position % 7 % partitions) }

// drain is a relay in miniature: it sends from the cursor on and moves it over what was acknowledged.
func drain(t *testing.T, send sender) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for cursor := int64(0); cursor < total; {
		n, err := send(cursor, min(cursor+round, total))
		cursor += int64(n)
		if err != nil && time.Now().After(deadline) {
			t.Fatalf("no way past position %d: %v", cursor, err)
		}
	}
}

// disorder is the first place where a partition's first occurrences are not in position order, or "".
func disorder(t *testing.T, f *faulty) string {
	t.Helper()
	for p := range int32(partitions) {
		last, count := int64(0), 0
		seen := map[int64]bool{}
		for _, v := range read(t, f, p) {
			if seen[v] {
				continue
			}
			seen[v] = true
			count++
			if v < last {
				return fmt.Sprintf("partition %d: %d first comes after %d", p, v, last)
			}
			last = v
		}
		want := 0
		for v := range int64(total) {
			if partitionOf(v+1) == p {
				want++
			}
		}
		if count != want {
			return fmt.Sprintf("partition %d has %d of %d", p, count, want)
		}
	}
	return ""
}

// faults are all ways in which producing fails, each once and for longer than a batch is retried.
func faults() map[string]func(f *faulty) {
	all := map[string]func(f *faulty){
		"cut before":         func(f *faulty) { f.cutBefore(2) },
		"cut after":          func(f *faulty) { f.cutAfter(2) },
		"leaders move":       func(f *faulty) { f.onProduce(2, f.ShufflePartitionLeaders) },
		"cut at first":       func(f *faulty) { f.cutBefore(1) },
		"cut after at first": func(f *faulty) { f.cutAfter(1) },
	}
	for _, e := range []*kerr.Error{
		kerr.CorruptMessage, kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable, kerr.NotLeaderForPartition,
		kerr.RequestTimedOut, kerr.BrokerNotAvailable, kerr.ReplicaNotAvailable, kerr.MessageTooLarge,
		kerr.NetworkException, kerr.InvalidTopicException, kerr.RecordListTooLarge, kerr.NotEnoughReplicas,
		kerr.NotEnoughReplicasAfterAppend, kerr.InvalidRequiredAcks, kerr.TopicAuthorizationFailed,
		kerr.ClusterAuthorizationFailed, kerr.InvalidTimestamp, kerr.UnsupportedForMessageFormat, kerr.PolicyViolation,
		kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.KafkaStorageError, kerr.UnknownProducerID,
		kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.UnsupportedCompressionType, kerr.InvalidRecord,
		kerr.ThrottlingQuotaExceeded, kerr.ProducerFenced, kerr.UnknownServerError,
	} {
		for _, times := range []int{1, 6} {
			all[fmt.Sprintf("%s ×%d", e.Message, times)] = func(f *faulty) {
				f.onProduce(2, func() {
					f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{1}, Err: e, Count: times})
				})
			}
		}
	}
	return all
}

func TestFaultProduceErrors(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Name: "Produce errors",
		Does: "fails a send in every way a broker can, once and for longer than a batch is retried: each event is written, the first occurrences of each partition in their order"})
	for name, inject := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run.Count("faults", 1)
			f := newFaulty(t, 2)
			inject(f)
			drain(t, throughPublisher(t, f.config()))
			if what := disorder(t, f); what != "" {
				t.Error(what)
			}
		})
	}
}

// The same over sarama's own producer, with every setting that should keep order, for some of the faults. Should
// this test fail one day, sarama has become safe and the publisher could be given up.
func TestSaramasOwnProducerBreaksTheOrder(t *testing.T) {
	t.Parallel()
	broken := 0
	for _, name := range []string{"MESSAGE_TOO_LARGE ×1", "POLICY_VIOLATION ×1", "UNKNOWN_PRODUCER_ID ×1", "INVALID_RECORD ×1", "UNKNOWN_SERVER_ERROR ×1"} {
		f := newFaulty(t, 2)
		faults()[name](f)
		drain(t, throughSarama(t, f.config()))
		if what := disorder(t, f); what != "" {
			broken++
			t.Logf("%s: %s", name, what)
		}
	}
	if broken == 0 {
		t.Error("no fault broke the order")
	}
}

func throughPublisher(t *testing.T, cfg kafka.Config) sender {
	t.Helper()
	p, err := kafka.NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.SetBatchBytes(5_000) // several batches per partition and call
	return func(from, to int64) (int, error) {
		var records []kafka.Record
		for v := from + 1; v <= to; v++ {
			records = append(records, kafka.Record{Partition: partitionOf(v), Value: []byte(strconv.FormatInt(v, 10))})
		}
		_, err := p.Send(context.Background(), topic, records)
		var partial *kafka.PartialError
		if errors.As(err, &partial) {
			return partial.Acked, err
		}
		return len(records), err
	}
}

func throughSarama(t *testing.T, cfg kafka.Config) sender {
	t.Helper()
	c := kafka.ConsumerConfig(cfg, "")
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Retry.Max = 4
	c.Producer.Retry.Backoff = 20 * time.Millisecond
	c.Producer.Flush.MaxMessages = 100
	p, err := sarama.NewSyncProducer(cfg.Brokers, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return func(from, to int64) (int, error) {
		var messages []*sarama.ProducerMessage
		for v := from + 1; v <= to; v++ {
			messages = append(messages, &sarama.ProducerMessage{
				Topic: topic, Partition: partitionOf(v), Value: sarama.StringEncoder(strconv.FormatInt(v, 10)), Metadata: int(v - from - 1),
			})
		}
		err := p.SendMessages(messages)
		acked := len(messages)
		var failed sarama.ProducerErrors
		if errors.As(err, &failed) {
			for _, e := range failed {
				acked = min(acked, e.Msg.Metadata.(int))
			}
		}
		return acked, err
	}
}
