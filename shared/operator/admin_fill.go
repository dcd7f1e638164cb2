package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
)

// NotInStoreError says that the owner's store does not have the events that are missing either.
type NotInStoreError struct {
	Topic     string
	Partition int32
	Have      int64 // position of the last event found there, in the gap
	Need      int64 // position of the last event of the gap
}

func (e *NotInStoreError) Error() string {
	return fmt.Sprintf("operator: the store that owns %s has events of partition %d up to position %d only, not %d; "+
		"restore it, or accept the gap", e.Topic, e.Partition, e.Have, e.Need)
}

// FillGap fills the hole that an operator stopped for with the events of their owner's store, and has it go on:
// they are applied before the next record, once, and parked like others if they cannot be.
//
// After [*HistoryLostError] the size of the hole shows only when the operator meets the first record that is
// left: then it stops with [*MissingEventsError], and FillGap is called again.
//
// owner is the store of the topic's owner; pool the database of the service with the operator. It returns how
// many events will be filled in. Who is written to the audit. Errors: [*NotFoundError] when the operator did not
// stop there for that, [*NotInStoreError].
func FillGap(ctx context.Context, pool *pgxpool.Pool, owner *eventstore.Store, topic events.Topic, g Gap, who string) (int, error) {
	var types []string
	for _, e := range events.Published(topic) {
		types = append(types, e.EventType())
	}
	return fillGap(ctx, pool, owner, topic, types, g, who)
}

func fillGap(ctx context.Context, pool *pgxpool.Pool, owner *eventstore.Store, topic events.Topic, types []string, g Gap, who string) (int, error) {
	var kind string
	var have, need, resume int64
	err := pool.QueryRow(ctx, `select kind, have, need, resume_at from operator_stops
		where operator = $1 and topic = $2 and partition = $3`, g.Operator, g.Topic, g.Partition).Scan(&kind, &have, &need, &resume)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && kind == kindTopicReplaced {
		return 0, &NotFoundError{
			What: fmt.Sprintf("a stop of %s at %s/%d that can be filled", g.Operator, g.Topic, g.Partition),
			Hint: "`feira admin operators` shows where operators stopped; a replaced topic can only be accepted",
		}
	}
	if err != nil {
		return 0, fmt.Errorf("operator: fill the gap in %s/%d: %w", g.Topic, g.Partition, err)
	}
	var rows [][]any
	if kind == kindMissingEvents {
		if rows, err = missing(ctx, owner, topic, types, g, have, need); err != nil {
			return 0, err
		}
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return writeFill(ctx, tx, g, kind, resume, rows, who) })
	if err != nil {
		return 0, fmt.Errorf("operator: fill the gap in %s/%d: %w", g.Topic, g.Partition, err)
	}
	return len(rows), nil
}

// errEnough ends the reading of a store.
var errEnough = errors.New("enough")

// missing reads the events of a partition after position have and up to need, as the relay publishes them.
func missing(ctx context.Context, owner *eventstore.Store, topic events.Topic, types []string, g Gap, have, need int64) ([][]any, error) {
	var rows [][]any
	last := have
	err := owner.EventsOf(ctx, have, types, func(e events.Recorded) error {
		if e.Sequence > need {
			return errEnough
		}
		if kafka.Partition(e.Key, e.Sequence, topic.Partitions) != g.Partition {
			return nil
		}
		e.Source, e.Previous, e.HasPrevious = topic.Source(), last, true
		last = e.Sequence
		var headers []*sarama.RecordHeader
		for _, h := range events.Headers(e) {
			headers = append(headers, &sarama.RecordHeader{Key: []byte(h.Key), Value: []byte(h.Value)})
		}
		encoded, err := encodeHeaders(headers)
		if err != nil {
			return err
		}
		rows = append(rows, []any{g.Operator, g.Topic, g.Partition, e.Sequence, []byte(e.Key), []byte(e.Data), encoded, e.RecordedAt})
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if last != need {
		return nil, &NotInStoreError{Topic: g.Topic, Partition: g.Partition, Have: last, Need: need}
	}
	return rows, nil
}

// writeFill hands the events to the partition's owner, and lets the operator go on.
func writeFill(ctx context.Context, tx pgx.Tx, g Gap, kind string, resume int64, rows [][]any, who string) error {
	batch := &pgx.Batch{}
	batch.Queue("delete from operator_stops where operator = $1 and topic = $2 and partition = $3", g.Operator, g.Topic, g.Partition)
	batch.Queue("delete from operator_fills where operator = $1 and topic = $2 and partition = $3", g.Operator, g.Topic, g.Partition)
	batch.Queue(`insert into operator_audit (operator, action, topic, partition, who, detail)
		values ($1, 'fill-gap', $2, $3, $4, $5)`, g.Operator, g.Topic, g.Partition, who, fmt.Sprintf("%d events", len(rows)))
	if kind == kindHistoryLost {
		batch.Queue(`update checkpoints set epoch = epoch + 1, next_offset = $4
			where operator = $1 and topic = $2 and partition = $3`, g.Operator, g.Topic, g.Partition, resume)
	} else {
		batch.Queue(`insert into operator_requests (operator, topic, partition, action, requested_by)
			values ($1, $2, $3, $4, $5)`, g.Operator, g.Topic, g.Partition, actionFill, who)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"operator_fills"},
		[]string{"operator", "topic", "partition", "sequence", "key", "value", "headers", "timestamped"}, pgx.CopyFromRows(rows))
	return err
}
