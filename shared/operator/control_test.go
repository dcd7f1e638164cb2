package operator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka"
)

func TestAPausedOperatorTakesNothingAndKeepsItsClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.publishFacts(facts, 10)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	stop := w.start(o)
	w.awaitEffects(10)
	if err := Pause(t.Context(), w.db.Pool, o.Name(), "ana"); err != nil {
		t.Fatal(err)
	}
	w.await("the pause", func() bool { return value(t, o.metrics.paused) == 1 })
	w.publishFacts(facts, 10)
	w.await("the records in the queues", func() bool { return value(t, gaugeOf(o, "lag_events")) == 10 })
	if n := w.effects(); n != 10 {
		t.Errorf("a paused operator made %d effects", n-10)
	}
	if err := o.Health(); err != nil {
		t.Error("a paused operator is not healthy:", err)
	}
	stop() // the pause outlives the process
	unlock := w.lockControl()
	o = w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.await("records read", func() bool { return o.Health() == nil && value(t, gaugeOf(o, "lag_seconds")) > 0.1 })
	if n := w.effects(); n != 10 {
		t.Errorf("an operator that cannot know whether it is paused made %d effects", n-10)
	}
	unlock()
	all, err := List(t.Context(), w.db.Pool)
	if err != nil || len(all) != 1 || !all[0].Paused || len(all[0].Partitions) != 3 {
		t.Errorf("listed %+v, %v", all, err)
	}
	client, err := kafka.NewClient(w.kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	lags, err := Lags(client, all[0])
	total := int64(0)
	for _, l := range lags {
		total += l.Records
	}
	if err != nil || total != 10 {
		t.Errorf("lag %d, want 10 (%v)", total, err)
	}
	if err := Resume(t.Context(), w.db.Pool, o.Name(), "bia"); err != nil {
		t.Fatal(err)
	}
	w.awaitEffects(20)
	if n := w.count("select count(*) from operator_audit where (action, who) in (('pause', 'ana'), ('resume', 'bia'))"); n != 2 {
		t.Errorf("%d audit rows, want 2", n)
	}
	var missing *NotFoundError
	if err := Pause(t.Context(), w.db.Pool, "tests.misspelt", "ana"); !errors.As(err, &missing) {
		t.Errorf("an unknown operator was paused: %v", err)
	}
}

// lockControl keeps everybody from reading who is paused.
func (w *world) lockControl() (unlock func()) {
	w.t.Helper()
	tx, err := w.db.Pool.Begin(context.Background())
	if err == nil {
		_, err = tx.Exec(context.Background(), "lock operator_control in access exclusive mode")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestFaultCancelledHandler(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Name: "A handler that is cancelled",
		Does: "a stop comes in the middle of a batch and the handler answers with context.Canceled, as if it were the event's fault, " +
			"or it does so for reasons of its own: nothing is parked, every event takes effect once",
	})
	w := newWorld(t, facts)
	published := 0
	for range 5 {
		published += len(w.publishFacts(facts, 30))
		busy := newGate()
		l := &ledger{before: func(ctx context.Context, _ *eventstore.Tx, _ []Record) error {
			busy.once.Do(func() { close(busy.came) })
			<-ctx.Done() // a handler that works until it is cancelled
			return fmt.Errorf("given up: %w", Reject(ctx.Err()))
		}}
		o := w.operator(w.definition(l, facts), "m1")
		o.timing.giveUp = 100 * time.Millisecond
		stop := w.start(o)
		w.awaitSignal("a busy handler", busy.came)
		stop()
	}
	if n := w.count("select count(*) from parked") + w.effects(); n != 0 {
		t.Fatalf("%d records parked or applied by stops", n)
	}
	tries := 0
	l := &ledger{before: func(context.Context, *eventstore.Tx, []Record) error {
		tries++
		return []error{Reject(context.Canceled), Reject(fmt.Errorf("too slow: %w", context.DeadlineExceeded)), nil}[min(tries, 3)-1]
	}}
	def := w.definition(l, facts)
	def.MaxBatch = 1 // such an error leads to the event at once
	w.start(w.operator(def, "m1"))
	w.await("all effects or parked events", func() bool { return w.effects()+w.count("select count(*) from parked") >= published })
	w.exactlyOnce(published)
}

func TestAnAddedPartitionIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	strangers := events.Topic{Name: "clicks", Partitions: 1}
	w := newWorld(t, strangers)
	def := w.definition(&ledger{}, strangers)
	def.Start = Now
	stop := w.start(w.operator(def, "m1"))
	w.await("the first checkpoint", func() bool { return w.count("select count(*) from checkpoints") == 1 })
	stop()
	if _, err := w.admin().CreatePartitions(t.Context(), 1, strangers.Name); err != nil {
		t.Fatal(err)
	}
	w.connect()
	stranger := with(w.fact(strangers, 1, "k"), events.HeaderSource, "/somebody/else")
	w.publish(stranger, stranger) // no chain, no deduplication: two clicks
	w.start(w.operator(def, "m1"))
	w.await("effects", func() bool { return w.effects() == 2 })
}

func TestTombstonesReachThoseWhoAskForThem(t *testing.T) {
	t.Parallel()
	things := events.Topic{Name: "things", Owner: "facts", Partitions: 1, Compacted: true}
	w := newWorld(t, things)
	w.publish(w.fact(things, 0, "k"), &kgo.Record{Topic: things.Name, Key: []byte("k")}, w.fact(things, 0, "k"))
	def := w.definition(&ledger{}, things)
	def.Types = []string{happened{}.EventType(), Tombstone}
	w.start(w.operator(def, "m1"))
	w.await("effects", func() bool { return w.effects() == 3 })
	if n := w.count(`select count(*) from effects where key = 'k' and id = '' and "offset" = 1`); n != 1 {
		t.Error("the tombstone was not handed on with its key")
	}
}
