package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// MovedError says that an operator went on over a hole while it was looked at.
type MovedError struct{ Hole }

func (e *MovedError) Error() string {
	return fmt.Sprintf("operator: %s does not stand before offset %d any more; look again with `feira admin operators`", e.at(), e.Resume)
}

// Fill is a hole with the events of the owner's store that close it.
type Fill struct {
	Hole
	Events      int   // in the hole
	Wanted      int   // of them, of types that the operator takes; the others move its position only
	First, Last int64 // positions of the first and the last; 0: there are none
	Request     int64 // that has them applied, see [Requests]; 0: none

	rows [][]any
}

// Owner is where the events of a topic come from.
type Owner struct {
	Topic events.Topic
	Store *eventstore.Store
	types []string // that are published; nil: those of the shared contract
}

func (o Owner) published() []string {
	if o.types != nil {
		return o.types
	}
	var types []string
	for _, e := range events.Published(o.Topic) {
		types = append(types, e.EventType())
	}
	return types
}

// PlanFill reads the events that would fill a hole from the store of the topic's owner, and changes nothing. wanted are
// the types that the operator takes; nil: all.
//
// Where no record behind the hole tells how far it goes, as on an empty or a compacted topic, it is all that the store
// has of the partition: what the topic then brings once more is a duplicate. Errors: [*NotFoundError] for a topic that
// was replaced, which cannot be filled; [*NotInStoreError].
func PlanFill(ctx context.Context, owner Owner, h Hole, wanted []string) (Fill, error) {
	f := Fill{Hole: h}
	if h.Kind == kindTopicReplaced {
		return f, &NotFoundError{
			What: "a stop of " + h.at() + " that can be filled",
			Hint: "a replaced topic can only be accepted, with `feira admin accept-gap`",
		}
	}
	last := h.Have
	err := owner.Store.EventsOf(ctx, h.Have, owner.published(), func(e events.Recorded) error {
		if !h.Open && e.Sequence > h.Need {
			return errEnough
		}
		if kafka.Partition(e.Key, e.Sequence, owner.Topic.Partitions) != h.Partition {
			return nil
		}
		e.Source, e.Previous, e.HasPrevious = owner.Topic.Source(), last, true
		last = e.Sequence
		return f.add(e, wanted)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return f, err
	}
	if !h.Open && last < h.Need {
		return f, &NotInStoreError{Topic: h.Topic, Partition: h.Partition, Have: last, Need: h.Need}
	}
	return f, nil
}

// errEnough ends the reading of a store.
var errEnough = errors.New("enough")

// add takes an event as the relay publishes it.
func (f *Fill) add(e events.Recorded, wanted []string) error {
	var headers []*sarama.RecordHeader
	for _, h := range events.Headers(e) {
		headers = append(headers, &sarama.RecordHeader{Key: []byte(h.Key), Value: []byte(h.Value)})
	}
	encoded, err := encodeHeaders(headers)
	if err != nil {
		return err
	}
	f.Events++
	if wanted == nil || slices.ContainsFunc(wanted, func(t string) bool { return typeName(t) == typeName(e.Type) }) {
		f.Wanted++
	}
	if f.First == 0 {
		f.First = e.Sequence
	}
	f.Last = e.Sequence
	f.rows = append(f.rows, []any{f.Operator, f.Topic, f.Partition, e.Sequence, []byte(e.Key), []byte(e.Data), encoded, e.RecordedAt})
	return nil
}

// FillGap hands the events of a plan to the owner of the partition, and has the operator go on: they are applied before
// the next record, once, in order, and parked like others if they cannot be. Should the hole turn out to be larger, the
// operator stops again. Who is written to the audit. It sets f.Request. Error: [*MovedError].
func FillGap(ctx context.Context, pool *pgxpool.Pool, f *Fill, who string) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f.write(ctx, tx, who) })
	var moved *MovedError
	if err != nil && !errors.As(err, &moved) {
		return fmt.Errorf("operator: fill the gap in %s: %w", f.place(), err)
	}
	return err
}

func (f *Fill) write(ctx context.Context, tx pgx.Tx, who string) error {
	stood, err := tx.Exec(ctx, `delete from operator_stops
		where operator = $1 and topic = $2 and partition = $3 and kind = $4 and resume_at = $5`, f.Operator, f.Topic, f.Partition, f.Kind, f.Resume)
	if err != nil {
		return err
	}
	if f.Met && stood.RowsAffected() != 1 {
		return &MovedError{f.Hole}
	}
	if f.Kind == kindHistoryLost {
		moved, err := tx.Exec(ctx, `update checkpoints set epoch = epoch + 1, next_offset = $4
			where operator = $1 and topic = $2 and partition = $3 and next_offset = $5 and source_position = $6`,
			f.Operator, f.Topic, f.Partition, f.Resume, f.Next, f.Have)
		if err != nil {
			return err
		}
		if moved.RowsAffected() != 1 {
			return &MovedError{f.Hole}
		}
	}
	detail := fmt.Sprintf("%d events at positions %d to %d, on to offset %d", f.Events, f.First, f.Last, f.Resume)
	batch := &pgx.Batch{}
	batch.Queue("delete from operator_fills where operator = $1 and topic = $2 and partition = $3", f.Operator, f.Topic, f.Partition)
	batch.Queue(`insert into operator_audit (operator, action, topic, partition, who, detail)
		values ($1, 'fill-gap', $2, $3, $4, $5)`, f.Operator, f.Topic, f.Partition, who, detail)
	batch.Queue(`insert into operator_requests (operator, topic, partition, action, requested_by)
		values ($1, $2, $3, $4, $5) returning id`, f.Operator, f.Topic, f.Partition, actionFill, who).
		QueryRow(func(row pgx.Row) error { return row.Scan(&f.Request) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"operator_fills"},
		[]string{"operator", "topic", "partition", "sequence", "key", "value", "headers", "timestamped"}, pgx.CopyFromRows(f.rows))
	return err
}
