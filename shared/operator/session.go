package operator

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// session takes the place of Watermill's handler in the consumer group of one topic.
type session struct {
	sarama.ConsumerGroupHandler
	m *membership
}

const (
	reconnectPace = 2 * time.Second // Watermill's subscriber would reconnect at once, and again
	setupTimeout  = 5 * time.Second
	replacedGrace = 5 * time.Second // how long a topic must look replaced
	bulk          = 256             // records read from a claim at once
)

// Setup takes the claims of a new session over from their last owner and seeks to their checkpoints. It never
// returns an error, which would end the group's loop and have Watermill reconnect without pause: it retries
// for as long as the session lives.
func (s *session) Setup(cs sarama.ConsumerGroupSession) error {
	r := s.m.run
	s.m.drop()
	wait := backoff{}
	var replacedSince time.Time
	for {
		err := s.m.prepare(cs)
		if err == nil {
			r.joined(s.m.topic.Name)
			return nil
		}
		var lost *HistoryLostError
		var replaced *TopicReplacedError
		switch {
		case errors.As(err, &lost):
			r.fail(lost)
			return nil
		case errors.As(err, &replaced):
			if replacedSince.IsZero() {
				replacedSince = time.Now()
			}
			if time.Since(replacedSince) >= r.op.timing.replacedGrace {
				r.fail(replaced)
				return nil
			}
		default:
			replacedSince = time.Time{}
		}
		r.op.log.Warn("claims could not be taken over yet", "topic", s.m.topic.Name, "error", err)
		if !wait.sleep(cs.Context()) {
			return nil
		}
	}
}

// Cleanup runs when all claims of the session have ended.
func (s *session) Cleanup(cs sarama.ConsumerGroupSession) error {
	s.m.drop()
	return s.ConsumerGroupHandler.Cleanup(cs)
}

// ConsumeClaim reads a claim in bulk into its queue until the session or the claim ends. When it returns, the
// whole session ends and the group rebalances.
func (s *session) ConsumeClaim(cs sarama.ConsumerGroupSession, gc sarama.ConsumerGroupClaim) error {
	r := s.m.run
	c := r.claims.get(place{gc.Topic(), gc.Partition()})
	if c == nil || c.session.Context() != cs.Context() || gc.InitialOffset() != c.start {
		// Not where the checkpoint is. The session is given up, slowly, since it would come back at once.
		r.op.log.Warn("a claim does not begin at its checkpoint", "topic", gc.Topic(), "partition", gc.Partition(), "offset", gc.InitialOffset())
		sleep(cs.Context(), time.Second)
		return nil
	}
	c.readingFrom(gc)
	in := r.op.def.inspector(s.m.topic.Name, r.op.store.Registry(), r.op.stateful != nil)
	after := c.start
	for {
		messages, open := collect(cs.Context(), c, gc)
		items := make([]item, len(messages))
		pointers := make([]*item, len(messages))
		for i, m := range messages {
			items[i] = in.inspect(rawOf(m), m.Partition, m.Offset)
			items[i].after = after
			after = m.Offset + 1
			pointers[i] = &items[i]
		}
		if len(items) > 0 && !r.enqueue(cs.Context(), c, pointers) || !open {
			return nil
		}
	}
}

// collect waits for a record and takes those that are there already.
func collect(ctx context.Context, c *claim, gc sarama.ConsumerGroupClaim) (messages []*sarama.ConsumerMessage, open bool) {
	select {
	case m, ok := <-gc.Messages():
		if !ok {
			return nil, false
		}
		messages = append(make([]*sarama.ConsumerMessage, 0, 32), m)
	case <-ctx.Done():
		return nil, false
	case <-c.ended:
		return nil, false
	}
	for len(messages) < bulk {
		select {
		case m, ok := <-gc.Messages():
			if !ok {
				return messages, false
			}
			messages = append(messages, m)
		default:
			return messages, true
		}
	}
	return messages, true
}

// enqueue waits for room in the queue; false means that the claim has ended.
func (r *run) enqueue(ctx context.Context, c *claim, items []*item) bool {
	for !c.queue.offer(items) {
		select {
		case <-c.queue.room:
		case <-ctx.Done():
			return false
		case <-c.ended:
			return false
		}
	}
	r.kick()
	return true
}

func rawOf(m *sarama.ConsumerMessage) raw {
	return raw{key: m.Key, value: m.Value, headers: m.Headers, timestamp: m.Timestamp}
}
