package fraud

import (
	"fmt"
	"testing"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// remembered is a state with so many cards, and an authorisation of each, later than what is remembered.
func remembered(cards int) (map[string]Profile, []events.Recorded) {
	state := make(map[string]Profile, cards)
	next := make([]events.Recorded, cards)
	for i := range next {
		first, second := onCard(i, "first", 0), onCard(i, "second", 4*time.Second)
		state[card(first)], _ = builtIn.Apply(Profile{}, first, false)
		next[i] = second
	}
	return state, next
}

func onCard(i int, payment string, at time.Duration) events.Recorded {
	e := authorized(payment, at).Event.(events.PaymentAuthorized)
	e.CardFingerprint = fmt.Sprintf("card-%d", i)
	return events.Recorded{Event: e}
}

// BenchmarkDecision is what a verdict costs in memory, with 200,000 cards remembered.
func BenchmarkDecision(b *testing.B) {
	state, next := remembered(200_000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r := next[i%len(next)]
		if _, said := builtIn.Apply(state[card(r)], r, false); len(said) != 1 {
			b.Fatalf("%d verdicts", len(said))
		}
		i++
	}
}

// A decision takes less than 5 µs. Other processes share the machine, so the best of many short runs counts: what is
// measured is the work, not the waiting.
func TestADecisionTakesMicroseconds(t *testing.T) {
	const each = 1000
	state, next := remembered(50_000)
	best := time.Hour
	for from := 0; from+each <= len(next); from += each {
		begun := time.Now()
		for _, r := range next[from : from+each] {
			if _, said := builtIn.Apply(state[card(r)], r, false); len(said) != 1 {
				t.Fatalf("%d verdicts", len(said))
			}
		}
		best = min(best, time.Since(begun)/each)
	}
	t.Logf("a decision takes %v", best)
	if limit := 5 * time.Microsecond * slowdown; best > limit {
		t.Errorf("a decision takes %v, at most %v are allowed", best, limit)
	}
}
