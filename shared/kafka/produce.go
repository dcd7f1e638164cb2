package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// passing are the produce errors after which the same batch may be sent again: either nothing was written, or
// the broker recognises the batch by its sequence number.
var passing = map[sarama.KError]bool{
	sarama.ErrInvalidMessage:               true, // corrupted on the way
	sarama.ErrUnknownTopicOrPartition:      true, // a broker that has just started
	sarama.ErrLeaderNotAvailable:           true,
	sarama.ErrNotLeaderForPartition:        true,
	sarama.ErrReplicaNotAvailable:          true,
	sarama.ErrRequestTimedOut:              true,
	sarama.ErrNotEnoughReplicas:            true,
	sarama.ErrNotEnoughReplicasAfterAppend: true,
	sarama.ErrKafkaStorageError:            true,
	sarama.ErrFencedLeaderEpoch:            true,
	sarama.ErrUnknownLeaderEpoch:           true,
	sarama.ErrNetworkException:             true,
}

// errNoAnswer stands for a partition that is missing in a broker's answer.
var errNoAnswer = errors.New("the broker's answer says nothing about it")

// answer is what came back for one request; err is a failed connection, after which nothing is known.
type answer struct {
	broker     *sarama.Broker
	partitions []int32
	response   *sarama.ProduceResponse
	err        error
}

// deliver sends the first batch of every partition, waits, and goes on until nothing is left. It returns the
// first error that is final.
func (p *Publisher) deliver(ctx context.Context, d *delivery) error {
	if err := p.identify(); err != nil {
		return err
	}
	for try := 1; len(d.queues) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		progress, retry, err := p.round(ctx, d)
		if err != nil {
			return err
		}
		if progress {
			try = 1
		}
		if retry == nil {
			continue
		}
		if try == attempts {
			return retry
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * retryPause):
		}
		try++
		_ = p.client.RefreshMetadata(d.topic) // the leader may have moved; a failure shows at the next try
	}
	return nil
}

// identify takes a producer id where there is none, or where one has counted far.
func (p *Publisher) identify() error {
	if p.identity != nil {
		for _, next := range p.identity.next {
			if next >= renewAt {
				p.identity = nil
				break
			}
		}
	}
	if p.identity != nil {
		return nil
	}
	r, err := p.client.InitProducerID()
	if err != nil {
		_ = p.client.RefreshMetadata()
		return fmt.Errorf("take a producer id: %w", err)
	}
	if r.Err != sarama.ErrNoError {
		return fmt.Errorf("take a producer id: %w", r.Err)
	}
	p.identity = &identity{id: r.ProducerID, epoch: r.ProducerEpoch, next: map[place]int32{}}
	return nil
}

// round sends one batch per partition and settles the answers. retry is the last passing error, err a final one;
// both only after every answer was looked at, so that what is acknowledged counts.
func (p *Publisher) round(ctx context.Context, d *delivery) (progress bool, retry, err error) {
	requests, asked, retry := p.requests(d)
	answers := make(chan answer, len(requests))
	for broker, request := range requests {
		p.exchanges.Go(func() {
			response, err := broker.Produce(request)
			answers <- answer{broker, asked[broker], response, err}
		})
	}
	for range requests {
		select {
		case <-ctx.Done(): // the requests stay in flight; their answers go nowhere
			return progress, nil, ctx.Err()
		case a := <-answers:
			if a.err != nil {
				_ = a.broker.Close() // what it may still answer belongs to nobody
				retry = fmt.Errorf("broker %s: %w", a.broker.Addr(), a.err)
				continue
			}
			for _, partition := range a.partitions {
				passed, final := p.settle(d, partition, a.response)
				switch {
				case final != nil:
					err = final
				case passed != nil:
					retry = passed
				default:
					progress = true
				}
			}
		}
	}
	return progress, retry, err
}

// requests puts the first batch of every partition into one request per leader.
func (p *Publisher) requests(d *delivery) (map[*sarama.Broker]*sarama.ProduceRequest, map[*sarama.Broker][]int32, error) {
	requests := map[*sarama.Broker]*sarama.ProduceRequest{}
	asked := map[*sarama.Broker][]int32{}
	var missing error
	for partition, queue := range d.queues {
		leader, err := p.client.Leader(d.topic, partition)
		if err != nil {
			missing = fmt.Errorf("leader of %s/%d: %w", d.topic, partition, err)
			continue
		}
		request := requests[leader]
		if request == nil {
			request = &sarama.ProduceRequest{Version: 7, RequiredAcks: sarama.WaitForAll, Timeout: int32(produceTimeout.Milliseconds())}
			requests[leader] = request
		}
		wire := queue[0].wire
		wire.ProducerID, wire.ProducerEpoch = p.identity.id, p.identity.epoch
		wire.FirstSequence = p.identity.next[place{d.topic, partition}]
		request.AddBatch(d.topic, partition, wire)
		asked[leader] = append(asked[leader], partition)
	}
	return requests, asked, missing
}

// settle looks at the answer for a partition's first batch.
func (p *Publisher) settle(d *delivery, partition int32, response *sarama.ProduceResponse) (retry, final error) {
	block := response.GetBlock(d.topic, partition)
	if block == nil {
		return fmt.Errorf("%s/%d: %w", d.topic, partition, errNoAnswer), nil
	}
	base := block.Offset
	switch {
	case block.Err == sarama.ErrDuplicateSequenceNumber:
		base = -1 // written by an earlier try, the broker has forgotten where
	case passing[block.Err]:
		return fmt.Errorf("%s/%d: %w", d.topic, partition, block.Err), nil
	case block.Err != sarama.ErrNoError:
		return nil, fmt.Errorf("%s/%d: %w", d.topic, partition, block.Err)
	}
	p.identity.next[place{d.topic, partition}] += int32(len(d.queues[partition][0].index))
	d.settle(partition, base)
	return nil, nil
}
