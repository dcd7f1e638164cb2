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

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// TestFaultLockOrder mixes operators' transactions, which lock many streams and rows of their own, transactions that
// append without loading first, and the group commit, over few streams of which some are always new: no deadlocks,
// and every state is that of its events.
func TestFaultLockOrder(t *testing.T) {
	t.Parallel()
	run := faulttest.Begin(t, faulttest.Plan{Name: "Order of locks",
		Does: "mixes operators' transactions, transactions that append in any order and the group commit over few streams, some always new: no deadlock, every state is that of its events"})
	db := pgtest.New(t, eventstore.Migrations())
	exec(t, db.Pool, "create table own (n int primary key, count int not null); insert into own select n, 0 from generate_series(1, 20) n")
	pool := open(t, db.DSN, 12)
	w := &lockWorld{s: start(t, pool)}
	each, workers := run.Times(60, 1500), 4
	var working sync.WaitGroup
	for range workers {
		for kind, once := range []func(*testing.T, *rand.Rand) error{w.operator, w.blind, w.command} {
			r := run.Dice()
			working.Go(func() {
				for done := 0; done < each; {
					err := once(t, r)
					var conflict *eventstore.ConflictError
					switch {
					case err == nil:
						done++
					case kind > 0 && errors.As(err, &conflict): // an operator has the locks, so it meets none
						w.conflicts.Add(1)
					default:
						t.Errorf("worker of kind %d: %v", kind, err)
						return
					}
				}
			})
		}
	}
	working.Wait()
	if wrong := one[int](t, db.Pool, `select count(*) from streams s left join lateral
 (select count(*) n, max(version) v from events e where e.stream = s.stream) e on true
 where s.version <> e.n or e.n > 0 and (e.v <> e.n or (s.state ->> 'n')::int <> e.n)`); wrong != 0 {
		t.Errorf("%d streams do not agree with their events", wrong)
	}
	if n := one[int](t, db.Pool, "select sum(count) from own"); n != workers*each {
		t.Errorf("%d changes of own rows, want %d", n, workers*each)
	}
	run.Count("transactions", 3*workers*each)
	run.Count("conflicts", int(w.conflicts.Load()))
}

type lockWorld struct {
	s              *eventstore.Store
	ops, conflicts atomic.Int64
}

// stream is one of a few, which move on.
func (w *lockWorld) stream(r *rand.Rand) string {
	return fmt.Sprintf("counter-%05d", w.ops.Add(1)/6+int64(r.IntN(10)))
}

// operator locks streams, then a row of its own, then appends.
func (w *lockWorld) operator(t *testing.T, r *rand.Rand) error {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var names []string
	for range 6 {
		names = append(names, w.stream(r))
	}
	loaded, err := tx.Load(t.Context(), names)
	if err != nil {
		return err
	}
	tx.Later("update own set count = count + 1 where n = $1", 1+r.IntN(20))
	for stream, at := range loaded {
		if r.IntN(3) > 0 {
			tx.Append(counted(t, stream, at.Version))
		}
	}
	return tx.Commit(t.Context(), "es_commit")
}

// blind appends to streams that it read without a lock.
func (w *lockWorld) blind(t *testing.T, r *rand.Rand) error {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	if err != nil {
		return err
	}
	defer tx.Rollback()
	names := map[string]bool{}
	for range 4 {
		names[w.stream(r)] = true
	}
	for stream := range names { // in any order: the locks are sorted in SQL
		loaded, err := w.s.Load(t.Context(), stream)
		if err != nil {
			return err
		}
		tx.Append(counted(t, stream, loaded.Version))
	}
	return tx.Commit(t.Context(), "es_commit")
}

func (w *lockWorld) command(t *testing.T, r *rand.Rand) error {
	t.Helper()
	loaded, err := w.s.Load(t.Context(), w.stream(r))
	if err != nil {
		return err
	}
	_, err = w.s.Append(t.Context(), counted(t, loaded.Name, loaded.Version))
	return err
}

func TestCommitChecksEveryResult(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	exec(t, db.Pool, "create table own (n int primary key)")
	for name, spoil := range map[string]func(tx *eventstore.Tx) error{
		"later": func(tx *eventstore.Tx) error {
			tx.Later("insert into own values (1)")
			tx.Later("insert into own values (1)")
			return nil
		},
		"a swallowed error": func(tx *eventstore.Tx) error {
			if err := tx.Exec(t.Context(), "select 1/0"); err == nil {
				return errors.New("division by zero went through")
			}
			return nil
		},
	} {
		tx, err := s.Begin(t.Context())
		must(t, err)
		must(t, spoil(tx))
		if !strings.Contains(name, "later") {
			if err := tx.Commit(t.Context(), "es_commit"); err == nil {
				t.Errorf("%s: a failed transaction without appends was reported as committed", name)
			}
			continue
		}
		tx.Append(counted(t, "counter-1", 0))
		if err := tx.Commit(t.Context(), "es_commit"); !eventstore.Deterministic(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := one[int](t, db.Pool, "select (select count(*) from own) + (select count(*) from events)"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if idle := db.Pool.Stat().AcquiredConns(); idle > 2 { // group commit and notifications may have one each
		t.Errorf("%d connections were not given back", idle)
	}
}

func TestTxConflict(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	tx, err := s.Begin(t.Context())
	must(t, err)
	defer tx.Rollback()
	tx.Append(counted(t, "counter-1", 0))
	tx.Append(counted(t, "counter-2", 7))
	err = tx.Commit(t.Context(), "es_commit")
	var conflict *eventstore.ConflictError
	if !errors.As(err, &conflict) || *conflict != (eventstore.ConflictError{Stream: "counter-2", Expected: 7, Actual: 0}) {
		t.Fatalf("commit: %v", err)
	}
	if err := tx.Commit(t.Context(), "es_commit"); !errors.Is(err, eventstore.ErrTxDone) {
		t.Fatalf("a second commit: %v", err)
	}
	if n := one[int](t, db.Pool, "select count(*) from events"); n != 0 {
		t.Fatalf("%d events were written", n)
	}
}

func TestLoadComesFirst(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	tx, err := s.Begin(t.Context())
	must(t, err)
	defer tx.Rollback()
	must(t, tx.Exec(t.Context(), "select 1"))
	if _, err := tx.Load(t.Context(), []string{"counter-1"}); !errors.Is(err, eventstore.ErrLockOrder) {
		t.Fatalf("load after a statement: %v", err)
	}
}

// A stream that is created or locked after others were can deadlock with those who lock all in order.
func TestAppendsGoToLoadedStreams(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	try := func(load ...string) error {
		return s.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
			if _, err := tx.Load(ctx, load); err != nil {
				return err
			}
			tx.Append(counted(t, "counter-1", 0))
			return nil
		})
	}
	var invalid *eventstore.InvalidError
	if err := try("counter-2"); !errors.As(err, &invalid) || invalid.Stream != "counter-1" {
		t.Errorf("an append to a stream that was not loaded: %v", err)
	}
	if n := one[int](t, db.Pool, "select count(*) from events"); n != 0 {
		t.Errorf("%d events were written", n)
	}
	if err := try(); err != nil { // nothing was locked before
		t.Error(err)
	}
}

func TestWithinRetriesConflicts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	var tries int
	err := s.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
		tries++
		loaded, err := s.Load(ctx, "counter-1") // without the lock, so that others can be faster
		if err != nil {
			return err
		}
		if tries < 4 {
			if _, err := s.Append(ctx, counted(t, "counter-1", loaded.Version)); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, "select generate_series(1, 3)")
		if err != nil {
			return err
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[int]); err != nil || len(got) != 3 {
			return fmt.Errorf("rows of the first statement: %v, %w", got, err)
		}
		tx.Append(counted(t, "counter-1", loaded.Version))
		return nil
	})
	must(t, err)
	if loaded, err := s.Load(t.Context(), "counter-1"); err != nil || tries != 4 || loaded.Version != 4 {
		t.Fatalf("%d tries, version %d, %v", tries, loaded.Version, err)
	}

	tries = 0
	err = s.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
		tries++
		tx.Append(counted(t, "counter-1", 0))
		return nil
	})
	var conflict *eventstore.ConflictError
	if !errors.As(err, &conflict) || tries != 10 {
		t.Fatalf("a conflict that stays: %d tries, %v", tries, err)
	}
	own := errors.New("the caller's own")
	tries = 0
	err = s.Within(t.Context(), func(context.Context, *eventstore.Tx) error { tries++; return own })
	if !errors.Is(err, own) || tries != 1 {
		t.Fatalf("an error of fn: %d tries, %v", tries, err)
	}
}

func TestHistoryInsideATransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	_, err := s.Append(t.Context(), manyCounted(t, "counter-1", 0, 3))
	must(t, err)
	tx, err := s.Begin(t.Context())
	must(t, err)
	defer tx.Rollback()
	history, err := tx.History(t.Context(), "counter-1")
	must(t, err)
	if len(history) != 3 || history[2].Event != (Counted{N: 3}) {
		t.Fatalf("history %+v", history)
	}
}

func TestRestate(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	must(t, s.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
		for i := range 1200 { // more than a page
			tx.Append(counted(t, fmt.Sprintf("counter-%d", i), 0))
		}
		return nil
	}))
	must(t, s.Within(t.Context(), func(ctx context.Context, tx *eventstore.Tx) error {
		_, err := tx.Load(ctx, []string{"counter-1", "absent"})
		tx.Restate(eventstore.Stream{Name: "counter-1", Version: 1, Shape: 2, State: []byte(`{"N":1}`)})
		return err
	}))
	var restated, others int
	must(t, s.EachStream(t.Context(), func(kept eventstore.Stream) error {
		if kept.Name == "counter-1" && kept.Shape == 2 && string(kept.State) == `{"N":1}` {
			restated++
		} else if kept.Shape == 1 && string(kept.State) == `{"n":1}` {
			others++
		}
		return nil
	}))
	if restated != 1 || others != 1199 {
		t.Fatalf("%d restated, %d others", restated, others)
	}
}

func nothing(context.Context, *eventstore.Tx) error { return nil }
