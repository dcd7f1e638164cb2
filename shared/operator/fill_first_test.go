package operator

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// heard signals each time a message is logged.
type heard struct {
	slog.Handler
	message string
	times   chan struct{}
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }

func (h heard) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		select {
		case h.times <- struct{}{}:
		default:
		}
	}
	return nil
}

// A fill that cannot be read for a moment must not let the operator run into the hole that it is to fill.
func TestAFillComesBeforeTheRecordsBehindTheHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	store, log := w.owner(100)
	lost := 0
	for i, r := range log {
		if r.Partition == log[40].Partition && i >= 40 && i < 70 {
			lost++
			continue
		}
		w.publish(r)
	}
	l := &ledger{}
	first := w.operator(w.definition(l, facts), "m1")
	stopFirst := w.start(first)
	stop := w.awaitStop(first)
	stopFirst()
	gap := Gap{Operator: first.Name(), Topic: stop.Topic, Partition: stop.Partition}
	if n, err := w.fillGap(store, gap); err != nil || n != lost {
		t.Fatalf("filled in %d events, want %d: %v", n, lost, err)
	}
	if _, err := w.db.Pool.Exec(t.Context(), "alter table operator_fills rename to away"); err != nil {
		t.Fatal(err)
	}
	tries := make(chan struct{}, 1)
	o := w.operator(w.definition(l, facts), "m1")
	o.log = slog.New(heard{slog.DiscardHandler, "events to fill in could not be read", tries})
	w.start(o)
	w.await("the records behind the hole", func() bool {
		o.mu.Lock()
		r := o.current
		o.mu.Unlock()
		if r == nil {
			return false
		}
		c := r.claims.get(place{stop.Topic, stop.Partition})
		if c == nil {
			return false
		}
		_, waiting := c.queue.head()
		return waiting
	})
	for range 3 { // it holds, and looks again
		select {
		case <-tries:
		case <-time.After(patience):
			t.Fatalf("the fill was not tried again; health: %v", o.Health())
		}
	}
	if n := w.count("select count(*) from operator_stops"); n != 0 {
		t.Fatal("the operator stopped at the hole that was about to be filled")
	}
	if _, err := w.db.Pool.Exec(t.Context(), "alter table away rename to operator_fills"); err != nil {
		t.Fatal(err)
	}
	w.awaitEffects2(100)
}
