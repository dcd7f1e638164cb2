package operator

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
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
	<-freeze.came
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
func TestABatchThatTakesTooLongIsHalved(t *testing.T) {
	t.Parallel()
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

func TestABrokerThatComesBackIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker.Close()
	dir := t.TempDir()
	open := func(listen string) *kafka.Embedded {
		e, err := kafka.StartEmbedded(t.Context(), kafka.EmbeddedOptions{Listen: listen, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	w.broker = open("")
	if err := kafka.EnsureTopics(t.Context(), w.broker.Config("tests"), []events.Topic{facts}, kafka.EnsureOptions{}); err != nil {
		t.Fatal(err)
	}
	w.connect()
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	stop := w.start(o)
	w.publishFacts(facts, 10)
	w.awaitEffects(10)
	address := w.broker.Brokers()[0]
	w.broker.Close()
	o.mu.Lock()
	r := o.current
	o.mu.Unlock()
	w.await("the outage", func() bool { _, err := r.topicID(facts.Name); return err != nil })
	w.broker = open(address)
	w.publishFacts(facts, 10)
	w.awaitEffects(20)
	w.broker.Close() // and a stop without a broker
	begun := time.Now()
	stop()
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

func TestADatabaseThatComesBackIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	cut, dsn := newCutter(t, w.db.DSN, unseen)
	pool, err := pg.Open(t.Context(), dsn, pg.PoolOptions{Name: "outage", MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.store = eventstore.New(pool, eventstore.Options{Service: "tests", Registry: w.store.Registry()})
	o := w.operator(w.definition(&remembering{}, facts), "m1")
	w.start(o)
	w.publishFacts(facts, 10)
	w.awaitEffects(10)
	cut.down.Store(true)
	w.publishFacts(facts, 10)
	w.await("a failed batch", func() bool { return cut.refused.Load() > 5 })
	w.exactlyOnce(10)
	cut.down.Store(false)
	w.awaitEffects(20)
	if n := w.count("select count(*) from parked"); n != 0 {
		t.Errorf("%d records parked by an outage", n)
	}
}

// Members that come and go leave nothing out and do nothing twice.
func TestRebalancesKeepEffectsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	def := w.definition(&ledger{}, facts)
	def.MaxBatch = 25
	w.start(w.operator(def, "m1"))
	published := 0
	for range 3 {
		published += len(w.publishFacts(facts, 180))
		second := w.operator(def, "m2")
		stop := w.start(second)
		w.await("the second member", func() bool { return second.Health() == nil })
		published += len(w.publishFacts(facts, 180))
		stop()
	}
	w.awaitEffects(published)
	w.stateFollowsCheckpoints()
}
