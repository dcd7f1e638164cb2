package operator

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// membership is this process's place in the consumer group of one topic. Each (operator, topic) has a group of
// its own, so that a session of one topic ends without disturbing the others. It is Watermill's tracer, because
// that is where Watermill lets the group's handler be replaced.
type membership struct {
	run   *run
	topic events.Topic

	mu       sync.Mutex
	lastWrap time.Time
	ctx      context.Context //nolint:containedctx // the tracer's methods get none, and must not outlive the run
}

func (m *membership) group() string { return m.run.op.group(m.topic.Name) }

// instance is the member's stable id in the group; "" makes it a nameless one.
func (m *membership) instance() string {
	if m.run.op.opts.Member == "" {
		return ""
	}
	return m.run.op.opts.Member + "." + m.topic.Name
}

// consume keeps a subscription until ctx ends. Watermill reconnects by itself; only the first connection is
// retried here.
func (m *membership) consume(ctx context.Context) {
	m.ctx = ctx
	wait := backoff{}
	for ctx.Err() == nil {
		if err := m.subscribe(ctx); err != nil {
			m.run.op.log.Warn("no subscription yet", "topic", m.topic.Name, "error", err)
		}
		wait.sleep(ctx)
	}
}

func (m *membership) subscribe(ctx context.Context) error {
	sub, err := kafka.NewSubscriber(m.run.op.opts.Kafka, m.group(), m.instance(), m)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	messages, err := sub.Subscribe(ctx, m.topic.Name)
	if err != nil {
		return err
	}
	for msg := range messages { // none come: the session reads the claims itself
		msg.Ack()
	}
	return nil
}

// WrapConsumerGroupHandler puts the operator's session in the place of Watermill's handler. It is called before
// each connection, and paces them.
func (m *membership) WrapConsumerGroupHandler(h sarama.ConsumerGroupHandler) sarama.ConsumerGroupHandler {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.lastWrap.IsZero() {
		m.run.op.metrics.restarts.Inc()
		sleep(m.ctx, reconnectPace-time.Since(m.lastWrap))
	}
	m.lastWrap = time.Now()
	return &session{ConsumerGroupHandler: h, m: m}
}

// WrapConsumer is part of Watermill's tracer and changes nothing.
func (m *membership) WrapConsumer(c sarama.Consumer) sarama.Consumer { return c }

// WrapPartitionConsumer is part of Watermill's tracer and changes nothing.
func (m *membership) WrapPartitionConsumer(c sarama.PartitionConsumer) sarama.PartitionConsumer {
	return c
}

// WrapSyncProducer is part of Watermill's tracer and changes nothing.
func (m *membership) WrapSyncProducer(_ *sarama.Config, p sarama.SyncProducer) sarama.SyncProducer {
	return p
}

// drop ends the claims, and has the loop let go of their state: a member that gets no others hears of nothing else.
func (m *membership) drop() {
	m.run.claims.drop(m.topic.Name)
	m.run.kick()
}

// leave gives the partitions to the others at once. A member with a stable id is otherwise waited for until its
// session times out.
func (m *membership) leave(client sarama.Client) error {
	if m.instance() == "" {
		return nil // it left when its session closed
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	_, err = admin.RemoveMemberFromConsumerGroup(m.group(), []string{m.instance()})
	return err
}
