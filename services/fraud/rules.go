package fraud

import (
	"strconv"
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// Window is how far apart two purchases must be not to be taken for a double click: 5.000 s is far enough.
const Window = 5 * time.Second

// Names of the rules, as verdicts carry them.
const (
	RuleDuplicate = "duplicate_purchase"
	RuleTooLate   = "too_late_to_judge"
)

// Purchases are the recent authorised payments of one card, amount and currency, in the order of their offsets.
type Purchases []Purchase

// Purchase is what must be remembered of a payment.
type Purchase struct {
	Payment string    `json:"p"`
	Order   string    `json:"o"`
	At      time.Time `json:"t"` // event time: when the order was placed
}

// Judge gives every authorised payment its verdict and remembers it; a voided payment is forgotten.
//
// A payment less than [Window] from one with an earlier offset, before or after it in event time, is a duplicate
// of it. One that comes later than purchases are kept cannot be judged, so a person looks: whether a purchase that
// it may repeat is still remembered is an accident of batches and restarts, so it is not even looked for. Where the
// provider did not name the card there is nothing to repeat: the payment is cleared, late or not.
func Judge(recent Purchases, r events.Recorded, late bool) (Purchases, []events.Event) {
	switch e := r.Event.(type) {
	case events.PaymentVoided:
		return recent.without(e.Payment), nil
	case events.PaymentAuthorized:
		if recent.has(e.Payment) {
			return recent, nil // judged before
		}
		return recent.with(e.Purchase), events.List(verdict(recent, e.Purchase, late))
	}
	return recent, nil
}

func verdict(recent Purchases, p events.Purchase, late bool) events.Event {
	v := events.Verdict{Order: p.Order, Payment: p.Payment, Customer: p.Customer, Rules: []string{}}
	if late && p.CardFingerprint != "" {
		v.Score, v.Rules = 50, []string{RuleTooLate}
		return events.PurchaseHeld{Verdict: v, Reason: events.ReasonFraud}
	}
	if first, ok := recent.near(p.PurchasedAt); ok {
		v.Score, v.Rules = 100, []string{RuleDuplicate}
		return events.PurchaseHeld{
			Verdict: v, Reason: events.ReasonDuplicatePurchase,
			DuplicateOfPayment: first.Payment, DuplicateOfOrder: first.Order,
		}
	}
	return events.PurchaseCleared{Verdict: v}
}

// near finds the first remembered purchase less than Window away.
func (ps Purchases) near(at time.Time) (Purchase, bool) {
	for _, p := range ps {
		if d := at.Sub(p.At); -Window < d && d < Window {
			return p, true
		}
	}
	return Purchase{}, false
}

func (ps Purchases) has(payment string) bool {
	for _, p := range ps {
		if p.Payment == payment {
			return true
		}
	}
	return false
}

// with and without return copies: the state before must stay as it was until the batch is committed.
func (ps Purchases) with(p events.Purchase) Purchases {
	c := make(Purchases, len(ps), len(ps)+1)
	copy(c, ps)
	return append(c, Purchase{Payment: p.Payment, Order: p.Order, At: p.PurchasedAt})
}

func (ps Purchases) without(payment string) Purchases {
	if !ps.has(payment) {
		return ps
	}
	c := make(Purchases, 0, len(ps))
	for _, p := range ps {
		if p.Payment != payment {
			c = append(c, p)
		}
	}
	return c
}

// Until is the event time up to which the purchases matter to others; zero when there are none.
func (ps Purchases) Until() time.Time {
	var last time.Time
	for _, p := range ps {
		if p.At.After(last) {
			last = p.At
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(Window)
}

// Trim forgets purchases that no payment at or after the watermark can be a duplicate of.
func (ps Purchases) Trim(watermark time.Time) Purchases {
	c := make(Purchases, 0, len(ps))
	for _, p := range ps {
		if !p.At.Add(Window).Before(watermark) {
			c = append(c, p)
		}
	}
	return c
}

// Key is what must be equal for two purchases to be compared: card, amount and currency. Of a card that the provider did
// not name nothing is known to be equal, so the payment has a key of its own and is compared with nothing. "" only for
// what is no payment.
func Key(p events.Purchase) string {
	if p.CardFingerprint == "" {
		return p.Payment
	}
	return p.CardFingerprint + " " + strconv.FormatInt(p.Amount.Amount, 10) + " " + p.Amount.Currency
}
