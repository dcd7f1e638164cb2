package operator

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
)

// A frozen owner that wakes after its successor's commit meets the successor's rows first. It must not take them
// for a deterministic error of its own and park.
func TestFaultWakingOwner(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 5, Name: "Zombie owner, after its successor's commit",
		Does: "an owner wakes and meets its successor's rows as a unique violation first: it parks nothing",
	})
	w := newWorld(t, facts)
	if _, err := w.db.Pool.Exec(t.Context(), "create unique index on effects (id)"); err != nil {
		t.Fatal(err)
	}
	w.publishOn(0, 20)
	freeze := newGate()
	first := w.operator(w.definition(&ledger{}, facts), "m1")
	first.hooks.reached = freeze.before(beforeBegin)
	w.start(first)
	t.Cleanup(freeze.release)
	w.awaitSignal("a batch before its beginning", freeze.came)
	w.start(w.operator(w.definition(&ledger{}, facts), "a-first-by-name"))
	w.awaitEffects(20)
	freeze.release()
	w.await("the refused commit", func() bool { return value(t, first.metrics.fenced) > 0 })
	w.exactlyOnce(20)
	if n := w.count("select count(*) from parked"); n != 0 {
		t.Errorf("%d records parked by the owner that woke", n)
	}
}

// The server ends a transaction that does nothing for too long; smaller ones may fit.
func TestFaultSlowBatch(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 7, Name: "A batch that takes too long",
		Does: "the server ends the transaction of a batch that is idle for too long: the batch is halved until it fits, and nothing is parked",
	})
	w := newWorld(t, facts)
	w.publishOn(0, 40)
	var slow atomic.Int64
	l := &ledger{before: func(ctx context.Context, tx *eventstore.Tx, b []Record) error {
		if len(b) <= 10 {
			return nil
		}
		slow.Add(1)
		if err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = '20ms'"); err != nil {
			return err
		}
		<-time.After(200 * time.Millisecond)
		return nil
	}}
	o := w.operator(w.definition(l, facts), "m1")
	w.start(o)
	w.awaitEffects(40)
	if slow.Load() == 0 {
		t.Error("no batch was too long: the test proves nothing")
	}
	if n := w.count("select count(*) from parked"); n != 0 {
		t.Errorf("%d records parked", n)
	}
}
