package fraud

import (
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// BenchmarkDecision is what a verdict costs in memory, with 200,000 cards remembered: the limit is 5 µs.
func BenchmarkDecision(b *testing.B) {
	const cards = 200_000
	state := make(map[string]Purchases, cards)
	batch := make([]events.Recorded, cards)
	for i := range batch {
		r := authorized(fmt.Sprint(i), time.Duration(i)*time.Microsecond)
		e := r.Event.(events.PaymentAuthorized)
		e.CardFingerprint = fmt.Sprintf("card-%d", i)
		batch[i] = events.Recorded{Event: e}
		k := card(batch[i])
		state[k], _ = Judge(state[k], batch[i], false)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r := batch[i%cards]
		k := card(r)
		_, said := Judge(state[k].without(fmt.Sprint(i%cards)), r, false)
		if len(said) != 1 {
			b.Fatalf("%d verdicts", len(said))
		}
		i++
	}
	if per := b.Elapsed() / time.Duration(b.N); per > 5*time.Microsecond && b.N > 10_000 {
		b.Errorf("a decision took %s, at most 5 µs are allowed", per)
	}
}
