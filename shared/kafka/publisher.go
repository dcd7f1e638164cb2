package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
)

// KeyMetadata is the metadata of a Watermill message that becomes the record's key. All other metadata become
// headers.
const KeyMetadata = "kafka_key"

// The publisher's patience. What it gives up, its caller sends again from where the acknowledged prefix ends.
const (
	attempts       = 5                     // tries of a batch without any progress
	retryPause     = 50 * time.Millisecond // grows by itself with each try
	produceTimeout = 5 * time.Second       // how long the leader may wait for its replicas
	answerTimeout  = 10 * time.Second      // after which a silent connection is given up
)

// renewAt is the sequence number from which on a new producer id is taken, long before int32 wraps.
const renewAt = 1 << 30

// Record is what is written to a partition.
type Record struct {
	Partition int32
	Key       string // "" is a record without a key
	Value     []byte
	Headers   []sarama.RecordHeader
	Time      time.Time // zero is now
}

// PartialError says how much of a batch is certainly in the log. Later records may be there too; sending
// everything after the prefix again keeps the first occurrences of each partition in order.
type PartialError struct {
	Acked int // length of the acknowledged prefix of the batch
	Err   error
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("kafka: publishing stopped after %d acknowledged records: %v", e.Acked, e.Err)
}

func (e *PartialError) Unwrap() error { return e.Err }

// ErrClosed is returned by a publisher that was closed.
var ErrClosed = errors.New("kafka: the publisher is closed")

// Publisher writes records in the order they are given, per partition, and never writes a later one when an
// earlier one failed. It is idempotent, waits for all replicas, and has one record batch per partition in
// flight. A batch that failed for a passing reason is sent again unchanged; on any other failure, and when the
// tries are used up, publishing stops and the producer id is thrown away: the next call cuts other batches, and
// a broker that has seen a sequence number acknowledges it without looking at what it carries.
//
// It is a Watermill [message.Publisher]. Sarama's own producer is not used, because after an error it goes on
// with the next batch it holds, which writes event 5 of a key without event 4.
type Publisher struct {
	client     sarama.Client
	batchBytes int
	mu         sync.Mutex // one call at a time
	identity   *identity  // nil: take a new one before sending
	closed     bool
	exchanges  sync.WaitGroup // requests in flight, also those that a cancelled call left behind
}

var _ message.Publisher = (*Publisher)(nil)

// identity is a producer id with the next sequence number of each partition.
type identity struct {
	id    int64
	epoch int16
	next  map[place]int32
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// NewPublisher connects to Kafka. It fails when no broker answers.
func NewPublisher(cfg Config) (*Publisher, error) {
	client, err := newClient(cfg, publisherConfig(cfg))
	if err != nil {
		return nil, fmt.Errorf("kafka: connect the publisher: %w", err)
	}
	return &Publisher{client: client, batchBytes: batchBytes}, nil
}

func publisherConfig(cfg Config) *sarama.Config {
	c := baseConfig(cfg)
	c.Net.ReadTimeout = answerTimeout
	c.Producer.Timeout = produceTimeout
	return c
}

// Send writes records to their partitions of a topic and returns, per record, the offset at which it was
// written; -1 where that is not known. It returns when all are acknowledged, or with a [*PartialError]. When ctx
// ends, a request in flight may still be carried out by the broker.
func (p *Publisher) Send(ctx context.Context, topic string, records []Record) ([]int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	d := cut(topic, records, p.batchBytes)
	if err := p.deliver(ctx, d); err != nil {
		p.identity = nil
		return d.offsets, &PartialError{Acked: d.acked(), Err: err}
	}
	return d.offsets, nil
}

// Publish writes Watermill messages to the partitions of their keys, see [Partition]; those without a key to any.
// Errors: [*PartialError], [ErrClosed].
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	if len(messages) == 0 {
		return nil
	}
	partitions, err := p.Partitions(topic)
	if err != nil {
		return &PartialError{Err: err}
	}
	records := make([]Record, len(messages))
	for i, m := range messages {
		records[i] = recordOf(m)
		records[i].Partition = Partition(records[i].Key, rand.Int64(), partitions) //nolint:gosec // any partition will do
	}
	_, err = p.Send(messages[0].Context(), topic, records)
	return err
}

func recordOf(m *message.Message) Record {
	r := Record{Key: m.Metadata.Get(KeyMetadata), Value: m.Payload}
	for k, v := range m.Metadata {
		if k != KeyMetadata {
			r.Headers = append(r.Headers, sarama.RecordHeader{Key: []byte(k), Value: []byte(v)})
		}
	}
	return r
}

// Partitions is the topic's number of partitions as last heard, at most as old as the metadata refresh.
func (p *Publisher) Partitions(topic string) (int32, error) {
	ids, err := p.client.Partitions(topic)
	if err != nil {
		return 0, fmt.Errorf("kafka: partitions of %s: %w", topic, err)
	}
	return int32(len(ids)), nil
}

// RefreshPartitions asks Kafka for the topic's number of partitions.
func (p *Publisher) RefreshPartitions(topic string) (int32, error) {
	if err := p.client.RefreshMetadata(topic); err != nil {
		return 0, fmt.Errorf("kafka: metadata of %s: %w", topic, err)
	}
	return p.Partitions(topic)
}

// Close waits for a call in progress and disconnects.
func (p *Publisher) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.client.Close()
	p.exchanges.Wait()
	return err
}
