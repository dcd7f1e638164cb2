package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
)

// lockNotAvailable is the SQLSTATE of a lock that did not come within lock_timeout.
const lockNotAvailable = "55P03"

// silent are the partitions that are due for a tick.
func (l *leader) silent(at time.Time) (idle []int32) {
	if !l.relay.opts.Topic.Ticks {
		return nil
	}
	for i := range l.partitions {
		p := &l.partitions[i]
		quiet := at.Sub(p.record) >= l.relay.timing.firstTick
		if quiet && (p.tick.Before(p.record) || at.Sub(p.tick) >= l.relay.timing.nextTick) {
			idle = append(idle, int32(i))
		}
	}
	return idle
}

// now is a time up to which a read that begins now sees every event. It is zero when an append holds the store
// for long; then there is no tick in this round.
func (l *leader) now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := l.row(ctx, []any{&now}, "select relay_now()")
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == lockNotAvailable {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("relay: read the store's clock: %w", err)
	}
	return now, nil
}

// tick tells idle partitions that nothing up to the given time is unsent. What this round has published is no
// longer idle, and does not need one.
func (l *leader) tick(ctx context.Context, idle []int32, at time.Time) error {
	started := time.Now()
	var records []kafka.Record
	for _, n := range idle {
		if at.IsZero() || started.Sub(l.partitions[n].record) < l.relay.timing.firstTick {
			continue
		}
		records = append(records, tickRecord(l.relay.opts.Topic, n, at))
	}
	if len(records) == 0 {
		return nil
	}
	offsets, err := l.deliver(ctx, records)
	if err != nil {
		return err
	}
	l.relay.metrics.ticks.Add(float64(len(records)))
	for i, r := range records {
		p := &l.partitions[r.Partition]
		p.tick = started
		if offsets[i] >= 0 {
			p.next, p.changed = offsets[i]+1, true
		}
	}
	// Saved at once, so that the comparison at the next start need not read the ticks of a quiet month.
	return l.save(ctx, l.position)
}

func tickRecord(topic events.Topic, partition int32, at time.Time) kafka.Record {
	// A random id is good enough should the clock-based one fail.
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}
	tick := events.Recorded{
		Meta: events.Meta{ID: id.String(), Time: at}, Type: events.TickType, Source: topic.Source(), RecordedAt: at,
	}
	return kafka.Record{Partition: partition, Value: []byte("{}"), Headers: headersOf(events.Headers(tick)), Time: at}
}
