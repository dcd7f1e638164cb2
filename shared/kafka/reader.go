package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// Reader reads a partition from an offset to where it ended when the reader was opened, outside any group.
type Reader struct {
	From, To int64 // offsets: To is the first one that is not read

	next     int64
	consumer sarama.Consumer
	claim    sarama.PartitionConsumer
}

// OpenReader starts reading at offset from, or at the oldest record where that one is gone; see [Reader.From].
// A from beyond the end gives a reader that has To < from and nothing to read. client stays the caller's.
func OpenReader(client sarama.Client, topic string, partition int32, from int64) (*Reader, error) {
	to, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return nil, fmt.Errorf("kafka: end of %s/%d: %w", topic, partition, err)
	}
	oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return nil, fmt.Errorf("kafka: beginning of %s/%d: %w", topic, partition, err)
	}
	r := &Reader{From: max(from, oldest), To: to}
	if r.next = r.From; r.next >= r.To {
		return r, nil
	}
	if r.consumer, err = sarama.NewConsumerFromClient(client); err != nil {
		return nil, fmt.Errorf("kafka: read %s/%d: %w", topic, partition, err)
	}
	if r.claim, err = r.consumer.ConsumePartition(topic, partition, r.From); err != nil {
		return nil, errors.Join(fmt.Errorf("kafka: read %s/%d: %w", topic, partition, err), r.consumer.Close())
	}
	return r, nil
}

// Next returns up to limit records in order, and none at the end.
func (r *Reader) Next(ctx context.Context, limit int) ([]*sarama.ConsumerMessage, error) {
	var records []*sarama.ConsumerMessage
	for r.next < r.To && len(records) < limit {
		select {
		case m := <-r.claim.Messages():
			if r.next = m.Offset + 1; m.Offset < r.To { // later ones were written meanwhile
				records = append(records, m)
			}
		case err := <-r.claim.Errors():
			return nil, fmt.Errorf("kafka: read: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return records, nil
}

// Close stops reading.
func (r *Reader) Close() error {
	if r.claim == nil {
		return nil
	}
	return errors.Join(r.claim.Close(), r.consumer.Close())
}
