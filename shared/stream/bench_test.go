package stream

import (
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/stream/streamtest"
)

// cardShop is the operator in memory, with one partition claimed.
func cardShop() *processor[cards] {
	p := newProcessor("bench.cards", cardSource(), cardRule())
	p.shards[shardKey{topic: events.Payments.Name}] = newShard[cards]()
	return p
}

const benchBatch = 500

// BenchmarkCards is what a payment costs the operator: its headers and JSON, the decision, its verdict's JSON, and its
// share of the batch's checkpoint, with a million cards that pay within five seconds, so that more than a million are
// remembered.
func BenchmarkCards(b *testing.B) {
	registry := events.NewRegistry()
	for _, bench := range []struct {
		name   string
		stages int
	}{{"decode", 1}, {"decode+judge+delta", 2}, {"with verdicts", 3}} {
		b.Run(bench.name, func(b *testing.B) {
			p, t := cardShop(), &traffic{cards: 1_000_000}
			b.ReportAllocs()
			var cpu time.Duration
			batch, room := make([]operator.Record, 0, benchBatch), make([]streamtest.Wire, 20*benchBatch)
			b.ResetTimer()
			for done := 0; done < b.N; {
				b.StopTimer()
				wires := room
				for i := range wires {
					t.next(b, &wires[i])
				}
				b.StartTimer()
				begun := pgtest.OwnCPU(b)
				for len(wires) > 0 && done < b.N {
					batch = batch[:0]
					for i := range wires[:benchBatch] {
						batch = append(batch, wires[i].Read(b, registry))
					}
					wires = wires[benchBatch:]
					done += benchBatch
					if bench.stages > 1 {
						p.work(b, batch, bench.stages > 2)
					}
				}
				cpu += pgtest.OwnCPU(b) - begun
			}
			b.ReportMetric(float64(b.N)/cpu.Seconds(), "events/cpu-s")
			b.ReportMetric(float64(p.shards[shardKey{topic: events.Payments.Name}].keys.len()), "keys")
		})
	}
}

// work judges a batch and makes its checkpoint.
func (p *processor[S]) work(tb testing.TB, batch []operator.Record, verdicts bool) {
	tb.Helper()
	n := 0
	p.said.begin()
	if err := p.hear(batch, func(r events.Recorded, e events.Event) error {
		n++
		if !verdicts {
			return nil
		}
		return p.emit(r, e)
	}); err != nil || n != len(batch) {
		tb.Fatalf("%d verdicts on %d payments: %v", n, len(batch), err)
	}
	if _, err := p.checkpoints(); err != nil {
		tb.Fatal(err)
	}
	p.Settle(true)
}
