package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
)

// Status is how far a store is published, as its database has it.
type Status struct {
	Position int64         // up to which it is published; 0: nothing was yet
	Waiting  int64         // positions after that, an upper bound of the events that wait
	Oldest   time.Duration // age of the first event that waits
	Stopped  string        // the named error that stopped the relay; "": none
}

// Compared tells whether log and store were compared since the database is the one it is. Until then it may have been
// restored to a state before what others have applied. A store that never published is in order.
func Compared(ctx context.Context, pool *pgxpool.Pool, topic events.Topic) (bool, error) {
	var compared bool
	err := pool.QueryRow(ctx, `select coalesce((select database in ('', relay_database()) from relay_cursor where topic = $1), true)`,
		topic.Name).Scan(&compared)
	if err != nil {
		return false, fmt.Errorf("relay: was %s compared: %w", topic.Name, err)
	}
	return compared, nil
}

// StatusOf looks at the cursor of a store.
func StatusOf(ctx context.Context, pool *pgxpool.Pool, topic events.Topic) (Status, error) {
	var s Status
	err := pool.QueryRow(ctx, "select position, stopped from relay_cursor where topic = $1", topic.Name).Scan(&s.Position, &s.Stopped)
	var oldest float64
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		err = pool.QueryRow(ctx, backlogSQL, s.Position).Scan(&s.Waiting, &oldest)
	}
	if err != nil {
		return s, fmt.Errorf("relay: status of %s: %w", topic.Name, err)
	}
	s.Waiting, s.Oldest = max(s.Waiting, 0), time.Duration(max(oldest, 0)*float64(time.Second))
	return s, nil
}
