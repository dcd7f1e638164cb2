package decider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
)

const stream = "loyalty-ana"

func TestHandleGivesTheOutcome(t *testing.T) {
	t.Parallel()
	store := open(t)
	first, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o1", ""},
		events.Meta{Correlation: "story", Causation: "request", Traceparent: "trace", Actor: "ana"})
	if err != nil || first.Version != 1 || first.State.Points != 10 || len(first.Events) != 1 {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o1", ""}, events.Meta{})
	if err != nil || again.Version != 1 || again.State.Points != 10 || again.Events != nil {
		t.Fatalf("repeated: got %+v, %v", again, err)
	}
	got := history(t, store, stream)[0].Meta
	got.ID = ""
	if want := (events.Meta{Time: noon, Correlation: "story", Causation: "request", Traceparent: "trace", Actor: "ana"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAStoryWithoutCorrelationBeginsHere(t *testing.T) {
	t.Parallel()
	store := open(t)
	for _, c := range []struct{ order, causation string }{{"o1", "request"}, {"o2", ""}} {
		if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", c.order, ""}, events.Meta{Causation: c.causation}); err != nil {
			t.Fatal(err)
		}
	}
	h := history(t, store, stream)
	if h[0].Correlation != "request" || h[1].Correlation != h[1].ID {
		t.Errorf("got %q and %q; want the causation, then the event itself", h[0].Correlation, h[1].Correlation)
	}
}

func TestHandleReturnsTheDecidersError(t *testing.T) {
	t.Parallel()
	store := open(t)
	if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o1", ""}, events.Meta{}); err != nil {
		t.Fatal(err)
	}
	now, err := decider.Handle(t.Context(), store, rules, stream, reverse{"ana", "o1", 11}, events.Meta{})
	var short *shortError
	if !errors.As(err, &short) || short.Have != 10 || now.Version != 1 || now.State.Points != 10 {
		t.Errorf("got %+v, %v; want the decider's error and the state that led to it", now, err)
	}
	_, err = decider.Handle(t.Context(), store, rules, stream, 42, events.Meta{})
	var unknown *decider.UnknownCommandError
	if !errors.As(err, &unknown) || unknown.Command != "int" {
		t.Errorf("got %v, want UnknownCommandError", err)
	}
	_, err = decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o2", strings.Repeat("x", eventstore.MaxEventBytes)}, events.Meta{})
	var large *eventstore.TooLargeError
	if !errors.As(err, &large) {
		t.Errorf("got %v, want TooLargeError", err)
	}
}

func TestConcurrentCommandsAllCount(t *testing.T) {
	t.Parallel()
	store := open(t)
	const callers, each = 8, 5
	var group errgroup.Group
	for c := range callers {
		group.Go(func() error {
			for i := range each {
				order := fmt.Sprintf("o%d-%d", c, i)
				if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", order, ""}, events.Meta{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s, a := kept(t, store, stream)
	if s.Version != callers*each || a.Points != 10*callers*each || len(history(t, store, stream)) != callers*each {
		t.Errorf("version %d, %d points; want every command once", s.Version, a.Points)
	}
}

// racing decides like rules, but another writer is always faster the first time.
func racing(t *testing.T, store *eventstore.Store) decider.Decider[account] {
	t.Helper()
	raced := false
	d := rules
	d.Decide = func(a account, cmd any) ([]events.Event, error) {
		if !raced {
			raced = true
			if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "other", ""}, events.Meta{}); err != nil {
				t.Error(err)
			}
		}
		return decide(a, cmd)
	}
	return d
}

func TestAConflictIsDecidedAgain(t *testing.T) {
	t.Parallel()
	store := open(t)
	got, err := decider.Handle(t.Context(), store, racing(t, store), stream, earn{"ana", "mine", ""}, events.Meta{})
	if err != nil || got.Version != 2 || got.State.Points != 20 {
		t.Errorf("got %+v, %v; want both", got, err)
	}
}

func TestIfVersionIsNotDecidedAgain(t *testing.T) {
	t.Parallel()
	store := open(t)
	if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o1", ""}, events.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o2", ""}, events.Meta{}, decider.IfVersion(1)); err != nil {
		t.Fatalf("the right version: %v", err)
	}
	var conflict *eventstore.ConflictError
	_, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", "o3", ""}, events.Meta{}, decider.IfVersion(1))
	if !errors.As(err, &conflict) || conflict.Expected != 1 || conflict.Actual != 2 {
		t.Errorf("a stale version: got %v, want ConflictError", err)
	}
	_, err = decider.Handle(t.Context(), store, racing(t, store), stream, earn{"ana", "o3", ""}, events.Meta{}, decider.IfVersion(2))
	if !errors.As(err, &conflict) || conflict.Expected != 2 || conflict.Actual != 3 {
		t.Errorf("overtaken: got %v, want ConflictError", err)
	}
}

func TestHandleEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := decider.Handle(ctx, store, rules, stream, earn{"ana", "o1", ""}, events.Meta{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLoadAndAt(t *testing.T) {
	t.Parallel()
	store := open(t)
	none, err := decider.Load(t.Context(), store, rules, stream)
	if err != nil || none.Version != 0 || none.State.Points != 0 {
		t.Fatalf("got %+v, %v; want the initial state at version 0", none, err)
	}
	for _, order := range []string{"o1", "o2", "o3"} {
		if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", order, ""}, events.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
	now, err := decider.Load(t.Context(), store, rules, stream)
	if err != nil || now.Version != 3 || now.State.Points != 30 {
		t.Errorf("got %+v, %v", now, err)
	}
	older := rules
	older.Shape = 7
	if now, err = decider.Load(t.Context(), store, older, stream); err != nil || now.Version != 3 || now.State.Points != 30 {
		t.Errorf("another shape: got %+v, %v", now, err)
	}
	for _, c := range []struct {
		until eventstore.Until
		want  int64
	}{{eventstore.Until{}, 3}, {eventstore.Until{Version: 2}, 2}, {eventstore.Until{Version: 9}, 3},
		{eventstore.Until{Time: history(t, store, stream)[0].RecordedAt}, 1}, {eventstore.Until{Time: noon.Add(-time.Hour * 24 * 9999)}, 0}} {
		then, err := decider.At(t.Context(), store, rules, stream, c.until)
		if err != nil || then.Version != c.want || then.State.Points != 10*c.want {
			t.Errorf("%+v: got %+v, %v; want version %d", c.until, then, err, c.want)
		}
	}
}

// Without a lock a stream may grow between its state and its history; what comes later does not belong to it.
func TestLoadIsConsistentWhileOthersWrite(t *testing.T) {
	t.Parallel()
	store := open(t)
	older := rules
	older.Shape = 7
	var group errgroup.Group
	written := make(chan struct{})
	group.Go(func() error {
		defer close(written)
		for i := range 100 {
			if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", fmt.Sprint(i), ""}, events.Meta{}); err != nil {
				return err
			}
		}
		return nil
	})
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		got, err := decider.Load(t.Context(), store, older, stream)
		if err != nil || got.State.Points != 10*got.Version {
			t.Errorf("got %+v, %v", got, err)
			break
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestADamagedHistoryIsNamed(t *testing.T) {
	t.Parallel()
	store := open(t)
	for _, order := range []string{"o1", "o2"} {
		if _, err := decider.Handle(t.Context(), store, rules, stream, earn{"ana", order, ""}, events.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
	older := rules
	older.Shape = 7
	if _, err := store.Pool().Exec(t.Context(), "update events set type = 'shop.feira.points.earned.v9' where version = 2"); err != nil {
		t.Fatal(err)
	}
	_, err := decider.Load(t.Context(), store, older, stream)
	var unknown *decider.UnknownHistoryError
	if !errors.As(err, &unknown) || unknown.Version != 2 {
		t.Errorf("got %v, want UnknownHistoryError", err)
	}
	if _, err = decider.At(t.Context(), store, rules, stream, eventstore.Until{}); !errors.As(err, &unknown) {
		t.Errorf("got %v, want UnknownHistoryError", err)
	}
	if _, err := store.Pool().Exec(t.Context(), "delete from events where version = 2"); err != nil {
		t.Fatal(err)
	}
	_, err = decider.Load(t.Context(), store, older, stream)
	var broken *decider.BrokenHistoryError
	if !errors.As(err, &broken) || broken.Version != 2 || broken.Events != 1 {
		t.Errorf("got %v, want BrokenHistoryError", err)
	}
}
