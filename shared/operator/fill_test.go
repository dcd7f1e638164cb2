package operator

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
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

	empty := newWorld(t).store
	var not *NotInStoreError
	if _, err := w.fillGap(empty, gap); !errors.As(err, &not) {
		t.Fatalf("filled from a store that has nothing: %v", err)
	}
	stopOperator() // what is filled in waits for whoever owns the partition next
	n, err := w.fillGap(store, gap)
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
	w.await("no rows left over", func() bool { return w.count("select count(*) from operator_fills") == 0 })
	if n := w.count("select count(*) from operator_audit where action = 'fill-gap' and who = 'ana'"); n != 1 {
		t.Errorf("%d audit rows, want 1", n)
	}
}

// plan reads what would fill the holes that g names.
func (w *world) plan(store *eventstore.Store, g Gap) ([]Fill, error) {
	w.t.Helper()
	client, err := kafka.NewClient(w.broker.Config("ana"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	holes, err := Holes(context.Background(), w.db.Pool, client, facts, g)
	if err != nil {
		return nil, err
	}
	var plans []Fill
	for _, h := range holes {
		f, err := PlanFill(context.Background(), Owner{Topic: facts, Store: store, types: []string{happened{}.EventType()}}, h, nil)
		if err != nil {
			return nil, err
		}
		plans = append(plans, f)
	}
	return plans, nil
}

// fillGap fills them in, and says how many events that takes.
func (w *world) fillGap(store *eventstore.Store, g Gap) (events int, err error) {
	w.t.Helper()
	plans, err := w.plan(store, g)
	for i := range plans {
		if err := FillGap(context.Background(), w.db.Pool, &plans[i], "ana"); err != nil {
			return events, err
		}
		events += plans[i].Events
	}
	return events, err
}

// lostHistory is a world whose log has forgotten the first ten records of each partition, of which only some were
// applied; left says whether it has others. The operator has stopped for the first of them.
func lostHistory(t *testing.T, left bool) (*world, *eventstore.Store, *Operator) {
	t.Helper()
	w := newWorld(t, facts)
	store, log := w.owner(100)
	var first, second []*kgo.Record
	for i, r := range log {
		if i < 12 {
			first = append(first, r)
		} else {
			second = append(second, r)
		}
	}
	w.publish(first...)
	stop := w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(len(first))
	w.awaitCheckpoints(len(first))
	stop()
	w.publish(second...)
	of := map[int32]int64{}
	for _, r := range log {
		of[r.Partition]++
	}
	for p, n := range of {
		if left {
			n /= 2
		}
		w.deleteBefore(facts, p, n)
	}
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	if s := w.awaitStop(o); s.Kind != kindHistoryLost {
		t.Fatalf("stopped for %s", s.Kind)
	}
	return w, store, o
}

// An operator stops for one partition after the other, and after lost history it cannot tell how much is lost. One fill of
// the topic looks at all of that at once, whether or not records are left that tell.
func TestLostHistoryOfATopicIsFilledAtOnce(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"records are left": true, "none is left": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, store, o := lostHistory(t, left)
			before := w.contents()
			gap := Gap{Operator: o.Name(), Topic: facts.Name, Partition: -1}
			plans, err := w.plan(store, gap)
			if err != nil || len(plans) < 2 {
				t.Fatalf("planned %+v, %v", plans, err)
			}
			for _, f := range plans {
				if f.Events == 0 || f.Wanted != f.Events || f.First <= f.Have || f.Open == left || left && f.Last != f.Need {
					t.Errorf("planned %+v", f)
				}
			}
			if after := w.contents(); !reflect.DeepEqual(before, after) {
				t.Error("a plan changed something")
			}
			if _, err := w.fillGap(store, gap); err != nil {
				t.Fatal(err)
			}
			w.awaitEffects2(100)
			w.await("the operator to go on", func() bool { return o.Health() == nil })
			if n := w.count("select count(*) from operator_audit where action = 'fill-gap' and who = 'ana'"); n != len(plans) {
				t.Errorf("%d audit rows, want %d", n, len(plans))
			}
			w.await("no rows left over", func() bool { return w.count("select count(*) from operator_fills") == 0 })
			var not *NotFoundError
			if _, err := w.plan(store, gap); !errors.As(err, &not) {
				t.Errorf("planned again: %v", err)
			}
		})
	}
}

// Whoever looked at a hole decides about that one: not about what there is when the decision comes.
func TestAHoleThatMovedIsNotFilledOrAccepted(t *testing.T) {
	t.Parallel()
	w, store, o := lostHistory(t, true)
	plans, err := w.plan(store, Gap{Operator: o.Name(), Topic: facts.Name, Partition: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Pool.Exec(t.Context(), "update checkpoints set next_offset = next_offset - 1"); err != nil {
		t.Fatal(err)
	}
	before := w.contents()
	var moved *MovedError
	for i := range plans {
		if err := FillGap(t.Context(), w.db.Pool, &plans[i], "ana"); !errors.As(err, &moved) {
			t.Errorf("filled: %v", err)
		}
		if plans[i].Met {
			continue
		}
		if err := AcceptHole(t.Context(), w.db.Pool, plans[i].Hole, false, "ana"); !errors.As(err, &moved) {
			t.Errorf("accepted: %v", err)
		}
	}
	if after := w.contents(); !reflect.DeepEqual(before, after) {
		t.Error("something was changed")
	}
}

// A whole topic's lost history is given up at once too.
func TestLostHistoryOfATopicIsAcceptedAtOnce(t *testing.T) {
	t.Parallel()
	w, store, o := lostHistory(t, true)
	plans, err := w.plan(store, Gap{Operator: o.Name(), Topic: facts.Name, Partition: -1})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, f := range plans {
		lost += f.Events
		if err := AcceptHole(t.Context(), w.db.Pool, f.Hole, false, "ana"); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitEffects2(100 - lost)
	w.await("the operator to go on", func() bool { return o.Health() == nil })
	if n := w.count("select count(*) from operator_audit where action = 'accept-gap' and who = 'ana' and detail like '%history lost%'"); n != len(plans) {
		t.Errorf("%d audit rows, want %d", n, len(plans))
	}
}

// Nothing on a compacted topic tells what its front has lost, so all that the store has is applied again.
func TestACompactedTopicIsFilledWithAllThatTheStoreHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store, log := w.owner(40)
	compacted := facts
	compacted.Compacted = true
	partition, want := log[0].Partition, 0
	for i, r := range log {
		if r.Partition == partition && i >= 5 { // positions begin at 1
			want++
		}
	}
	hole := Hole{Operator: "tests.ledger", Topic: facts.Name, Partition: partition, Kind: kindHistoryLost, Resume: 90, Have: 5, Open: true}
	f, err := PlanFill(t.Context(), Owner{Topic: compacted, Store: store, types: []string{happened{}.EventType()}}, hole, []string{"shop.feira.thing.other.v1"})
	if err != nil || f.Events != want || f.Wanted != 0 || f.First <= 5 {
		t.Errorf("planned %d events, want %d: %+v, %v", f.Events, want, f.Hole, err)
	}
}
