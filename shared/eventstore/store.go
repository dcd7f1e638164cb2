package eventstore

import (
	"context"
	"log/slog"
	"time"

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
func (s *Store) Run(ctx context.Context) error { panic("unimplemented") }

// Pool gives the store's connections, for queries of the service's own tables.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Registry decodes this service's events.
func (s *Store) Registry() *events.Registry { return s.opts.Registry }

// Append writes one request through the group commit. Errors: [*ConflictError], [*TooLargeError],
// [ErrAttemptLost], [ErrUnknown] when ctx ended while the append was in flight.
func (s *Store) Append(ctx context.Context, a Append) (Result, error) { panic("unimplemented") }

// Load reads a stream's current state; a stream that was never written has version 0.
func (s *Store) Load(ctx context.Context, stream string) (Stream, error) { panic("unimplemented") }

// Until bounds a history: zero values mean no bound.
type Until struct {
	Version int64
	Time    time.Time // events recorded at or before it
}

// History reads a stream's events in order, decoded.
func (s *Store) History(ctx context.Context, stream string, until Until) ([]events.Recorded, error) {
	panic("unimplemented")
}

// Begin opens a transaction in which streams are locked, changed and appended to. Nothing is sent before
// its first statement.
func (s *Store) Begin(ctx context.Context) (*Tx, error) { panic("unimplemented") }

// Within runs fn in a transaction of its own: load (and lock) streams, write the service's own rows, append.
// A conflict with another writer is retried.
func (s *Store) Within(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	panic("unimplemented")
}

// Committed tells relay and watchers in this process that new events may be there. The store calls it after
// its own commits; the operator loop calls it after its.
func (s *Store) Committed() {}

// Wake returns a channel that receives after commits, in this process or (by NOTIFY) in another. For the relay.
func (s *Store) Wake() <-chan struct{} { panic("unimplemented") }

// Watch returns a channel that receives whenever the stream may have new events, from any process.
// The caller must call stop.
func (s *Store) Watch(stream string) (changed <-chan struct{}, stop func()) { panic("unimplemented") }

// Tx is a transaction of an operator or of [Store.Within]. The order of locks is that of the methods:
// Load streams, then the service's own rows (Query, Exec, Later), then Append and Commit.
type Tx struct{}

// Load locks streams in sorted order (missing ones are inserted at version 0) and returns them by name.
// Call it once, before anything else.
func (t *Tx) Load(ctx context.Context, streams []string) (map[string]Stream, error) {
	panic("unimplemented")
}

// History reads the events of a stream inside the transaction; for a state of an older shape.
func (t *Tx) History(ctx context.Context, stream string) ([]events.Recorded, error) {
	panic("unimplemented")
}

// Query runs a query in the transaction.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	panic("unimplemented")
}

// Exec runs a statement in the transaction.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) error { panic("unimplemented") }

// Later queues a statement that is sent together with the commit, before the appends.
func (t *Tx) Later(sql string, args ...any) {}

// Append queues a request for the commit.
func (t *Tx) Append(a Append) {}

// Commit writes everything queued and commits, in one write to the server. call is the SQL function that does
// it: "es_commit", or one that takes further leading parameters args, as the operator's "op_commit" does.
func (t *Tx) Commit(ctx context.Context, call string, args ...any) error { panic("unimplemented") }

// Rollback gives the transaction up; after Commit it does nothing.
func (t *Tx) Rollback() {}
