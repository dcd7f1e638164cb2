package decider_test

import (
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

// withJobs gives rules that answer every earning with a letter, and a store whose database has River's tables.
func withJobs(t *testing.T) (*eventstore.Store, decider.Decider[account]) {
	t.Helper()
	store := open(t)
	migrator, err := rivermigrate.New(riverpgxv5.New(store.Pool()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	d := rules
	d.Jobs = func(stream string, e events.Event) []eventstore.Job {
		if earned, ok := e.(events.PointsEarned); ok {
			return []eventstore.Job{{Kind: "letter", Args: []byte(`{"stream":"` + stream + `","order":"` + earned.Order + `"}`)}}
		}
		return nil
	}
	return store, d
}

// letters says for which orders there are jobs in a state.
func letters(t *testing.T, store *eventstore.Store, state string) string {
	t.Helper()
	var orders string
	err := store.Pool().QueryRow(t.Context(),
		"select coalesce(string_agg(args->>'stream' || '/' || (args->>'order'), ' ' order by id), '') from river_job where state = $1 and kind = 'letter'",
		state).Scan(&orders)
	if err != nil {
		t.Fatal(err)
	}
	return orders
}

func TestJobsAreWrittenWithTheirEvents(t *testing.T) {
	t.Parallel()
	store, d := withJobs(t)
	if _, err := decider.Handle(t.Context(), store, d, stream, earn{"ana", "o1", ""}, events.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, err := decider.Handle(t.Context(), store, d, stream, earn{"ana", "o1", ""}, events.Meta{}); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, store, d, batchOf(captured("ana", "o2"), captured("ana", "o2"), refunded("ana", "o2", 1), captured("bia", "o3"))); err != nil {
		t.Fatal(err)
	}
	if got := letters(t, store, "available"); got != "loyalty-ana/o1 loyalty-ana/o2 loyalty-bia/o3" {
		t.Errorf("got jobs for %q; want one per event", got)
	}
	if err := apply(t, store, d, batchOf(captured("ana", "o4"), refunded("ana", "o4", 999))); err == nil {
		t.Error("want the batch refused")
	}
	if got := letters(t, store, "available"); got != "loyalty-ana/o1 loyalty-ana/o2 loyalty-bia/o3" {
		t.Errorf("got jobs for %q after a refused batch", got)
	}
}

// working starts the only job there is, as River does.
func working(t *testing.T, store *eventstore.Store) eventstore.Attempt {
	t.Helper()
	var a eventstore.Attempt
	err := store.Pool().QueryRow(t.Context(),
		"update river_job set state = 'running', attempt = 1, attempted_at = now() where state = 'available' returning id, attempted_at",
	).Scan(&a.JobID, &a.AttemptedAt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnOutcomeCompletesItsAttempt(t *testing.T) {
	t.Parallel()
	store, d := withJobs(t)
	if _, err := decider.Handle(t.Context(), store, d, stream, earn{"ana", "o1", ""}, events.Meta{}); err != nil {
		t.Fatal(err)
	}
	attempt := working(t, store)
	stale := attempt
	stale.AttemptedAt = stale.AttemptedAt.Add(-time.Second)
	_, err := decider.Handle(t.Context(), store, d, stream, earn{"ana", "o2", ""}, events.Meta{}, decider.Completing(stale))
	if !errors.Is(err, eventstore.ErrAttemptLost) {
		t.Errorf("an attempt that is not the running one: got %v, want ErrAttemptLost", err)
	}
	got, err := decider.Handle(t.Context(), store, d, stream, reverse{"ana", "o1", 4}, events.Meta{}, decider.Completing(attempt))
	if err != nil || got.Version != 2 || letters(t, store, "completed") != "loyalty-ana/o1" {
		t.Errorf("got %+v, %v, completed %q; want the event and the completion", got, err, letters(t, store, "completed"))
	}
	_, err = decider.Handle(t.Context(), store, d, stream, earn{"ana", "o3", ""}, events.Meta{}, decider.Completing(attempt))
	if !errors.Is(err, eventstore.ErrAttemptLost) {
		t.Errorf("a zombie: got %v, want ErrAttemptLost", err)
	}
	if s, a := kept(t, store, stream); s.Version != 2 || a.Points != 6 {
		t.Errorf("kept %+v, %+v; want only the outcome", s, a)
	}
}

func TestAnOutcomeThatChangesNothingCompletesToo(t *testing.T) {
	t.Parallel()
	store, d := withJobs(t)
	if _, err := decider.Handle(t.Context(), store, d, stream, earn{"ana", "o1", ""}, events.Meta{}); err != nil {
		t.Fatal(err)
	}
	got, err := decider.Handle(t.Context(), store, d, stream, earn{"ana", "o1", ""}, events.Meta{}, decider.Completing(working(t, store)))
	if err != nil || got.Version != 1 || got.State.Points != 10 || letters(t, store, "completed") != "loyalty-ana/o1" {
		t.Errorf("got %+v, %v, completed %q", got, err, letters(t, store, "completed"))
	}
	if s, a := kept(t, store, stream); s.Version != 1 || a.Points != 10 {
		t.Errorf("kept %+v, %+v; want it as it was", s, a)
	}
}
