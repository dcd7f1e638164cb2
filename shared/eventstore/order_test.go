package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// holdCommit is es_commit by a transaction that dawdles, or rolls back, after it has inserted its events.
const holdCommit = `create function hold_commit(ms int, fail boolean, a es_appends) returns void language plpgsql as $$
begin
  perform es_commit(a);
  perform pg_sleep(ms / 1000.0);
  if fail then raise exception 'rolled back' using errcode = 'TEST1'; end if;
end $$`

func exec(tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	tb.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// removeStoreLock takes the protection out of one test database.
func removeStoreLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	def := one[string](t, pool, "select pg_get_functiondef('es_events(es_appends, smallint[])'::regprocedure)")
	const lock = "perform pg_advisory_xact_lock"
	if strings.Count(def, lock) != 1 {
		t.Fatalf("es_events takes the store lock %d times:\n%s", strings.Count(def, lock), def)
	}
	exec(t, pool, strings.Replace(def, lock, "perform abs", 1))
}

// cursorReader reads as the relay does: what comes after its cursor, again and again.
type cursorReader struct {
	positions []int64
	versions  map[string]int64
	reordered int
}

func (r *cursorReader) read(ctx context.Context, pool *pgxpool.Pool) error {
	var cursor int64
	if n := len(r.positions); n > 0 {
		cursor = r.positions[n-1]
	}
	rows, err := pool.Query(ctx, "select position, stream, version from events where position > $1 order by position limit 1000", cursor)
	if err != nil {
		return err
	}
	var position, version int64
	var stream string
	_, err = pgx.ForEachRow(rows, []any{&position, &stream, &version}, func() error {
		r.positions = append(r.positions, position)
		if version != r.versions[stream]+1 {
			r.reordered++
		}
		r.versions[stream] = version
		return nil
	})
	return err
}

type load struct {
	events, perTx, writers int
	held                   int // per cent of the transactions
	seed                   uint64
}

// write appends until all events are committed: each writer to streams of its own, some transactions held for
// up to 300 ms after the insert, 5 % rolled back, some through the group commit.
func (l load) write(t *testing.T, stores []*eventstore.Store) {
	t.Helper()
	var committed atomic.Int64
	var writers sync.WaitGroup
	for w := range l.writers {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(l.seed, uint64(w)))
			version := int64(0)
			for committed.Load() < int64(l.events) {
				appends := make([]eventstore.Append, 5)
				for i := range appends {
					appends[i] = manyCounted(t, fmt.Sprintf("counter-%d-%d", w, i), version, l.perTx/len(appends))
				}
				ms, fail := 0, random.IntN(100) < 5
				if random.IntN(100) < l.held {
					ms = random.IntN(300)
				}
				err := l.commit(t.Context(), stores[w%2], appends, ms, fail, w%8 < 2)
				var pe *pgconn.PgError
				switch {
				case err == nil:
					version += int64(l.perTx / len(appends))
					committed.Add(int64(l.perTx))
				case errors.As(err, &pe) && pe.Code == "TEST1":
				case errors.As(err, &pe) && pe.Code == "55P03": // waited long behind those that are held
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
}

func (l load) commit(ctx context.Context, s *eventstore.Store, appends []eventstore.Append, ms int, fail, grouped bool) error {
	if grouped {
		for _, a := range appends {
			if _, err := s.Append(ctx, a); err != nil {
				return err
			}
		}
		return nil
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, a := range appends {
		tx.Append(a)
	}
	return tx.Commit(ctx, "hold_commit", ms, fail)
}

func manyCounted(tb testing.TB, stream string, expected int64, n int) eventstore.Append {
	tb.Helper()
	a := counted(tb, stream, expected)
	for i := 1; i < n; i++ {
		a.Events = append(a.Events, encode(tb, Counted{N: int(expected) + i + 1}))
	}
	return a
}

// lateCommits writes a load while a reader follows; it returns what the reader saw and how many events it missed.
func lateCommits(t *testing.T, l load, mutate func(*testing.T, *pgxpool.Pool)) (r *cursorReader, missed int) {
	t.Helper()
	db := pgtest.New(t, eventstore.Migrations())
	exec(t, db.Pool, holdCommit)
	if mutate != nil {
		mutate(t, db.Pool)
	}
	pool := open(t, db.DSN, int32(l.writers)+4)
	stores := []*eventstore.Store{start(t, pool), start(t, open(t, db.DSN, 4))} // two processes of one service
	idle, err := db.Pool.Begin(t.Context())                                     // a forgotten transaction must stall nobody
	must(t, err)
	defer func() { _ = idle.Rollback(context.Background()) }()
	_, err = idle.Exec(t.Context(), "select txid_current()")
	must(t, err)

	r = &cursorReader{versions: map[string]int64{}}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		l.write(t, stores)
	}()
	for done := false; !done; {
		select {
		case <-writing:
			done = true
		default:
		}
		must(t, r.read(t.Context(), db.Pool))
	}
	for before := -1; before != len(r.positions); {
		before = len(r.positions)
		must(t, r.read(t.Context(), db.Pool))
	}
	return r, one[int](t, db.Pool, "select count(*) from events") - len(r.positions)
}

func TestLateCommit(t *testing.T) {
	t.Parallel()
	l := load{events: 50_000, perTx: 50, writers: 12, held: 1, seed: rand.Uint64()}
	t.Logf("seed %d", l.seed)
	r, missed := lateCommits(t, l, nil)
	if missed != 0 || r.reordered != 0 || len(r.positions) < l.events {
		t.Fatalf("of %d events %d were missed and %d reordered", len(r.positions), missed, r.reordered)
	}
}

// TestLateCommitWithoutTheLock proves that the test above can fail.
func TestLateCommitWithoutTheLock(t *testing.T) {
	t.Parallel()
	l := load{events: 10_000, perTx: 50, writers: 12, held: 5, seed: rand.Uint64()}
	t.Logf("seed %d", l.seed)
	r, missed := lateCommits(t, l, removeStoreLock)
	if missed == 0 {
		t.Fatal("without the store lock a reader missed nothing: the test of late commits proves nothing")
	}
	t.Logf("without the lock %d of %d events were missed", missed, missed+len(r.positions))
}

func TestSecondAppendWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	exec(t, db.Pool, `create function wait_commit(a es_appends) returns void language plpgsql as $$
begin
  perform es_commit(a);
  perform pg_advisory_xact_lock(1);
end $$`)
	gate, err := db.Pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = gate.Rollback(context.Background()) }()
	_, err = gate.Exec(t.Context(), "select pg_advisory_xact_lock(1)")
	must(t, err)

	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		tx, err := s.Begin(t.Context())
		if err == nil {
			tx.Append(counted(t, "counter-first", 0))
			err = tx.Commit(t.Context(), "wait_commit")
		}
		first <- err
	}()
	waitFor(t, db.Pool, 1) // the first has inserted its events
	go func() {
		_, err := s.Append(t.Context(), counted(t, "counter-second", 0))
		second <- err
	}()
	waitFor(t, db.Pool, 2) // the second waits for the store lock
	select {
	case err := <-second:
		t.Fatalf("the second append did not wait: %v", err)
	default:
	}
	must(t, gate.Rollback(t.Context()))
	must(t, <-first)
	must(t, <-second)
	if order := one[string](t, db.Pool, "select string_agg(stream, ' ' order by position) from events"); order != "counter-first counter-second" {
		t.Fatalf("order of positions: %s", order)
	}
}

// waitFor returns when n sessions of the database wait for an advisory lock.
func waitFor(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for one[int](t, pool, `select count(*) from pg_locks l join pg_database d on d.oid = l.database
 where d.datname = current_database() and locktype = 'advisory' and not granted`) < n {
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions never waited for an advisory lock", n)
		}
	}
}

func TestOrderOfTransactionIDsDoesNotMatter(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	exec(t, db.Pool, "create table own (n int)")
	tx, err := s.Begin(t.Context())
	must(t, err)
	defer tx.Rollback()
	must(t, tx.Exec(t.Context(), "insert into own values (1)")) // takes the smaller transaction id
	_, err = s.Append(t.Context(), counted(t, "counter-1", 0))
	must(t, err)
	tx.Append(counted(t, "counter-1", 1))
	must(t, tx.Commit(t.Context(), "es_commit"))
	var seen []int
	must(t, s.Each(t.Context(), 0, func(r events.Recorded) error {
		seen = append(seen, r.Event.(Counted).N)
		return nil
	}))
	if fmt.Sprint(seen) != "[1 2]" {
		t.Fatalf("read %v", seen)
	}
}
