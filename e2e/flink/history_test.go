//go:build e2e

package flink

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/money"
)

// What a history is like: rather more repeats and refunds than a shop has.
const (
	span           = time.Hour        // of event time
	disorder       = 30 * time.Second // how far an event may be behind the latest of its partition
	eventsOfACard  = 50               // on average
	cardsOfAnOwner = 2                // an account has cards in several partitions
	oneInTen       = 10
)

var begins = time.Date(2026, 3, 1, 9, 58, 0, 0, time.UTC) // within a window

// fact is an event of a history, small, since there are millions.
type fact struct {
	kind     kind
	payment  int32         // index into payments
	at       time.Duration // event time, from the beginning
	arrives  time.Duration // at its partition
	refunded int64
}

type kind uint8

const (
	authorized kind = iota
	declined
	captured
	refunded
)

// payment is what the events of one payment have in common.
type payment struct {
	card   int32
	at     time.Duration // the purchase
	amount int64
}

// history is what topic payments may hold: in order per card, in disorder across cards.
type history struct {
	seed     uint64
	payments []payment
	facts    []fact // in the order in which the store wrote them
}

// generate makes a history of n events. The same seed gives the same.
func generate(seed uint64, n int) *history {
	h := &history{seed: seed, facts: make([]fact, 0, n+eventsOfACard), payments: make([]payment, 0, n/2)}
	dice := rand.New(rand.NewPCG(seed, 0))
	for card := int32(0); len(h.facts) < n; card++ {
		h.card(dice, card)
	}
	h.facts = h.facts[:n]
	slices.SortStableFunc(h.facts, func(a, b fact) int { return cmp.Compare(a.arrives, b.arrives) })
	return h
}

// gaps between repeated purchases, around the five seconds that matter.
var gaps = []time.Duration{0, time.Millisecond, 2500 * time.Millisecond, 4999 * time.Millisecond, 5 * time.Second, 5001 * time.Millisecond}

// prices are few, so that some purchases are equal by chance.
var prices = []int64{990, 1999, 1999_00, 4550, 12_90, 7, 3_000_000_00, 1}

// card adds the events of one card. All of them come late by the same, so that they stay in order.
func (h *history) card(dice *rand.Rand, card int32) {
	late := time.Duration(dice.Int64N(int64(disorder)))
	// A third of the cards has times in whole milliseconds, and some of these have no fraction: headers have 0 to 6 digits.
	// Within a card the microseconds are the same, so that what is 5 s apart is so in milliseconds, too.
	micros := time.Duration(0)
	if dice.IntN(3) > 0 {
		micros = time.Duration(dice.IntN(1000)) * time.Microsecond
	}
	from := len(h.facts)
	for len(h.facts) < from+eventsOfACard {
		at := time.Duration(dice.Int64N(int64(span/time.Millisecond)))*time.Millisecond + micros
		if dice.IntN(oneInTen) == 0 {
			at = at.Truncate(time.Second) + micros
		}
		amount := prices[dice.IntN(len(prices))]
		h.pay(dice, card, at, amount)
		for dice.IntN(oneInTen) == 0 {
			at += gaps[dice.IntN(len(gaps))]
			h.pay(dice, card, at, amount)
		}
	}
	own := h.facts[from:]
	for i := range own {
		own[i].arrives = own[i].at + late
	}
}

// pay adds the events of one payment.
func (h *history) pay(dice *rand.Rand, card int32, at time.Duration, amount int64) {
	id := int32(len(h.payments))
	h.payments = append(h.payments, payment{card, at, amount})
	if dice.IntN(20) == 0 {
		h.facts = append(h.facts, fact{kind: declined, payment: id, at: at})
		return
	}
	h.facts = append(h.facts, fact{kind: authorized, payment: id, at: at})
	if dice.IntN(oneInTen) == 0 {
		return // never captured
	}
	at += time.Duration(dice.Int64N(60_000)) * time.Millisecond
	h.facts = append(h.facts, fact{kind: captured, payment: id, at: at})
	if dice.IntN(oneInTen) == 0 {
		at += time.Duration(dice.Int64N(900_000)) * time.Millisecond
		h.facts = append(h.facts, fact{kind: refunded, payment: id, at: at, refunded: 1 + dice.Int64N(amount)})
	}
}

func (h *history) currency(card int32) string {
	if card%oneInTen == 0 {
		return "USD"
	}
	return "BRL"
}

func (h *history) account(card int32) string  { return fmt.Sprintf("account-%d", card/cardsOfAnOwner) }
func (h *history) cardName(card int32) string { return fmt.Sprintf("card-%d", card) }

// id is a name that the seed and a number give.
func (h *history) id(of string, n int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d of %d", of, n, h.seed)).String()
}

func (h *history) paymentName(i int32) string { return h.id("payment", int(i)) }
func (h *history) orderName(i int32) string   { return h.id("order", int(i)) }

// event is a fact as the service payments says it.
func (h *history) event(f fact) events.Event {
	p := h.payments[f.payment]
	about := events.Purchase{
		Order: h.orderName(f.payment), Payment: h.paymentName(f.payment), Customer: h.account(p.card), PurchasedAt: begins.Add(p.at),
		CardFingerprint: h.cardName(p.card), Amount: money.New(p.amount, h.currency(p.card)),
	}
	switch f.kind {
	case authorized:
		return events.PaymentAuthorized{Purchase: about, Brand: "visa", LastFour: "4242"}
	case declined:
		return events.PaymentDeclined{Purchase: about, Code: "card_declined"}
	case captured:
		return events.PaymentCaptured{Purchase: about}
	default:
		back := money.New(f.refunded, about.Amount.Currency)
		return events.PaymentRefunded{Purchase: about, Command: "refund-1", Refunded: back, RefundedSoFar: back}
	}
}

// partition is where a relay publishes a fact.
func (h *history) partition(f fact) int32 {
	return kafka.Partition(h.cardName(h.payments[f.payment].card), 0, events.Payments.Partitions)
}
