package stream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/kafka/kafkatest"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/stream/streamtest"
)

// cardBed is a bed for payments.
func cardBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, last: map[int32]int64{}, metrics: prometheus.NewRegistry()}
	b.db = pgtest.New(t, eventstore.Migrations(), operator.Migrations(), Migrations())
	b.store = eventstore.New(b.db.Pool, eventstore.Options{Service: "fraud", Registry: events.NewRegistry()})
	b.broker = kafkatest.New(t, events.Payments)
	var err error
	b.client, err = kgo.NewClient(kgo.SeedBrokers(b.broker.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	return b
}

// pay publishes payments on partition 0, and says how many of them an uninterrupted run holds.
func (b *bed) pay(tr *traffic, n int) (held int) {
	b.t.Helper()
	p := restore(b.t, disk{}, cardSource(), cardRule(), shardKey{topic: events.Payments.Name})
	registry := events.NewRegistry()
	for range n {
		var w streamtest.Wire
		tr.next(b.t, &w)
		if err := p.Recompute(w.Read(b.t, registry), func(_ string, e events.Event) error {
			if _, is := e.(events.PurchaseHeld); is {
				held++
			}
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
		b.client.Produce(context.Background(), w.Record(), func(_ *kgo.Record, err error) {
			if err != nil {
				b.t.Errorf("publish: %v", err)
			}
		})
	}
	if err := b.client.Flush(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	return held
}

// slowest is an upper bound of what p of a hundred of a histogram's observations took, and their number.
func (b *bed) slowest(name string, p float64) (bound float64, n uint64) {
	b.t.Helper()
	families, err := b.metrics.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		for _, bucket := range h.GetBucket() {
			if float64(bucket.GetCumulativeCount()) >= p/100*float64(h.GetSampleCount()) {
				return bucket.GetUpperBound(), h.GetSampleCount()
			}
		}
	}
	b.t.Fatalf("there is no metric %s", name)
	return 0, 0
}

// A million cards through the operator as it runs, on a broker and a database, stopped and started again half way:
// each payment has its verdict, as many are held as an uninterrupted run holds, and memory has what is needed, also after
// a restart without traffic.
func TestFaultManyCardsThroughTheLoop(t *testing.T) {
	run := faulttest.Begin(t, faulttest.Plan{
		Name: "Many cards on a broker and a database",
		Does: "cards pay within five seconds, again and again; the operator is stopped and started half way: one verdict each, as of an uninterrupted run; state and checkpoints are bounded, also after a restart without traffic",
	})
	b := cardBed(t)
	tr := &traffic{cards: run.Times(1500, 500_000)}
	n := 2 * tr.cards
	held := b.pay(tr, n)
	def := cardSource().Process("fraud.cards", cardRule())
	def.MaxBatch = run.Times(100, 2000)
	begun := time.Now()
	stop := b.run(def, "m1")
	b.awaitFor(run.For(patience, 30*time.Minute), "half of the verdicts", func() bool { return b.received() >= n/2 })
	stop()
	stop = b.run(def, "m1")
	b.awaitFor(run.For(patience, 30*time.Minute), "all verdicts", func() bool { return b.received() == n })
	took := time.Since(begun)
	bound := float64(tr.cards) / window.Seconds() * (window + cardDisorder + 1600*time.Millisecond).Seconds()
	keys := b.stateKeys()
	p99, checkpoints := b.slowest("feira_operator_checkpoint_seconds", 99)
	stop()
	if got := b.count("select count(distinct stream) from events"); got != n {
		t.Errorf("%d of %d payments have a verdict", got, n)
	}
	if got := b.count("select count(*) from events where type = $1", events.PurchaseHeld{}.EventType()); got != held {
		t.Errorf("%d payments are held, want %d", got, held)
	}
	b.run(def, "m1")
	if again := b.stateKeys(); keys > bound || again > bound {
		t.Errorf("%v keys are kept and %v restored, at most %v are needed", keys, again, bound)
	}
	run.Count("payments", n)
	run.Count("checkpoints since the restart", int(checkpoints))
	run.Found("payments per second", fmt.Sprintf("%.0f", float64(n)/took.Seconds()))
	run.Found("transaction with its checkpoint, p99", fmt.Sprintf("at most %v s", p99))
	run.Found("keys", fmt.Sprint(keys))
	if p99 > 1 {
		t.Errorf("a checkpoint takes up to %v s", p99)
	}
}

// stateKeys waits until the operator, which may have begun just now, shows a state.
func (b *bed) stateKeys() (keys float64) {
	b.t.Helper()
	b.await("a state", func() bool {
		families, err := b.metrics.Gather()
		if err != nil {
			b.t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "feira_stream_state_keys" {
				keys = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return keys > 0
	})
	return keys
}
