package fraud

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
)

// DefaultForget is how long a card is known after its last purchase unless a deployment says otherwise.
const DefaultForget = 90 * 24 * time.Hour

// LeastForget is how long a card is known at least: longer than the longest window, so that what is forgotten with it
// would count for nothing.
const LeastForget = 24 * time.Hour

// Policy is what purchases are judged with.
type Policy struct {
	Thresholds Thresholds
	Model      *Model // nil: none
	// Versions, as verdicts carry them.
	ThresholdsVersion, ModelVersion string
}

// Judge gives verdicts. It is pure: what it says depends on its arguments alone.
type Judge struct {
	Policy *Policy
	Forget time.Duration // how long after its last purchase a card is known, at least [LeastForget]
}

// Apply gives every authorised payment its verdict and remembers it; a voided payment is forgotten. The profile is left
// as it is.
//
// A payment that comes later than purchases are kept cannot be judged, so a person looks: whether a purchase that it may
// repeat is still remembered is an accident of batches and restarts, so it is not even looked for. Where the provider
// did not name the card there is nothing to compare: the payment is cleared, late or not.
func (j Judge) Apply(c Profile, r events.Recorded, late bool) (Profile, []events.Event) {
	switch e := r.Event.(type) {
	case events.PaymentVoided:
		return c.without(purchaseOf(e.Purchase)), nil
	case events.PaymentAuthorized:
		p := purchaseOf(e.Purchase)
		if c.Recent.has(p.Payment) {
			return c, nil // judged before
		}
		return j.authorized(c, p, e.Purchase, late)
	}
	return c, nil
}

func (j Judge) authorized(c Profile, p Purchase, e events.Purchase, late bool) (Profile, []events.Event) {
	v := events.Verdict{Order: e.Order, Payment: e.Payment, Customer: e.Customer, Thresholds: j.Policy.ThresholdsVersion}
	if e.CardFingerprint == "" {
		c.Recent = c.Recent.with(p)
		return c, events.List(events.PurchaseCleared{Verdict: v})
	}
	if late {
		v.Score, v.Rules = 50, []string{RuleTooLate}
		v.Reasons = []events.Fired{{Rule: RuleTooLate, Weight: 50, Why: "the payment came after purchases of its time were forgotten"}}
		return c.with(p, true), events.List(events.PurchaseHeld{Verdict: v, Reason: events.ReasonFraud})
	}
	c = c.as(p.At, j.Forget)
	m := measure(c, p, e.Amount.Currency)
	if j.Policy.Model != nil {
		m.score = j.Policy.Model.Score(m.features())
		v.Model, v.ModelScore = j.Policy.ModelVersion, m.score
	}
	return c.with(p, false), events.List(weigh(&j.Policy.Thresholds, &m, v))
}

// Key names the state of a payment: its card. Of a card that the provider did not name nothing is known to be equal, so
// the payment has a key of its own and is compared with nothing. "" only for what is no payment.
func Key(p events.Purchase) string {
	if p.CardFingerprint == "" {
		return p.Payment
	}
	return p.CardFingerprint
}
