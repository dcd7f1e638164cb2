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
