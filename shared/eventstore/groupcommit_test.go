package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

// patient is a session that may idle in a transaction for as long as a slow test needs.
func patient(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pg.Connect(context.Background(), dsn, "holder", map[string]string{
		"idle_in_transaction_session_timeout": "0", "transaction_timeout": "0"})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// hold begins a transaction that keeps what its statement locks until release.
func hold(t *testing.T, dsn, sql string, args ...any) (release func()) {
	t.Helper()
	conn := patient(t, dsn)
	_, err := conn.Exec(context.Background(), "begin")
	must(t, err)
	_, err = conn.Exec(context.Background(), sql, args...)
	must(t, err)
	return func() {
		_, err := conn.Exec(context.Background(), "rollback")
		must(t, err)
	}
}

const storeLock = "select pg_advisory_xact_lock(es_lock_key())"

type pending chan error

func appendLater(s *eventstore.Store, ctx context.Context, a eventstore.Append) pending { //nolint:revive // reads as a method
	done := make(pending, 1)
	go func() {
		_, err := s.Append(ctx, a)
		done <- err
	}()
	return done
}

func (p pending) stillWaits(t *testing.T) {
	t.Helper()
	select {
	case err := <-p:
		t.Fatalf("an append that had to wait ended with: %v", err)
	default:
	}
}

// until polls for a state that nothing announces.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not reached: %s", what)
		}
	}
}

func inSideLane(s *eventstore.Store, n int) func() bool {
	return func() bool { _, side := s.Queued(); return side >= n }
}

// TestSideLane holds two rows: others go on, and each waiting append is written as soon as its own row is free.
func TestSideLane(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	ctx := t.Context()
	for _, stream := range []string{"slow-a", "slow-b"} {
		_, err := s.Append(ctx, counted(t, stream, 0))
		must(t, err)
	}
	releaseA := hold(t, db.DSN, "select from streams where stream = 'slow-a' for update")
	releaseB := hold(t, db.DSN, "select from streams where stream = 'slow-b' for update")
	slowA := appendLater(s, ctx, counted(t, "slow-a", 1))
	until(t, "the first append is in the side lane", func() bool { main, _ := s.Queued(); return main == 0 })
	slowB := appendLater(s, ctx, counted(t, "slow-b", 1))

	var others sync.WaitGroup
	for c := range 8 {
		others.Go(func() {
			for v := range int64(25) {
				if _, err := s.Append(ctx, counted(t, fmt.Sprintf("counter-%d", c), v)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Wait()
	slowA.stillWaits(t)
	slowB.stillWaits(t)
	releaseB()
	must(t, <-slowB)
	slowA.stillWaits(t)
	releaseA()
	must(t, <-slowA)
}

// TestStreamBeingCreatedElsewhere is the side lane for a row that cannot be skipped, since it is not there yet.
func TestStreamBeingCreatedElsewhere(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	release := hold(t, db.DSN, "select from es_load('{slow}')")
	slow := appendLater(s, t.Context(), counted(t, "slow", 0))
	until(t, "the append is in the side lane", inSideLane(s, 1))
	for i := range 5 {
		_, err := s.Append(t.Context(), counted(t, fmt.Sprintf("counter-%d", i), 0))
		must(t, err)
	}
	slow.stillWaits(t)
	release()
	must(t, <-slow)
}

func TestTwoRequestsOfOneStream(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	release := hold(t, db.DSN, storeLock)
	blocker := appendLater(s, t.Context(), counted(t, "blocker", 0))
	waitFor(t, db.Pool, 1)
	var all []pending
	for v := range int64(3) {
		all = append(all, appendLater(s, t.Context(), counted(t, "counter-1", v)))
		until(t, "the request is queued", func() bool { main, _ := s.Queued(); return main == int(v)+1 })
	}
	release()
	must(t, <-blocker)
	for _, p := range all {
		must(t, <-p) // in one flush the second and third would have been conflicts
	}
}

// TestRefusedDataFailsAlone puts a request that the server refuses (a NUL in a text) into a flush of good ones.
func TestRefusedDataFailsAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	release := hold(t, db.DSN, storeLock)
	blocker := appendLater(s, t.Context(), counted(t, "blocker", 0))
	waitFor(t, db.Pool, 1)
	bad := counted(t, "counter-bad", 0)
	bad.Events[0].Key = "a\x00b"
	var good []pending
	for i := range 4 {
		good = append(good, appendLater(s, t.Context(), counted(t, fmt.Sprintf("counter-%d", i), 0)))
	}
	refused := appendLater(s, t.Context(), bad)
	until(t, "all are queued", func() bool { main, _ := s.Queued(); return main == 5 })
	release()
	must(t, <-blocker)
	for _, p := range good {
		must(t, <-p)
	}
	if err := <-refused; !eventstore.Deterministic(err) {
		t.Fatalf("bad data: %v", err)
	}
}

func TestCallersWhoLeave(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	release := hold(t, db.DSN, storeLock)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := counted(t, "counter-1", 0)
	inFlight := appendLater(s, ctx, first)
	waitFor(t, db.Pool, 1)
	queued := appendLater(s, ctx, counted(t, "counter-2", 0))
	until(t, "the second is queued", func() bool { main, _ := s.Queued(); return main == 1 })
	cancel()
	if err := <-queued; !errors.Is(err, context.Canceled) || errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("a queued request: %v", err)
	}
	if main, _ := s.Queued(); main != 0 {
		t.Fatal("the withdrawn request is still queued")
	}
	if err := <-inFlight; !errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("a request in flight: %v", err)
	}
	release()
	_, err := s.Append(t.Context(), first)
	must(t, err)
	if got := one[string](t, db.Pool, "select string_agg(stream, ' ') from events"); got != "counter-1" {
		t.Fatalf("written: %s", got)
	}
}

// TestOverload: appends of 50 ms patience against a database that needs 200 ms. Nobody is told a lie, connections
// are bounded, and it recovers.
func TestOverload(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	exec(t, db.Pool, `create table slow (ms int); insert into slow values (200)`)
	exec(t, db.Pool, `create function dawdle() returns trigger language plpgsql as $$
begin perform pg_sleep((select ms from slow) / 1000.0); return null; end $$`)
	exec(t, db.Pool, `create trigger dawdle before insert on events for each statement execute function dawdle()`)
	const conns = 3
	pool, err := pg.Open(t.Context(), db.DSN, pg.PoolOptions{Name: "overloaded", MaxConns: conns})
	must(t, err)
	defer pool.Close()
	s := eventstore.New(pool, eventstore.Options{Service: "counter"})
	defer run(t, s)()

	const requests = 600
	outcomes := make([]error, requests)
	var callers sync.WaitGroup
	rate := time.NewTicker(2 * time.Millisecond)
	defer rate.Stop()
	used := 0
	for i := range requests {
		<-rate.C
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, outcomes[i] = s.Append(ctx, counted(t, fmt.Sprintf("counter-%d", i), 0))
		})
		if i%50 == 0 {
			used = max(used, one[int](t, db.Pool, "select count(*) from pg_stat_activity where application_name = 'overloaded'"))
		}
	}
	callers.Wait()
	if used > conns+2 {
		t.Errorf("%d connections, of a pool of %d", used, conns)
	}
	exec(t, db.Pool, "update slow set ms = 0")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = s.Append(ctx, counted(t, "counter-after", 0))
	must(t, err)

	var unknown, withdrawn int
	for i, outcome := range outcomes {
		version := one[int](t, db.Pool, "select count(*) from events where stream = $1", fmt.Sprintf("counter-%d", i))
		switch {
		case outcome == nil && version != 1:
			t.Errorf("request %d succeeded and wrote %d events", i, version)
		case outcome == nil:
		case errors.Is(outcome, eventstore.ErrUnknown):
			unknown++
		case errors.Is(outcome, context.DeadlineExceeded):
			withdrawn++
			if version != 0 {
				t.Errorf("request %d was withdrawn and wrote %d events", i, version)
			}
		default:
			t.Errorf("request %d: %v", i, outcome)
		}
	}
	if unknown == 0 || withdrawn == 0 {
		t.Errorf("%d unknown, %d withdrawn: the database was not overloaded", unknown, withdrawn)
	}
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter"})
	stop := run(t, s)
	release := hold(t, db.DSN, storeLock)
	var all []pending
	for i := range 10 {
		all = append(all, appendLater(s, t.Context(), counted(t, fmt.Sprintf("counter-%d", i), 0)))
	}
	waitFor(t, db.Pool, 1)
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	until(t, "new appends are refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := s.Append(ctx, counted(t, "counter-late", 0))
		return errors.Is(err, eventstore.ErrStopped)
	})
	release()
	for _, p := range all {
		must(t, <-p)
	}
	<-stopped
}

func TestStopGivesUpInTheEnd(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := eventstore.New(db.Pool, eventstore.Options{Service: "counter"})
	stop := run(t, s)
	defer hold(t, db.DSN, storeLock)()
	inFlight := appendLater(s, t.Context(), counted(t, "counter-1", 0))
	waitFor(t, db.Pool, 1)
	queued := appendLater(s, t.Context(), counted(t, "counter-1", 1))
	until(t, "the second is queued", func() bool { main, _ := s.Queued(); return main == 1 })
	stop()
	if err := <-inFlight; !errors.Is(err, eventstore.ErrUnknown) && !errors.Is(err, eventstore.ErrStopped) {
		t.Errorf("in flight: %v", err)
	}
	if err := <-queued; !errors.Is(err, eventstore.ErrStopped) {
		t.Errorf("queued: %v", err)
	}
}
