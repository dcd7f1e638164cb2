package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// compare reads each partition from where it ended as of the cursor, and requires every event there to be in the
// store at its position. Normally that is what the last leader sent and could not note any more. After a restore
// it is everything that was published since the backup. Looking at the last record alone would not do: the store
// may have reused the lost positions, and the last record may be one of the new ones.
func (l *leader) compare(ctx context.Context, cfg kafka.Config) error {
	topic := l.relay.opts.Topic.Name
	if l.was != l.is && l.was != "" {
		l.relay.log.Warn("the database is not the one it was; comparing log and store", "was", l.was, "is", l.is)
	}
	var client sarama.Client
	err := l.alive(ctx, func(context.Context) (err error) {
		client, err = kafka.NewClient(cfg)
		return err
	})
	if err != nil {
		return fmt.Errorf("relay: connect to compare log and store: %w", err)
	}
	defer func() { _ = client.Close() }()
	for n := range l.partitions {
		if err := l.comparePartition(ctx, client, int32(n)); err != nil {
			return err
		}
	}
	return l.exec(ctx, "update relay_cursor set database = $3 where topic = $1 and term = $2", topic, l.term, l.is)
}

func (l *leader) comparePartition(ctx context.Context, client sarama.Client, n int32) error {
	reader, err := l.open(ctx, client, n)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	for ctx.Err() == nil {
		var records []*sarama.ConsumerMessage
		err := l.alive(ctx, func(ctx context.Context) (err error) {
			records, err = reader.Next(ctx, maxEvents)
			return err
		})
		if err != nil {
			return fmt.Errorf("relay: compare log and store: %w", err)
		}
		if len(records) == 0 {
			return nil
		}
		if err := l.require(ctx, records); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// open starts reading where the partition ended as of the cursor. A new leader of the partition may for a moment
// show less than was acknowledged, so a log that seems too short is looked at again for a while.
func (l *leader) open(ctx context.Context, client sarama.Client, n int32) (*kafka.Reader, error) {
	topic, from := l.relay.opts.Topic.Name, l.partitions[n].next
	for began := time.Now(); ; {
		var reader *kafka.Reader
		err := l.alive(ctx, func(context.Context) (err error) {
			reader, err = kafka.OpenReader(client, topic, n, from)
			return err
		})
		if err != nil || reader.To >= from {
			return reader, err
		}
		if time.Since(began) >= l.relay.timing.confirm {
			return nil, &LogLostError{Topic: topic, Partition: n, End: reader.To, Want: from}
		}
		rest(ctx, l.relay.timing.retry, nil)
		if err := errors.Join(ctx.Err(), l.measure(ctx)); err != nil {
			return nil, err
		}
	}
}

// require asks the store for the events of records. Ticks are not stored, and records of strangers are not ours.
func (l *leader) require(ctx context.Context, records []*sarama.ConsumerMessage) error {
	var ours []*sarama.ConsumerMessage
	var positions []int64
	var ids []string
	for _, m := range records {
		e, err := recorded(m)
		if err != nil || e.Sequence == 0 || e.Source != l.relay.opts.Topic.Source() {
			continue
		}
		ours, positions, ids = append(ours, m), append(positions, e.Sequence), append(ids, e.ID)
	}
	if len(ours) == 0 {
		return nil
	}
	var missing []int
	callCtx, cancel := l.call(ctx)
	defer cancel()
	rows, err := l.conn.Query(callCtx, missingSQL, positions, ids)
	if err == nil {
		missing, err = pgx.CollectRows(rows, pgx.RowTo[int])
	}
	if err != nil {
		return fmt.Errorf("relay: compare log and store: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	i := missing[0] - 1
	return &StoreRestoredError{
		Topic: ours[i].Topic, Partition: ours[i].Partition, Offset: ours[i].Offset,
		Position: positions[i], ID: ids[i], Was: l.was, Is: l.is,
	}
}

// recorded reads a record's attributes.
func recorded(m *sarama.ConsumerMessage) (events.Recorded, error) {
	return events.FromHeaders(m.Key, m.Value, func(yield func(k, v []byte) bool) {
		for _, h := range m.Headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	})
}
