package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/telemetry"
)

// Options configure a store.
type Options struct {
	Service  string                // owner; source of its events
	Registry *events.Registry      // decodes history: shared events and the service's private ones
	Log      *slog.Logger          // nil: discard
	Metrics  prometheus.Registerer // nil: none
	Tracer   *telemetry.Tracer     // of the service; nil: none
	// MaxFlush is how many appends may share a transaction; 0: 128. 1 turns group commit off, to measure it.
	MaxFlush int
	// PartSize is how many positions a new part of the table of events has; 0: [PartSize]. Small ones are for tests.
	PartSize int64
}

func (o Options) maxFlush() int {
	if o.MaxFlush > 0 {
		return o.MaxFlush
	}
	return maxFlush
}

// Store is one service's event store. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	opts     Options
	log      *slog.Logger
	metrics  *metrics
	instance string // tells this process's notifications from those of others

	queue, side *queue
	notifier    *notifier
	tail        *tail
	wake        chan struct{}
	wanted      chan struct{} // has keepParts look at once
	written     atomic.Int64  // events since it was last asked to
}

// New makes a store over a pool opened by shared/pg. Append works once [Store.Run] is running.
func New(pool *pgxpool.Pool, opts Options) *Store {
	s := &Store{
		pool: pool, opts: opts, log: opts.Log, instance: uuid.NewString(),
		queue: newQueue(), side: newQueue(), notifier: newNotifier(), tail: newTail(), wake: make(chan struct{}, 1),
		wanted: make(chan struct{}, 1),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.metrics = newMetrics(opts, s.log, func() int { return s.queue.len() + s.side.len() })
	return s
}

// Run flushes appends (group commit), notifies other replicas, serves watchers and makes parts ahead of need until ctx
// ends; then it finishes what is in flight, for at most 3 s. It runs once. Beside the pool's it uses three connections:
// one listens, and each lane has its own.
func (s *Store) Run(ctx context.Context) error {
	// Notifications and watchers go on until the last append is written.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	for _, loop := range []func(context.Context){s.notify, s.listen, s.follow, s.keepParts} {
		loops.Go(func() { loop(serving) })
	}
	s.commitGroups(ctx)
	stop()
	loops.Wait()
	return nil
}

// Pool gives the store's connections, for queries of the service's own tables.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Registry decodes this service's events.
func (s *Store) Registry() *events.Registry { return s.opts.Registry }

const callCommit = "es_commit"

// Load reads a stream's current state; a stream that was never written has version 0.
func (s *Store) Load(ctx context.Context, stream string) (Stream, error) {
	return s.load(ctx, stream, "null::timestamptz")
}

// LoadChanged is [Store.Load] that also reads ChangedAt, for which it looks into all parts of the events.
func (s *Store) LoadChanged(ctx context.Context, stream string) (Stream, error) {
	return s.load(ctx, stream, "es_changed_at(stream, version)")
}

func (s *Store) load(ctx context.Context, stream, changedAt string) (Stream, error) {
	loaded := Stream{Name: stream}
	var changed *time.Time
	err := s.pool.QueryRow(ctx, "select version, shape, state, "+changedAt+" from streams where stream = $1", stream).
		Scan(&loaded.Version, &loaded.Shape, (*[]byte)(&loaded.State), &changed)
	if errors.Is(err, pgx.ErrNoRows) {
		return loaded, nil
	}
	if err != nil {
		return Stream{}, fmt.Errorf("eventstore: load stream %s: %w", stream, err)
	}
	if changed != nil {
		loaded.ChangedAt = *changed
	}
	return loaded.marked(), nil
}

// scanStream reads (stream, version, shape, state).
func scanStream(row pgx.CollectableRow) (Stream, error) {
	var s Stream
	err := row.Scan(&s.Name, &s.Version, &s.Shape, (*[]byte)(&s.State))
	return s.marked(), err
}

// marked is the stream without what a row holds that only marks its place.
func (s Stream) marked() Stream {
	if s.Version == 0 { // the row only marks the place
		s.Shape, s.State = 0, nil
	}
	return s
}
