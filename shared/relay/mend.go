package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/pg"
)

// ErrLeading says that a process publishes the store: nothing is mended under it.
var ErrLeading = errors.New("relay: a process leads; stop the service, all its replicas, and try again")

// Note writes down, in the transaction that mends, who does it; detail says what was found.
type Note func(ctx context.Context, tx pgx.Tx, detail string) error

// Anew is what publishing a store anew means.
type Anew struct {
	Position   int64 // up to which the store was published
	Newest     int64 // position of its last event: so far it is published again
	Partitions int   // that the topic had; those that it has now count from here on
}

// PublishAnew has the relay begin with the first event, on the topic as it is then: after the topic was deleted and
// made again. Consumers drop what they have applied. dry only looks. Errors: [ErrLeading], [*NeverPublishedError],
// [*eventstore.ArchivedError].
func PublishAnew(ctx context.Context, dsn string, topic events.Topic, dry bool, note Note) (Anew, error) {
	var a Anew
	err := alone(ctx, dsn, func(tx pgx.Tx) error {
		var gone int64
		err := tx.QueryRow(ctx, `select position, partitions, coalesce((select max(position) from events), 0), es_archived()
			from relay_cursor where topic = $1 for update`, topic.Name).Scan(&a.Position, &a.Partitions, &a.Newest, &gone)
		if errors.Is(err, pgx.ErrNoRows) {
			return &NeverPublishedError{Topic: topic.Name}
		}
		if err == nil {
			err = archived(topic.Owner, 0, gone)
		}
		if err != nil || dry {
			return err
		}
		if _, err := tx.Exec(ctx, "update relay_cursor set position = 0, partitions = 0, term = term + 1 where topic = $1", topic.Name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "delete from relay_partitions where topic = $1", topic.Name); err != nil {
			return err
		}
		return note(ctx, tx, fmt.Sprintf("%s from the first event; it was published up to position %d", topic.Name, a.Position))
	})
	return a, err
}

// NeverPublishedError says that no relay has ever led this store.
type NeverPublishedError struct{ Topic string }

func (e *NeverPublishedError) Error() string {
	return fmt.Sprintf("relay: nothing was ever published to %s from this store; start the service, it begins by itself", e.Topic)
}

// alone runs fn in a transaction while no relay leads and none can begin to.
func alone(ctx context.Context, dsn string, fn func(tx pgx.Tx) error) error {
	conn, err := pg.Connect(ctx, dsn, "feira-admin", map[string]string{
		// Reading a log takes as long as it takes; a person waits for it.
		"idle_in_transaction_session_timeout": "0", "statement_timeout": "10min", "transaction_timeout": "0",
	})
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // a lost session loses the lock too
	var locked bool
	if err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", leaderLock).Scan(&locked); err != nil {
		return fmt.Errorf("relay: lock: %w", err)
	}
	if !locked {
		return ErrLeading
	}
	// The server ends a session a little after its client: whoever comes next must not be told that a process leads.
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", leaderLock) }()
	if err := pgx.BeginFunc(ctx, conn, fn); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}
