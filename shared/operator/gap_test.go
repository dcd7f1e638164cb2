package operator

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
)

// awaitStop waits until the operator stopped by name, and returns the row that says so.
func (w *world) awaitStop(o *Operator) Stop {
	w.t.Helper()
	var stop Stop
	w.await("a named stop", func() bool {
		all, err := List(context.Background(), w.db.Pool)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range all {
			if s.Operator == o.Name() && len(s.Stops) > 0 {
				stop = s.Stops[0]
				return true
			}
		}
		return false
	})
	if o.Health() == nil {
		w.t.Error("a stopped operator calls itself healthy")
	}
	return stop
}

func (w *world) accept(o *Operator, stop Stop) {
	w.t.Helper()
	gap := Gap{Operator: o.Name(), Topic: stop.Topic, Partition: stop.Partition}
	if err := AcceptGap(context.Background(), w.db.Pool, gap, "ana"); err != nil {
		w.t.Fatal(err)
	}
	w.await("the operator to go on", func() bool { return o.Health() == nil })
	if n := w.count("select count(*) from operator_audit where action = 'accept-gap' and who = 'ana'"); n != 1 {
		w.t.Errorf("%d audit rows, want 1", n)
	}
}

// applied has an operator apply the first n events of a partition, and stop.
func (w *world) applied(n int) []*kgo.Record {
	w.t.Helper()
	log := w.publishOn(0, n)
	stop := w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(n)
	stop()
	return log
}

func TestFaultMissingRecord(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "A record missing in the middle",
		Does: "a record of a partition never arrives: the operator stops by name before the next one, and goes on when a person accepts it",
	})
	w := newWorld(t, facts)
	for i := range 20 {
		r := w.fact(facts, 0, "k")
		if i != 10 {
			w.publish(r)
		}
	}
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	stop := w.awaitStop(o)
	var missing *MissingEventsError
	if err := o.Health(); stop.Kind != kindMissingEvents || !errors.As(err, &missing) && err.Error() != stop.Message {
		t.Fatalf("stopped as %+v with %v", stop, err)
	}
	w.exactlyOnce(10) // what came before the hole
	if value(t, o.metrics.stopped) != 1 {
		t.Error("the metric does not show the stop")
	}

	w.accept(o, stop)
	w.awaitEffects(19)
	w.publish(w.fact(facts, 0, "k"))
	w.awaitEffects(20)
}

func TestFaultDuplicates(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 0, Name: "Duplicates at new offsets",
		Does: "events are published again, as a relay does after a crash: dropped and counted, and the offset moves",
	})
	w := newWorld(t, facts)
	first := w.publishFacts(facts, 30)
	w.publish(first[15:]...) // as a relay does after a crash
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.awaitCheckpoints(45)
	w.publish(first...)
	w.publishFacts(facts, 3)
	w.awaitEffects(33)
	w.awaitCheckpoints(78)
	if n := value(t, o.metrics.duplicates); n != 45 {
		t.Errorf("%v duplicates counted, want 45", n)
	}
}

// A record that claims a high position without being the owner's must not make later events look like duplicates.
func TestAnInjectedSequenceHidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	evil := with(with(w.fact(facts, 1, "x"), events.HeaderSource, "/feira/evil"), events.HeaderSequence, "1000000")
	evil.Partition = 0
	w.publish(w.fact(facts, 0, "k"), evil, w.fact(facts, 0, "k"))
	w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.awaitEffects(2)
}

func TestStartNowTakesOnlyWhatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.publishFacts(facts, 30)
	def := w.definition(&ledger{}, facts)
	def.Start = Now
	o := w.operator(def, "m1")
	stop := w.start(o)
	w.await("joined", func() bool { return o.Health() == nil })
	w.publishFacts(facts, 9)
	w.awaitEffects(9)
	stop()
	w.publishFacts(facts, 3) // while it is down: not lost
	w.start(w.operator(def, "m1"))
	w.awaitEffects(12)
}

func TestFaultHistoryLost(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "Records deleted above the checkpoint",
		Does: "records that an operator has not read are deleted: it stops by name",
	})
	w := newWorld(t, facts)
	w.applied(10)
	w.publishOn(0, 10)
	w.deleteBefore(facts, 0, 15)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	named := w.awaitStop(o)
	if named.Kind != kindHistoryLost {
		t.Fatalf("stopped as %+v", named)
	}
	w.accept(o, named)
	w.awaitEffects(15)
}

func (w *world) deleteBefore(topic events.Topic, partition int32, offset int64) {
	w.t.Helper()
	var at kadm.Offsets
	at.Add(kadm.Offset{Topic: topic.Name, Partition: partition, At: offset})
	deleted, err := w.admin().DeleteRecords(context.Background(), at)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Accepting lost history must not forget what was applied: duplicates of it may be all that is left.
func TestAcceptedGapsApplyNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	log := w.applied(10)
	w.publish(log[5:]...) // offsets 10 to 14 repeat events that were applied
	w.deleteBefore(facts, 0, 12)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.accept(o, w.awaitStop(o))
	w.publishOn(0, 1)
	w.awaitEffects(11)
	w.awaitCheckpoints(16)
}

func (w *world) publishOn(partition int32, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = w.fact(facts, partition, "k")
	}
	w.publish(records...)
	return records
}

func TestFaultTopicRecreated(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "A topic recreated under its consumer",
		Does: "a topic is deleted and made again while an operator runs, or is down and the new topic has grown longer than the old one: " +
			"it stops by name, and begins anew when a person says so",
	})
	for name, down := range map[string]bool{"under a running operator": false, "while it is down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, facts)
			w.publishOn(0, 10)
			o := w.operator(w.definition(&ledger{}, facts), "m1")
			stopOperator := w.start(o)
			w.awaitEffects(10)
			if down {
				stopOperator()
			}
			w.recreate()
			if down {
				w.publishOn(0, 15)
				o = w.operator(w.definition(&ledger{}, facts), "m1")
				w.start(o)
			}
			stop := w.awaitStop(o)
			if stop.Kind != kindTopicReplaced {
				t.Fatalf("stopped as %+v", stop)
			}
			if !down {
				w.publishOn(0, 15)
			}
			w.accept(o, stop)
			w.await("the new topic's events", func() bool { return w.effects() >= 25 })
			if n := w.count("select count(distinct id) from effects"); n != 25 || w.effects() != 25 {
				t.Errorf("%d effects of %d events, want 25 of each", w.effects(), n)
			}
		})
	}
}

// recreate deletes the topic and makes another one of its name.
func (w *world) recreate() {
	w.t.Helper()
	if _, err := w.admin().DeleteTopics(context.Background(), facts.Name); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.admin().CreateTopics(context.Background(), facts.Partitions, 1, nil, facts.Name); err != nil {
		w.t.Fatal(err)
	}
	w.connect()                // the old client knows the old topic
	w.last = map[place]int64{} // the relay's chain of a new topic begins anew, the store's positions do not
}

func TestACheckpointBeyondTheEndStopsByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.applied(3)
	if _, err := w.db.Pool.Exec(t.Context(), "update checkpoints set next_offset = 50 where partition = 0"); err != nil {
		t.Fatal(err)
	}
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	if stop := w.awaitStop(o); stop.Kind != kindTopicReplaced || stop.Partition != 0 {
		t.Fatalf("stopped as %+v", stop)
	}
}

// A stop concerns one operator: others on the same topic go on.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	first := w.operator(w.definition(&ledger{}, facts), "m1")
	w.fact(facts, 0, "k") // never published
	w.publish(w.fact(facts, 0, "k"))
	def := w.definition(&ledger{}, facts)
	def.Name, def.Start = "tests.other", Now
	other := w.operator(def, "m1")
	w.start(other)
	w.await("joined", func() bool { return other.Health() == nil })
	w.start(first)
	w.awaitStop(first)
	w.publish(w.fact(facts, 0, "k"))
	w.awaitEffects(1)
	if err := other.Health(); err != nil {
		t.Error(err)
	}
}

// A consumer whose topic is recreated under it may see no error at all. Only the id tells.
func TestFaultTopicRecreatedUnseen(t *testing.T) {
	t.Parallel()
	faulttest.Begin(t, faulttest.Plan{
		Number: 8, Name: "A topic recreated unseen",
		Does: "a consumer sees no error when its topic is recreated: the watch over the id stops the operator by name",
	})
	w := newWorld(t, facts)
	w.publishOn(0, 5)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.awaitEffects(5)
	o.mu.Lock()
	r := o.current
	o.mu.Unlock()
	r.setID(facts.Name, "the id of a topic that is gone")
	if stop := w.awaitStop(o); stop.Kind != kindTopicReplaced || stop.Partition != wholeTopic {
		t.Fatalf("stopped as %+v", stop)
	}
}
