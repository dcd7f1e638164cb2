package operator

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/kafka"
)

// owner writes n events to a store and gives their records as a relay publishes them.
func (w *world) owner(n int) (*eventstore.Store, []*kgo.Record) {
	w.t.Helper()
	ctx := context.Background()
	other := newWorld(w.t)
	tx, err := other.store.Begin(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	a := eventstore.Append{Stream: "thing-1", Shape: 1, State: json.RawMessage("{}")}
	for i := range n {
		e, err := eventstore.Encode(events.Meta{ID: uuid.NewString(), Time: time.Now()}, happened{Key: string(rune('a' + i%5)), N: i})
		if err != nil {
			w.t.Fatal(err)
		}
		a.Events = append(a.Events, e)
	}
	tx.Append(a)
	if err := tx.Commit(ctx, "es_commit"); err != nil {
		w.t.Fatal(err)
	}
	var records []*kgo.Record
	last := map[int32]int64{}
	err = other.store.EventsOf(ctx, 0, []string{happened{}.EventType()}, func(e events.Recorded) error {
		p := kafka.Partition(e.Key, e.Sequence, facts.Partitions)
		e.Source, e.HasPrevious, e.Previous = facts.Source(), true, last[p]
		last[p] = e.Sequence
		records = append(records, record(facts, p, e))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return other.store, records
}

func TestAGapIsFilledFromTheOwnersStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	store, log := w.owner(100)
	lost := map[string]bool{}
	for i, r := range log {
		if r.Partition == log[40].Partition && i >= 40 && i < 70 {
			lost[idOf(r)] = true
			continue
		}
		w.publish(r)
	}
	bad := idOf(log[40])
	l := &ledger{}
	l.refuse(bad)
	o := w.operator(w.definition(l, facts), "m1")
	stopOperator := w.start(o)
	stop := w.awaitStop(o)
	gap := Gap{Operator: o.Name(), Topic: stop.Topic, Partition: stop.Partition}
	types := []string{happened{}.EventType()}

	empty := newWorld(t).store
	var not *NotInStoreError
	if _, err := fillGap(t.Context(), w.db.Pool, empty, facts, types, gap, "ana"); !errors.As(err, &not) {
		t.Fatalf("filled from a store that has nothing: %v", err)
	}
	stopOperator() // what is filled in waits for whoever owns the partition next
	n, err := fillGap(t.Context(), w.db.Pool, store, facts, types, gap, "ana")
	if err != nil || n != len(lost) {
		t.Fatalf("filled in %d events, want %d: %v", n, len(lost), err)
	}
	o = w.operator(w.definition(l, facts), "m1")
	o.timing.control = time.Hour // it looks once, before it has any partition
	stopOperator = w.start(o)
	w.awaitCheckpoints(100 - len(lost))
	if err := o.Health(); err != nil {
		t.Fatal(err)
	}
	stopOperator()
	l.refuse()
	o = w.operator(w.definition(l, facts), "m1")
	w.start(o)
	ids, err := Replay(t.Context(), w.db.Pool, Selection{Operator: o.Name()}, "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitRequests(ids)
	w.await("all effects", func() bool { return w.effects() == 100 })
	if n := w.count("select count(distinct id) from effects"); n != 100 {
		t.Errorf("effects of %d events, want 100", n)
	}
	swapped := w.count(`select count(*) from (select "offset" < lag("offset") over (partition by partition, key order by n) as back
		from effects where "offset" < 0) x where back`)
	if swapped != 0 {
		t.Errorf("%d filled events out of order", swapped)
	}
	if n := w.count("select count(*) from operator_fills"); n != 0 {
		t.Errorf("%d rows left over", n)
	}
	if n := w.count("select count(*) from operator_audit where action = 'fill-gap' and who = 'ana'"); n != 1 {
		t.Errorf("%d audit rows, want 1", n)
	}
}

// Lost history is filled too, as soon as the operator knows how much it is.
func TestLostHistoryIsFilledFromTheOwnersStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	store, log := w.owner(100)
	w.publish(log...)
	first := w.operator(w.definition(&ledger{}, facts), "m1")
	first.hooks.reached = func(point) error { return errKilled } // begins, and applies nothing
	first.hooks.dead = func() bool { return true }
	stopFirst := w.start(first)
	w.await("checkpoints", func() bool { return w.count("select count(*) from checkpoints") == 3 })
	stopFirst()
	partition := log[0].Partition
	w.deleteBefore(facts, partition, 10)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	types := []string{happened{}.EventType()}
	for _, kind := range []string{kindHistoryLost, kindMissingEvents} {
		stop := w.awaitStop(o)
		if stop.Kind != kind {
			t.Fatalf("stopped for %s, want %s", stop.Kind, kind)
		}
		gap := Gap{Operator: o.Name(), Topic: stop.Topic, Partition: stop.Partition}
		if _, err := fillGap(t.Context(), w.db.Pool, store, facts, types, gap, "ana"); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitEffects(100)
}
