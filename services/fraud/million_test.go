package fraud

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/faulttest"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg/pgtest"
	"github.com/feira-shop/feira/shared/stream/streamtest"
)

// What the service's own operator may cost with a million cards, on one core of a server: records decoded, judged by all
// rules and the model, verdicts and checkpoint encoded, and the garbage collected, but for what is done of that while the
// test makes payments. Others share the machine, so the best part of a run counts.
const (
	leastPerSecond = 100_000              // payments per second of CPU time
	mostPause      = 5 * time.Millisecond // half of the batches: decisions, verdicts and checkpoint, in memory
	mostPerBatch   = 500                  // the operator's own bound
	parts          = 6                    // of a run
	unknown        = 2                    // of them: the first, in which the cards become known
)

// A million cards pay three times within fifteen seconds, some twice: all through the operator as the service runs it,
// but for the database. Of each card that is not idle its last purchases stay in memory; of all, what is usual on it.
func TestFaultAMillionCardsInFraud(t *testing.T) {
	fault := faulttest.Begin(t, faulttest.Plan{
		Name: "A million cards in fraud",
		Does: "each card pays three times within fifteen seconds, one payment in ten twice, through the service's own operator with all " +
			"rules and the model: payments per second of CPU time, the time of a batch and the bytes per card are bounded, and each payment has a verdict",
	})
	slack := fault.Times(4, 1) * slowdown // a short run has begun to warm up, among many others
	all := fault.Times(20_000, 1_000_000)
	r, registry := run(t, 2*time.Second), events.NewRegistry()
	before := heap()
	var spent [parts]time.Duration
	var cycles [parts]int
	var batches []time.Duration
	wires := make([]streamtest.Wire, 10*mostPerBatch)
	each := max(1, 3*all/parts/len(wires)) * len(wires)
	for n := 0; n < parts*each; n += len(wires) {
		for i := range wires {
			encode(t, &wires[i], n+i, all)
		}
		began, collected := pgtest.OwnCPU(t), collections()
		for chunk := range slices.Chunk(wires, mostPerBatch) {
			batch := make([]operator.Record, len(chunk))
			for i := range chunk {
				batch[i] = chunk[i].Read(t, registry)
			}
			begun := time.Now()
			r.inMemory(t, batch)
			batches = append(batches, time.Since(begun))
		}
		spent[n/each] += pgtest.OwnCPU(t) - began
		cycles[n/each] += collections() - collected
	}
	perCard := (heap() - before) / int64(all)
	runtime.KeepAlive(r)
	var whole time.Duration
	for _, s := range spent {
		whole += s
	}
	best := float64(each) / slices.Min(spent[unknown:]).Seconds()
	slices.Sort(batches)
	fault.Count("payments", parts*each)
	fault.Count("cards", all)
	fault.Found("payments per CPU-second, best part, all", fmt.Sprintf("%.0f, %.0f", best, parts*float64(each)/whole.Seconds()))
	fault.Found("collections begun in a part, at least", fmt.Sprint(slices.Min(cycles[unknown:])))
	fault.Found("batch of 500 p50, p99", fmt.Sprint(batches[len(batches)/2], batches[len(batches)*99/100]))
	fault.Found("bytes per card", fmt.Sprint(perCard))
	if best < leastPerSecond/float64(slack) {
		t.Errorf("%.0f payments per second of CPU time", best)
	}
	if slices.Min(cycles[unknown:]) == 0 && slack == 1 {
		t.Errorf("the collector rested: %v cycles", cycles)
	}
	if p := batches[len(batches)/2]; p > mostPause*time.Duration(slack) {
		t.Errorf("half of the batches take more than %v", p)
	}
}

// inMemory applies a batch as the loop does; what it would send to the database is thrown away.
func (r *running) inMemory(t *testing.T, batch []operator.Record) {
	t.Helper()
	tx, err := r.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := r.handler.Apply(t.Context(), tx, batch); err != nil {
		t.Fatal(err)
	}
	if n := len(tx.Appends()); n != len(batch) {
		t.Fatalf("%d verdicts on %d payments", n, len(batch))
	}
	r.handler.Settle(true)
}

// encode makes w the n-th payment: so many cards pay within five seconds, in an order that is far from theirs in memory; each
// tenth payment is made twice.
func encode(t *testing.T, w *streamtest.Wire, n, cards int) {
	t.Helper()
	card, at := n*7919%cards, noon.Add(time.Duration(n)*(5*time.Second/time.Duration(cards)))
	if n%10 == 9 {
		card = (n - 5) * 7919 % cards
	}
	id := uuid.NewString()
	w.Encode(t, events.Payments, int64(n), events.Meta{ID: uuid.NewString(), Time: at, Correlation: id, Causation: id},
		events.PaymentAuthorized{Brand: "visa", LastFour: "4242", Purchase: events.Purchase{
			Order: uuid.NewString(), Payment: id, Customer: uuid.NewString(), PurchasedAt: at.Add(-time.Duration(card%7) * 100 * time.Millisecond),
			CardFingerprint: fmt.Sprintf("fp_%016x", card), Amount: money.BRL(int64(1000 + card%50)),
		}})
}

// collections are how many times the garbage was collected.
func collections() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.NumGC)
}

// heap is what is alive.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
