package orders

import (
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// cancel grants every wish to cancel. Once a service ships goods, it will decide after the order is paid.
func cancel(o Order, c Cancel) ([]events.Event, error) {
	if done, err := o.repeated(c.Command, cancelled(c.Detail)); done || err != nil {
		return nil, err
	}
	if o.Status == Cancelled {
		return nil, &TransitionError{Order: o.ID, Wish: "cancel", Status: o.Status}
	}
	return events.List(events.OrderCancelled{
		Order: o.ID, Customer: o.Customer, Reason: events.ReasonCustomer, By: c.By, Command: c.Command, Detail: c.Detail,
	}), nil
}

func release(o Order, c Release) ([]events.Event, error) {
	if done, err := o.repeated(c.Command, released); done || err != nil {
		return nil, err
	}
	if o.Status != OnHold {
		return nil, &TransitionError{Order: o.ID, Wish: "release", Status: o.Status}
	}
	if !c.Operator && o.Hold.Reason != events.ReasonDuplicatePurchase {
		return nil, &ForbiddenError{Order: o.ID, Reason: o.Hold.Reason}
	}
	if o.DueAt <= c.Now.UnixMicro() { // the timer has not looked yet, and would end it
		return nil, &HoldEndedError{Order: o.ID, Until: o.Hold.Until}
	}
	fact := events.OrderReleased{Order: o.ID, By: c.By, Command: c.Command, ConfirmBy: c.ConfirmBy}
	return append(events.List(fact), confirm(Evolve(o, fact))...), nil
}

// ofCancellation is how payments calls the refund that a cancellation brings about. No request may have this key.
const ofCancellation = "cancellation"

func refund(o Order, c Refund) ([]events.Event, error) {
	all := c.Amount == money.Money{}
	if known, ok := o.Refunds[c.Command]; ok && c.Command != ofCancellation {
		if known.Reason != c.Reason || !all && c.Amount != money.New(known.Amount, o.Total.Currency) {
			return nil, &KeyReusedError{Order: o.ID}
		}
		return nil, nil
	}
	if _, used := o.Commands[c.Command]; used || c.Command == ofCancellation {
		return nil, &KeyReusedError{Order: o.ID}
	}
	if o.Captured == 0 || o.Status == Cancelled && (!c.Operator || !o.keepsMoney()) {
		return nil, &TransitionError{Order: o.ID, Wish: "refund", Status: o.Status}
	}
	left := o.Refundable()
	if all {
		c.Amount = money.New(left, o.Total.Currency)
	}
	if c.Amount.Currency != o.Total.Currency {
		return nil, &money.MismatchError{Left: o.Total.Currency, Right: c.Amount.Currency}
	}
	if c.Amount.Amount <= 0 || c.Amount.Amount > left {
		return nil, &RefundError{Order: o.ID, Asked: c.Amount, Left: money.New(left, o.Total.Currency)}
	}
	return events.List(events.OrderRefundRequested{Order: o.ID, Command: c.Command, Amount: c.Amount, Reason: c.Reason, By: c.By}), nil
}

// repeated reports whether the order carried the request out before. A key that was used for anything else is
// refused.
func (o Order) repeated(key, what string) (bool, error) {
	done, known := o.Commands[key]
	_, asRefund := o.Refunds[key]
	if asRefund || known && done != what {
		return false, &KeyReusedError{Order: o.ID}
	}
	return known, nil
}

// What an order remembers of a request that it carried out: enough to tell a repeat from another one.
const released = "release"

func cancelled(detail string) string { return "cancel " + fingerprint([]byte(detail)) }

// expire ends a hold that nobody released and an order whose answers did not come in time.
func expire(o Order, c Expire) ([]events.Event, error) {
	if !o.Open() || o.DueAt == 0 || o.DueAt > c.Now.UnixMicro() {
		return nil, nil
	}
	if o.Status == OnHold {
		return cancelIf(true, o, o.Hold.Reason, "orders", "nobody released it in time")
	}
	return cancelIf(true, o, events.ReasonDeadline, "orders", "")
}
