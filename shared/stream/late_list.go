package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/operator"
)

// LateEvent is an event that no window counted, or that a rule was told is late. Its data are where they were, on the topic.
type LateEvent struct {
	Topic     string
	Partition int32
	Offset    int64     // negative: it was filled in from its owner's store
	Reason    string    // "late", or "quarantined": it claims to have happened after it was recorded
	Key       string    // the operator's; several are separated by commas
	ID        string    // of the event
	Happened  time.Time // event time
	Watermark time.Time // of its partition, when it came
	Recorded  time.Time // zero: not known
	Noted     time.Time // when the operator came to it
}

// ListLate lists what was late or quarantined for an operator, the latest first, at most limit.
func ListLate(ctx context.Context, q operator.Querier, name string, limit int) ([]LateEvent, error) {
	rows, err := q.Query(ctx, `
select topic, partition, "offset", reason, key, id, to_timestamp(event_time / 1e6), to_timestamp(watermark / 1e6),
       coalesce(to_timestamp(recorded_at / 1e6), '0001-01-01 00:00:00Z'), noted_at
  from stream_late where operator = $1 order by noted_at desc, topic, partition, "offset" desc limit $2`, name, limit)
	var all []LateEvent
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[LateEvent])
	}
	if err != nil {
		return nil, fmt.Errorf("list what was late for %s: %w", name, err)
	}
	return all, nil
}
