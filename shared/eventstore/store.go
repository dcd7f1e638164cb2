package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/feira-shop/feira/shared/events"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Options configure a store.
type Options struct {
	Service  string                // owner; source of its events
	Registry *events.Registry      // decodes history: shared events and the service's private ones
	Log      *slog.Logger          // nil: discard
	Metrics  prometheus.Registerer // nil: none
}

// Store is one service's event store.
type Store struct {
	pool *pgxpool.Pool
	opts Options
}

// New makes a store over a pool opened by shared/pg. Append works once [Store.Run] is running.
func New(pool *pgxpool.Pool, opts Options) *Store { return &Store{pool: pool, opts: opts} }

// Run flushes appends (group commit), notifies other replicas and serves watchers until ctx ends;
// then it finishes what is in flight.
func (s *Store) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Pool gives the store's connections, for queries of the service's own tables.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Registry decodes this service's events.
func (s *Store) Registry() *events.Registry { return s.opts.Registry }

const callCommit = "es_commit"

// Append writes one request through the group commit. Errors: [*ConflictError], [*TooLargeError],
// [ErrAttemptLost], [ErrUnknown] when ctx ended while the append was in flight.
func (s *Store) Append(ctx context.Context, a Append) (Result, error) {
	tx, err := s.Begin(ctx)
	if err != nil {
		return Result{}, err
	}
	defer tx.Rollback()
	tx.Append(a)
	if err := tx.Commit(ctx, callCommit); err != nil {
		return Result{}, err
	}
	return Result{Version: a.next()}, nil
}

// Load reads a stream's current state; a stream that was never written has version 0.
func (s *Store) Load(ctx context.Context, stream string) (Stream, error) {
	rows, err := s.pool.Query(ctx, "select stream, version, shape, state from streams where stream = $1", stream)
	if err != nil {
		return Stream{}, fmt.Errorf("eventstore: load stream %s: %w", stream, err)
	}
	loaded, err := pgx.CollectExactlyOneRow(rows, scanStream)
	if errors.Is(err, pgx.ErrNoRows) {
		return Stream{Name: stream}, nil
	}
	if err != nil {
		return Stream{}, fmt.Errorf("eventstore: load stream %s: %w", stream, err)
	}
	return loaded, nil
}

// scanStream reads (stream, version, shape, state).
func scanStream(row pgx.CollectableRow) (Stream, error) {
	var s Stream
	err := row.Scan(&s.Name, &s.Version, &s.Shape, (*[]byte)(&s.State))
	if s.Version == 0 { // the row only marks the place
		s.Shape, s.State = 0, nil
	}
	return s, err
}

// Within runs fn in a transaction of its own: load (and lock) streams, write the service's own rows, append.
// A conflict with another writer is retried.
func (s *Store) Within(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx, callCommit)
}
