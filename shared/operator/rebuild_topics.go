package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
)

// topicReader reads partitions without a group, each from where it was left.
type topicReader struct {
	client  sarama.Client
	from    sarama.Consumer
	readers map[place]sarama.PartitionConsumer
	ahead   map[place]*sarama.ConsumerMessage // read, and not wanted yet
	owners  map[string]Owner
}

func newTopicReader(client sarama.Client) *topicReader {
	return &topicReader{
		client: client, readers: map[place]sarama.PartitionConsumer{}, ahead: map[place]*sarama.ConsumerMessage{}, owners: map[string]Owner{},
	}
}

func (t *topicReader) close() {
	for _, r := range t.readers {
		_ = r.Close() // what it may still say is of no interest
	}
	if t.from != nil {
		_ = t.from.Close()
	}
}

// owner opens the store of a topic's owner, once.
func (t *topicReader) owner(ctx context.Context, topic events.Topic, open func(context.Context, events.Topic) (Owner, error)) (Owner, error) {
	if o, ok := t.owners[topic.Name]; ok {
		return o, nil
	}
	o, err := open(ctx, topic)
	if err == nil {
		t.owners[topic.Name] = o
	}
	return o, err
}

// next is the next record of a partition from an offset on; false if there is none before to.
func (t *topicReader) next(ctx context.Context, p place, from, to int64) (*sarama.ConsumerMessage, bool, error) {
	m, err := t.read(ctx, p, from)
	if err != nil {
		return nil, false, err
	}
	if m.Offset >= to {
		t.ahead[p] = m
		return nil, false, nil
	}
	return m, true, nil
}

func (t *topicReader) read(ctx context.Context, p place, from int64) (*sarama.ConsumerMessage, error) {
	if m := t.ahead[p]; m != nil {
		delete(t.ahead, p)
		return m, nil
	}
	failed := func(err error) (*sarama.ConsumerMessage, error) {
		return nil, fmt.Errorf("read %s/%d from offset %d: %w", p.topic, p.partition, from, err)
	}
	if t.from == nil {
		consumer, err := sarama.NewConsumerFromClient(t.client)
		if err != nil {
			return failed(err)
		}
		t.from = consumer
	}
	r := t.readers[p]
	if r == nil {
		var err error
		if r, err = t.from.ConsumePartition(p.topic, p.partition, from); err != nil {
			return failed(err)
		}
		t.readers[p] = r
	}
	timer := time.NewTimer(readTime)
	defer timer.Stop()
	select {
	case m := <-r.Messages():
		if m != nil {
			return m, nil
		}
		return failed(errors.New("the partition cannot be read any more"))
	case <-timer.C:
		return failed(fmt.Errorf("no record came within %s; was the topic replaced?", readTime))
	case <-ctx.Done():
		return failed(context.Cause(ctx))
	}
}
