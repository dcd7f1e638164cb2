package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
)

// threePartitions is the topic of the fault tests.
func threePartitions() events.Topic {
	topic := events.Orders
	topic.Partitions = 3
	return topic
}

// store runs an event store over a pool of its own, as a process of the service does, until the test ends.
func (e *env) store(conns int32) *eventstore.Store {
	e.t.Helper()
	s, stop := e.runStore(conns)
	e.t.Cleanup(stop)
	return s
}

// runStore is [env.store] until stop.
func (e *env) runStore(conns int32) (s *eventstore.Store, stop func()) {
	e.t.Helper()
	pool, err := pg.Open(context.Background(), e.db.DSN, pg.PoolOptions{Name: "store", MaxConns: conns})
	if err != nil {
		e.t.Fatal(err)
	}
	s = eventstore.New(pool, eventstore.Options{Service: "orders", Registry: events.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Errorf("store: %v", err)
		}
		pool.Close()
	}
}

// load is what writers append while something is broken, each to streams of its own.
type load struct {
	e       *env
	stores  []*eventstore.Store
	writers int
	perTx   int           // events of a transaction
	pace    time.Duration // of a writer: from the beginning of a transaction to that of the next
	enough  int64         // events, after which it ends by itself; 0: never
	dice    func() *rand.Rand
	// commit writes all or, with an error, nothing; nil is [grouped].
	commit func(ctx context.Context, writer int, s *eventstore.Store, appends []eventstore.Append) error

	committed atomic.Int64 // events
	stop      context.CancelFunc
	working   sync.WaitGroup
}

// streamsOf is how many streams a writer has.
const streamsOf = 20

func (l *load) start() {
	var ctx context.Context
	if l.commit == nil {
		l.commit = grouped
	}
	ctx, l.stop = context.WithCancel(context.Background())
	l.e.t.Cleanup(l.end)
	for w := range l.writers {
		dice := l.dice()
		l.working.Go(func() { l.write(ctx, w, dice) })
	}
}

// end stops the writers; what they have begun is finished.
func (l *load) end() {
	l.stop()
	l.working.Wait()
}

func (l *load) write(ctx context.Context, w int, dice *rand.Rand) {
	owner := uuid.NewString()
	var versions [streamsOf]int64
	for next := time.Now(); ctx.Err() == nil && (l.enough == 0 || l.committed.Load() < l.enough); next = next.Add(l.pace) {
		rest(ctx, time.Until(next), nil)
		chosen := dice.Perm(streamsOf)[:l.perTx]
		appends := make([]eventstore.Append, len(chosen))
		for i, n := range chosen {
			appends[i] = ordered(fmt.Sprintf("order-%s-%d", owner, n), versions[n], 1)
		}
		// What has begun is finished.
		switch err := l.commit(context.WithoutCancel(ctx), w, l.stores[w%len(l.stores)], appends); {
		case err == nil:
			for _, n := range chosen {
				versions[n]++
			}
			l.committed.Add(int64(len(chosen)))
		case !refused(err):
			l.e.t.Errorf("writer %d: %v", w, err)
			return
		}
	}
}

// grouped writes through the group commit.
func grouped(ctx context.Context, _ int, s *eventstore.Store, appends []eventstore.Append) error {
	for _, a := range appends {
		if _, err := s.Append(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// refused tells whether a transaction was rolled back by the test, or because it waited too long for the store lock.
func refused(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == rolledBack || pe.Code == lockNotAvailable)
}

// ordered is the next n events of a stream.
func ordered(stream string, expected int64, n int) eventstore.Append {
	a := eventstore.Append{Stream: stream, Expected: expected, Shape: 1, State: []byte("{}")}
	for i := range n {
		id := uuid.NewString()
		a.Events = append(a.Events, eventstore.Event{
			ID: id, Type: placed, Key: stream, Data: fmt.Appendf(nil, `{"version":%d}`, expected+int64(i)+1),
			Meta: fmt.Appendf(nil, `{"id":"%s","time":"2026-01-02T03:04:05Z","correlation":"c-1"}`, id),
		})
	}
	return a
}

// rolledBack is the SQLSTATE of a transaction that the test gave up.
const rolledBack = "TEST1"

// holdCommit is es_commit by a transaction that dawdles, or rolls back, after it has inserted its events.
const holdCommit = `create function hold_commit(ms int, fail boolean, a es_appends) returns void language plpgsql as $$
begin
  perform es_commit(a);
  perform pg_sleep(ms / 1000.0);
  if fail then raise exception 'rolled back' using errcode = 'TEST1'; end if;
end $$`

// inTx commits appends through a function of the database.
func inTx(ctx context.Context, s *eventstore.Store, appends []eventstore.Append, call string, args ...any) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, a := range appends {
		tx.Append(a)
	}
	return tx.Commit(ctx, call, args...)
}

// oracle compares the log with the store, and the store with what the writers were told. It returns how many
// records came again.
func (e *env) oracle(written int64) (repeated int) {
	e.t.Helper()
	repeated = e.check()
	var kept, reordered int64
	e.scan(&kept, "select count(*) from events")
	if kept != written {
		e.t.Errorf("the writers committed %d events, the store has %d", written, kept)
	}
	e.scan(&reordered, `select count(*) from (
select version, row_number() over (partition by stream order by position) n from events) e where version <> n`)
	if reordered != 0 {
		e.t.Errorf("%d events are not in the order of their stream", reordered)
	}
	return repeated
}

// forgotten is a transaction that somebody left open, with a snapshot and a transaction id; nobody ends it before the
// test does.
func (e *env) forgotten(tb testing.TB) {
	tb.Helper()
	conn, err := pg.Connect(context.Background(), e.db.DSN, "forgotten", map[string]string{
		"idle_in_transaction_session_timeout": "0", "transaction_timeout": "0"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(context.Background(), "begin isolation level repeatable read"); err != nil {
		tb.Fatal(err)
	}
	if _, err := conn.Exec(context.Background(), "select txid_current(), (select count(*) from events)"); err != nil {
		tb.Fatal(err)
	}
}
