package stream

import (
	"context"
	"testing"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
)

func (b *bed) rebuild(def operator.Definition, dry bool) operator.Rebuilt {
	b.t.Helper()
	client, err := kafka.NewClient(b.broker.Config("ana"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	done, err := operator.Rebuild(context.Background(), def, operator.RebuildOptions{
		Pool: b.db.Pool, Registry: b.store.Registry(), Client: client, Who: "ana", DryRun: dry,
		Owner: func(context.Context, events.Topic) (operator.Owner, error) {
			return operator.Owner{Topic: clicks, Store: b.store}, nil
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

// differences adds up what a rebuild found.
func differences(done operator.Rebuilt) (n int64) {
	for _, d := range done.Tables {
		n += d.Missing + d.Excess + d.Different
	}
	return n
}

// An operator goes on from a state that was damaged, and its state is made anew beside it: what it says from then on is
// what an uninterrupted run says. What it has said is compared, and not said again.
func TestFaultRebuildOfAStreamsState(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	def := definition("tests.repeats")
	b.history(400)
	stop := b.run(def, "m1")
	b.check()
	if done := b.rebuild(def, false); differences(done) != 0 || done.Outputs.Rows != 400 || done.Outputs.Missing+done.Outputs.Different != 0 {
		t.Errorf("rebuilt what is right: %+v, %+v", done, done.Outputs)
	}
	stop()
	if _, err := b.db.Pool.Exec(t.Context(), "delete from stream_deltas; update stream_watermarks set max_time = max_time - 5000000"); err != nil {
		t.Fatal(err)
	}
	b.run(def, "m1")
	b.await("the operator to begin again", func() bool { return b.count("select max(epoch) from checkpoints") >= 2 })
	if done := b.rebuild(def, true); differences(done) < 3 || done.Switched || b.count("select count(*) from stream_deltas") != 0 {
		t.Errorf("a dry run: %+v", done)
	}
	if done := b.rebuild(def, false); differences(done) < 3 || !done.Switched {
		t.Errorf("rebuilt: %+v", done)
	}
	b.history(400)
	b.check()
	if done := b.rebuild(def, true); differences(done) != 0 {
		t.Errorf("what the operator saved since then: %+v", done)
	}
	if _, err := b.db.Pool.Exec(t.Context(), `update events set data = '{"id":"x","verdict":"y"}' where position = (select min(position) from events)`); err != nil {
		t.Fatal(err)
	}
	if done := b.rebuild(def, false); done.Outputs.Different != 1 || len(done.Outputs.Examples) != 1 || b.verdicts() != 800 {
		t.Errorf("a wrong verdict: %+v", done.Outputs)
	}
}
