package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func withRiver(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t, eventstore.Migrations())
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool), nil)
	must(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	must(t, err)
	return db
}

// attempt makes a job running, as River does when it hands it to a worker.
func attempt(t *testing.T, pool *pgxpool.Pool, job int64) *eventstore.Attempt {
	t.Helper()
	at := one[time.Time](t, pool, `update river_job set state = 'running', attempt = attempt + 1, attempted_at = clock_timestamp()
 where id = $1 returning attempted_at`, job)
	return &eventstore.Attempt{JobID: job, AttemptedAt: at}
}

// withJob appends an event with a job and returns the job's id.
func withJob(t *testing.T, s *eventstore.Store, stream string) int64 {
	t.Helper()
	a := counted(t, stream, 0)
	a.Jobs = []eventstore.Job{{Kind: "charge", Args: fmt.Appendf(nil, `{"stream":%q}`, stream)}}
	_, err := s.Append(t.Context(), a)
	must(t, err)
	return one[int64](t, s.Pool(), "select id from river_job where args ->> 'stream' = $1", stream)
}

func jobState(t *testing.T, pool *pgxpool.Pool, job int64) string {
	t.Helper()
	return one[string](t, pool, "select state::text from river_job where id = $1 and (finalized_at is not null) = (state = 'completed')", job)
}

func TestJobsAreInserted(t *testing.T) {
	t.Parallel()
	db := withRiver(t)
	s := start(t, db.Pool)
	listener := patient(t, db.DSN)
	_, err := listener.Exec(t.Context(), `listen "public.river_insert"`)
	must(t, err)

	a := counted(t, "counter-1", 0)
	later := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	a.Jobs = []eventstore.Job{
		{Kind: "charge", Args: []byte(`{"n":1}`)},
		{Kind: "mail", Args: []byte(`{"n":2}`), Queue: "mail", MaxAttempts: 7, ScheduledAt: later},
	}
	_, err = s.Append(t.Context(), a)
	must(t, err)
	_, err = s.Append(t.Context(), a) // repeated: nothing twice
	must(t, err)
	got := one[string](t, db.Pool, `select string_agg(concat_ws(' ', kind, args, queue, max_attempts, state, tags, metadata, attempt, priority), '; ' order by id) from river_job`)
	want := `charge {"n": 1} default 25 available {} {} 0 1; mail {"n": 2} mail 7 scheduled {} {} 0 1`
	if got != want {
		t.Fatalf("jobs: %s", got)
	}
	if at := one[time.Time](t, db.Pool, "select scheduled_at from river_job where kind = 'mail'"); !at.Equal(later) {
		t.Fatalf("scheduled at %s, want %s", at, later)
	}
	told := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(told) < 2 {
		n, err := listener.WaitForNotification(ctx)
		must(t, err)
		told[n.Payload] = true
	}
	if !told[`{"queue":"default"}`] || !told[`{"queue":"mail"}`] {
		t.Fatalf("River was told %v", told)
	}
}

func TestOutcomeCompletesItsJob(t *testing.T) {
	t.Parallel()
	db := withRiver(t)
	s := start(t, db.Pool)
	job := withJob(t, s, "counter-1")
	outcome := counted(t, "counter-1", 1)
	outcome.Attempt = attempt(t, db.Pool, job)
	outcome.Jobs = []eventstore.Job{{Kind: "next", Args: []byte(`{}`)}}
	for range 2 { // the second time as after an unknown outcome
		r, err := s.Append(t.Context(), outcome)
		must(t, err)
		if r.Version != 2 {
			t.Fatalf("version %d", r.Version)
		}
	}
	if state := jobState(t, db.Pool, job); state != "completed" {
		t.Fatalf("the job is %s", state)
	}
	if n := one[int](t, db.Pool, "select count(*) from river_job where kind = 'next'"); n != 1 {
		t.Fatalf("%d next jobs", n)
	}

	job = withJob(t, s, "counter-2")
	nothing := eventstore.Append{Stream: "counter-2", Expected: 1, Attempt: attempt(t, db.Pool, job)}
	for range 2 {
		_, err := s.Append(t.Context(), nothing)
		must(t, err)
	}
	if state := jobState(t, db.Pool, job); state != "completed" {
		t.Fatalf("the job without events is %s", state)
	}
	if state := one[string](t, db.Pool, "select state::text from streams where stream = 'counter-2'"); state != `{"n":1}` {
		t.Fatalf("an append without events changed the state to %s", state)
	}
}

// TestZombieIsRefused: whatever became of the attempt, its late outcome writes nothing, and others in the same
// transaction are not hurt.
func TestZombieIsRefused(t *testing.T) {
	t.Parallel()
	db := withRiver(t)
	s := start(t, db.Pool)
	for name, meanwhile := range map[string]string{
		"retried":   "update river_job set attempted_at = clock_timestamp(), attempt = 2 where id = $1",
		"rescued":   "update river_job set state = 'retryable' where id = $1",
		"cancelled": "update river_job set state = 'cancelled', finalized_at = now() where id = $1",
		"gone":      "delete from river_job where id = $1",
	} {
		stream := "counter-" + name
		job := withJob(t, s, stream)
		zombie := counted(t, stream, 1)
		zombie.Attempt = attempt(t, db.Pool, job)
		zombie.Jobs = []eventstore.Job{{Kind: "never", Args: []byte(`{}`)}}
		exec(t, db.Pool, meanwhile, job)
		if _, err := s.Append(t.Context(), zombie); !errors.Is(err, eventstore.ErrAttemptLost) {
			t.Errorf("%s: %v", name, err)
		}
		err := s.Within(t.Context(), func(_ context.Context, tx *eventstore.Tx) error {
			tx.Append(zombie)
			return nil
		})
		if !errors.Is(err, eventstore.ErrAttemptLost) {
			t.Errorf("%s, within: %v", name, err)
		}
		nothing := eventstore.Append{Stream: stream, Expected: 1, Attempt: zombie.Attempt}
		if _, err := s.Append(t.Context(), nothing); !errors.Is(err, eventstore.ErrAttemptLost) {
			t.Errorf("%s, without events: %v", name, err)
		}
		if loaded, err := s.Load(t.Context(), stream); err != nil || loaded.Version != 1 {
			t.Errorf("%s: version %d, %v", name, loaded.Version, err)
		}
	}
	if n := one[int](t, db.Pool, "select count(*) from river_job where kind = 'never' or state = 'completed'"); n != 0 {
		t.Errorf("zombies inserted or completed %d jobs", n)
	}
}

func TestJobHeldBySomebodyElse(t *testing.T) {
	t.Parallel()
	db := withRiver(t)
	s := start(t, db.Pool)
	job := withJob(t, s, "slow")
	outcome := counted(t, "slow", 1)
	outcome.Attempt = attempt(t, db.Pool, job)
	release := hold(t, db.DSN, "select from river_job where id = $1 for update", job)
	slow := appendLater(s, t.Context(), outcome)
	for v := range int64(5) {
		_, err := s.Append(t.Context(), counted(t, "counter", v))
		must(t, err)
	}
	slow.stillWaits(t)
	release()
	must(t, <-slow)
}

func TestWithoutRiver(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, eventstore.Migrations())
	s := start(t, db.Pool)
	a := counted(t, "counter-1", 0)
	_, err := s.Append(t.Context(), a)
	must(t, err)
	if n := one[int](t, db.Pool, "select count(*) from pg_tables where tablename = 'river_job'"); n != 0 {
		t.Fatal("this test is about databases without River")
	}
}
