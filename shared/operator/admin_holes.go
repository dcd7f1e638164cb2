package operator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
)

//go:embed queries/admin_holes.sql
var adminHolesSQL string

// Gap names what an operator stopped for.
type Gap struct {
	Operator  string
	Topic     string
	Partition int32 // -1: the whole topic, whichever of its partitions are concerned, or as a replaced topic is stopped for
	// NewSource says that the owner's store was begun anew too, so that its positions start at 1 again. Without
	// it, events at or below the last position applied are duplicates.
	NewSource bool
}

// Hole is what an operator cannot go on over without a person.
type Hole struct {
	Operator  string
	Topic     string
	Partition int32  // -1: the whole topic
	Kind      string // history_lost, topic_replaced or missing_events
	Met       bool   // the operator stopped for it; false: it would, next
	Message   string
	Next      int64 // offset of the next record it would take; -1: not known
	Resume    int64 // offset of the record behind the hole; -1: the earliest
	Have      int64 // position in the owner's store of the last event applied
	Need      int64 // position of the last event in the hole
	Open      bool  // Need is not known: no record behind the hole tells
}

// place names the hole's place in words.
func (h Hole) place() string {
	if h.Partition < 0 {
		return h.Topic
	}
	return fmt.Sprintf("%s/%d", h.Topic, h.Partition)
}

// Holes lists what an operator stopped for. An operator stops for one partition at a time: with a connection, and for a
// whole topic, the other partitions of which the log no longer has the next record are listed too. A connection also
// tells where lost history ends; nil: none. Error: [*NotFoundError] when the operator has not stopped there.
func Holes(ctx context.Context, pool *pgxpool.Pool, client sarama.Client, topic events.Topic, g Gap) ([]Hole, error) {
	holes, err := query[Hole](ctx, pool, adminHolesSQL, g.Operator, g.Topic, g.Partition)
	if err != nil {
		return nil, err
	}
	if len(holes) == 0 {
		return nil, &NotFoundError{What: "a stop of " + Hole{Operator: g.Operator, Topic: g.Topic, Partition: g.Partition}.at(), Hint: "`feira admin operators` shows where operators stopped"}
	}
	if holes[0].Partition < 0 { // whatever else there was, the topic begins anew
		holes = holes[:1]
	}
	if client == nil {
		return holes, nil
	}
	if g.Partition < 0 && holes[0].Partition >= 0 {
		if holes, err = withUnmet(ctx, pool, client, g, holes); err != nil {
			return nil, err
		}
	}
	for i := range holes {
		if h := &holes[i]; h.Kind == kindHistoryLost {
			if h.Need, h.Open, err = needBefore(ctx, client, topic, h.Partition, h.Resume); err != nil {
				return nil, err
			}
		}
	}
	return holes, nil
}

func (h Hole) at() string { return h.Operator + " at " + h.place() }

// withUnmet adds the partitions that the operator would stop for next.
func withUnmet(ctx context.Context, pool *pgxpool.Pool, client sarama.Client, g Gap, holes []Hole) ([]Hole, error) {
	met := map[int32]bool{}
	for _, h := range holes {
		met[h.Partition] = true
	}
	type row struct {
		Partition    int32
		Next, Source int64
	}
	rows, err := query[row](ctx, pool, `select partition, next_offset, source_position from checkpoints
		where operator = $1 and topic = $2 and next_offset >= 0 order by partition`, g.Operator, g.Topic)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if met[r.Partition] {
			continue
		}
		first, err := client.GetOffset(g.Topic, r.Partition, sarama.OffsetOldest)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			continue // the partition is gone, nobody stops for it
		}
		if err != nil {
			return nil, fmt.Errorf("operator: first offset of %s/%d: %w", g.Topic, r.Partition, err)
		}
		if r.Next < first {
			lost := &HistoryLostError{Operator: g.Operator, Topic: g.Topic, Partition: r.Partition, From: r.Next, To: first}
			holes = append(holes, Hole{
				Operator: g.Operator, Topic: g.Topic, Partition: r.Partition, Kind: kindHistoryLost, Message: lost.Error(),
				Next: r.Next, Resume: first, Have: r.Source, Open: true,
			})
		}
	}
	return holes, nil
}

// readTime bounds the reading of one record.
const readTime = 10 * time.Second

// needBefore reads the first record behind lost history that names its predecessor: that is the last event of the hole.
// open when there is none.
func needBefore(ctx context.Context, client sarama.Client, topic events.Topic, partition int32, from int64) (need int64, open bool, err error) {
	failed := func(err error) (int64, bool, error) {
		return 0, true, fmt.Errorf("operator: read %s/%d from offset %d: %w", topic.Name, partition, from, err)
	}
	end, err := client.GetOffset(topic.Name, partition, sarama.OffsetNewest)
	if err != nil {
		return failed(err)
	}
	if topic.Compacted || topic.Owner == "" || from >= end {
		return 0, true, nil
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	reader, err := consumer.ConsumePartition(topic.Name, partition, from)
	if err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	in := newInspector(topic, events.NewRegistry(), nil, false)
	timer := time.NewTimer(readTime)
	defer timer.Stop()
	for {
		select {
		case m := <-reader.Messages():
			if it := in.inspect(rawOf(m), partition, m.Offset); it.chained {
				return it.rec.Previous, false, nil
			}
			if m.Offset+1 >= end {
				return 0, true, nil
			}
		case <-timer.C:
			return failed(fmt.Errorf("no record came within %s", readTime))
		case <-ctx.Done():
			return failed(ctx.Err())
		}
	}
}
