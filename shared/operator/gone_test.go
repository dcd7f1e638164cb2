package operator

import (
	"context"
	"testing"

	"github.com/feira-shop/feira/shared/kafka"
)

// A topic that was made again with fewer partitions leaves checkpoints of the others behind: they hide nothing else.
func TestAPartitionThatIsGoneHidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.applied(10)
	w.publishOn(0, 10)
	w.deleteBefore(facts, 0, 15)
	gone := w.remember(0)
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.awaitStop(o)
	all, err := List(t.Context(), w.db.Pool)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kafka.NewClient(w.kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	lags, err := Lags(client, all[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lags {
		if l.Gone != (l.Partition == gone) || l.Partition == 0 && l.Records != 10 {
			t.Errorf("lag %+v", l)
		}
	}
	if holes, err := Holes(t.Context(), w.db.Pool, client, facts, Gap{Operator: o.Name(), Topic: facts.Name, Partition: -1}); err != nil || len(holes) != 1 {
		t.Errorf("holes %+v, %v", holes, err)
	}
}

// remember leaves the checkpoint of a partition behind the topic's last, as if it had been made again with fewer; source is the
// position of the last event applied.
func (w *world) remember(source int64) (partition int32) {
	w.t.Helper()
	partition = facts.Partitions + int32(min(source, 1))
	if _, err := w.db.Pool.Exec(context.Background(), `insert into checkpoints select (jsonb_populate_record(k,
		jsonb_build_object('partition', $1::int, 'source_position', $2::bigint))).* from checkpoints k where partition = 0`, partition, source); err != nil {
		w.t.Fatal(err)
	}
	return partition
}

// Only when a person has said that the topic begins anew is such a checkpoint forgotten, and not if events of the partition
// were applied: it may come back with them.
func TestAPartitionThatIsGoneIsForgottenWithItsTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, facts)
	w.applied(10)
	w.remember(0)
	kept := w.remember(7)
	stop := w.start(w.operator(w.definition(&ledger{}, facts), "m1"))
	w.publishOn(0, 1)
	w.awaitEffects(11)
	stop()
	if n := w.count("select count(*) from checkpoints"); n != int(facts.Partitions)+2 {
		t.Errorf("a checkpoint was forgotten: there are %d", n)
	}
	w.recreate()
	o := w.operator(w.definition(&ledger{}, facts), "m1")
	w.start(o)
	w.accept(o, w.awaitStop(o))
	w.publishOn(0, 5)
	w.await("the new topic's events", func() bool { return w.effects() >= 16 })
	if n := w.count("select count(*) from checkpoints where partition <> $1", kept); n != int(facts.Partitions) {
		t.Errorf("there are %d checkpoints of %d partitions", n, facts.Partitions)
	}
	if n := w.count("select source_position from checkpoints where partition = $1", kept); n != 7 {
		t.Errorf("of a partition whose events were applied up to 7, %d is remembered", n)
	}
}
