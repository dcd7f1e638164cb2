package decider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The points account of a customer: earns once per order, takes back what is asked for.
type (
	account struct {
		Points int64            `json:"points"`
		Orders map[string]int64 `json:"orders"`
	}
	earn    struct{ Customer, Order, Detail string }
	reverse struct {
		Customer, Order string
		Points          int64
	}
	shortError struct{ Have, Want int64 }
)

func (e *shortError) Error() string { return fmt.Sprintf("have %d points, not %d", e.Have, e.Want) }

func decide(a account, cmd any) ([]events.Event, error) {
	switch c := cmd.(type) {
	case earn:
		if _, known := a.Orders[c.Order]; known {
			return nil, nil
		}
		return events.List(events.PointsEarned{Customer: c.Customer, Order: c.Order + c.Detail, Points: 10}), nil
	case reverse:
		if a.Points < c.Points {
			return nil, &shortError{a.Points, c.Points}
		}
		return events.List(events.PointsReversed{Customer: c.Customer, Order: c.Order, Points: c.Points}), nil
	}
	return nil, decider.Unknown(cmd)
}

func evolve(a account, e events.Event) account {
	a.Orders = maps.Clone(a.Orders)
	if a.Orders == nil {
		a.Orders = map[string]int64{}
	}
	switch e := e.(type) {
	case events.PointsEarned:
		a.Points += e.Points
		a.Orders[e.Order] = e.Points
	case events.PointsReversed:
		a.Points -= e.Points
	}
	return a
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var rules = decider.Decider[account]{Decide: decide, Evolve: evolve, Shape: 1, Clock: func() time.Time { return noon.Add(time.Nanosecond) }}

// open gives a running store on a database of its own.
func open(t *testing.T) *eventstore.Store {
	t.Helper()
	db := pgtest.New(t, eventstore.Migrations())
	store := eventstore.New(db.Pool, eventstore.Options{Service: "loyalty", Registry: events.NewRegistry()})
	run(t, store)
	return store
}

// run runs a store until the test ends.
func run(t *testing.T, store *eventstore.Store) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("store: %v", err)
		}
	})
}

// history reads a stream back.
func history(t *testing.T, store *eventstore.Store, stream string) []events.Recorded {
	t.Helper()
	h, err := store.History(t.Context(), stream, eventstore.Until{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// plain says events in short.
func plain(h []events.Recorded) string {
	var all []string
	for _, r := range h {
		switch e := r.Event.(type) {
		case events.PointsEarned:
			all = append(all, "earned "+e.Order)
		case events.PointsReversed:
			all = append(all, fmt.Sprintf("reversed %d", e.Points))
		default:
			all = append(all, r.Type)
		}
	}
	return strings.Join(all, ", ")
}

// kept is the state that the store keeps.
func kept(t *testing.T, store *eventstore.Store, stream string) (eventstore.Stream, account) {
	t.Helper()
	s, err := store.Load(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	var a account
	if s.Version > 0 {
		if err := json.Unmarshal(s.State, &a); err != nil {
			t.Fatal(err)
		}
	}
	return s, a
}
