package stream

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
	"github.com/feira-shop/feira/shared/stream/streamtest"
)

// What is measured: payments of very many cards, each less than five seconds from another of the same card, amount and
// currency being a duplicate of it.

// cards is the state of a card and amount: what was bought of late.
type cards []purchase

type purchase struct {
	Payment string    `json:"p"`
	Order   string    `json:"o"`
	At      time.Time `json:"t"`
}

func (cs cards) near(at time.Time) (purchase, bool) {
	for _, c := range cs {
		if near(c.At, at) {
			return c, true
		}
	}
	return purchase{}, false
}

func judgeCard(kept cards, r events.Recorded, late bool) (cards, []events.Event) {
	e, ok := r.Event.(events.PaymentAuthorized)
	if !ok {
		return kept, nil
	}
	v := events.Verdict{Order: e.Order, Payment: e.Payment, Customer: e.Customer, Rules: []string{}}
	var said events.Event
	if first, twice := kept.near(e.PurchasedAt); late || twice {
		v.Score, v.Rules = 100, []string{"duplicate_purchase"}
		said = events.PurchaseHeld{Verdict: v, Reason: events.ReasonDuplicatePurchase, DuplicateOfPayment: first.Payment, DuplicateOfOrder: first.Order}
	} else {
		said = events.PurchaseCleared{Verdict: v}
	}
	next := make(cards, len(kept), len(kept)+1)
	copy(next, kept)
	return append(next, purchase{e.Payment, e.Order, e.PurchasedAt}), events.List(said)
}

func (cs cards) until() time.Time {
	var last time.Time
	for _, c := range cs {
		if c.At.After(last) {
			last = c.At
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(window)
}

func (cs cards) trim(watermark time.Time) cards {
	for i, c := range cs {
		if c.At.Add(window).Before(watermark) {
			left := append(cards(nil), cs[:i]...)
			for _, later := range cs[i:] {
				if !later.At.Add(window).Before(watermark) {
					left = append(left, later)
				}
			}
			return left
		}
	}
	return cs // nothing is to go
}

// AppendJSON implements [AppendJSON].
func (cs cards) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, '[')
	for i, c := range cs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"p":"`...), c.Payment...), `","o":"`...) // both are ids, without anything to escape
		b = append(append(b, c.Order...), `","t":"`...)
		b = append(c.At.AppendFormat(b, time.RFC3339Nano), `"}`...)
	}
	return append(b, ']'), nil
}

const cardDisorder = 2 * time.Second

func cardSource() Source {
	return From(events.Payments, events.PaymentAuthorized{}).Disorder(cardDisorder).
		KeyBy(func(r events.Recorded) string {
			e, ok := r.Event.(events.PaymentAuthorized)
			if !ok {
				return ""
			}
			return e.CardFingerprint + " " + strconv.FormatInt(e.Amount.Amount, 10) + " " + e.Amount.Currency
		}).
		At(func(r events.Recorded) time.Time {
			e, ok := r.Event.(events.PaymentAuthorized)
			if !ok {
				return r.Time
			}
			return e.PurchasedAt
		})
}

func cardRule() Rule[cards] {
	return Rule[cards]{
		Apply: judgeCard, Until: cards.until, Trim: cards.trim,
		Stream: func(e events.Event) string {
			switch v := e.(type) {
			case events.PurchaseCleared:
				return "verdict-" + v.Payment
			case events.PurchaseHeld:
				return "verdict-" + v.Payment
			}
			return ""
		},
	}
}

// traffic makes the payments of one partition: so many cards pay within five seconds of event time, one after the other
// in an order that is far from theirs in memory. Each tenth payment is made twice.
type traffic struct {
	cards int
	n     int
}

// at is the event time of the n-th payment.
func (t *traffic) at(n int) time.Time {
	return epoch.Add(time.Duration(n) * (window / time.Duration(t.cards)))
}

// next makes w the next payment.
func (t *traffic) next(tb testing.TB, w *streamtest.Wire) {
	tb.Helper()
	card, at := t.n*7919%t.cards, t.at(t.n)
	if t.n%10 == 9 {
		card = (t.n - 5) * 7919 % t.cards
	}
	id := uuid.NewString()
	e := events.PaymentAuthorized{Brand: "visa", LastFour: "4242", Purchase: events.Purchase{
		Order: uuid.NewString(), Payment: id, Customer: uuid.NewString(), PurchasedAt: at.Add(-time.Duration(card%7) * 100 * time.Millisecond),
		CardFingerprint: fmt.Sprintf("fp_%016x", card), Amount: money.BRL(int64(1000 + card%50)),
	}}
	meta := events.Meta{ID: uuid.NewString(), Time: at, Correlation: id, Causation: id, Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	t.n++
	w.Encode(tb, events.Payments, int64(t.n-1), meta, e)
}
