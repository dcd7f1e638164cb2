package eventstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func exec(tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	tb.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func manyCounted(tb testing.TB, stream string, expected int64, n int) eventstore.Append {
	tb.Helper()
	a := counted(tb, stream, expected)
	for i := 1; i < n; i++ {
		a.Events = append(a.Events, encode(tb, Counted{N: int(expected) + i + 1}))
	}
	return a
}

func TestFaultSecondAppendWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "An append that stays open",
		Does: "keeps the first of two appends open after its insert: the second waits, and its position is the later one"})
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

func TestFaultOrderOfTransactionIDs(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{Name: "Order of transaction ids",
		Does: "gives the later version of a stream the earlier transaction id: it is read after the earlier version"})
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
