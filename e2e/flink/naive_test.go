//go:build e2e

package flink

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// spendKey and spend are a row of the windows.
type spendKey struct {
	account, currency string
	start             time.Time
}

func (k spendKey) String() string {
	return k.account + " " + k.currency + " from " + k.start.Format(time.RFC3339)
}

type spend struct {
	payments, captured, refunds, refunded int64
}

// answer is what a computation made of the history.
type answer struct {
	spend      map[spendKey]spend
	duplicates map[string]string // payment → the payment it repeats
}

const window = 5 * time.Minute

// naive computes both answers from the facts alone: no partitions, no watermarks, nothing forgotten.
func naive(h *history) answer {
	a := answer{map[spendKey]spend{}, map[string]string{}}
	type what struct {
		card   int32
		amount int64
	}
	purchases := map[what][]int32{}
	for _, f := range h.facts {
		p := h.payments[f.payment]
		key := spendKey{h.account(p.card), h.currency(p.card), begins.Add(f.at).Truncate(window)}
		sum := a.spend[key]
		switch f.kind {
		case captured:
			sum.payments++
			sum.captured += p.amount
			a.spend[key] = sum
		case refunded:
			sum.refunds++
			sum.refunded += f.refunded
			a.spend[key] = sum
		case authorized:
			equal := what{p.card, p.amount}
			for _, earlier := range purchases[equal] {
				if p.at-h.payments[earlier].at < 5*time.Second {
					a.duplicates[h.paymentName(f.payment)] = h.paymentName(earlier)
					break
				}
			}
			purchases[equal] = append(purchases[equal], f.payment)
		}
	}
	return a
}

// disordered is how far events of a partition came behind the latest before them, at most, by the times that the two
// computations go by; and whether each card is in order.
func disordered(h *history) (worst time.Duration, inOrder bool) {
	inOrder = true
	latest, ofCard := make([]time.Duration, events.Payments.Partitions), map[int32]time.Duration{}
	for _, f := range h.facts {
		p := h.payments[f.payment]
		n := h.partition(f)
		worst = max(worst, latest[n]-f.at)
		latest[n] = max(latest[n], f.at)
		inOrder = inOrder && f.at >= ofCard[p.card]
		ofCard[p.card] = f.at
	}
	return worst, inOrder
}
