package orders

import (
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// cancel grants every wish to cancel. Once a service ships goods, it will decide after the order is paid.
func cancel(o Order, c Cancel) ([]events.Event, error) {
	if o.Commands[c.Command] == "cancel" {
		return nil, nil
	}
	if o.Status == Cancelled {
		return nil, &TransitionError{Order: o.ID, Wish: "cancel", Status: o.Status}
	}
	return events.List(events.OrderCancelled{
		Order: o.ID, Customer: o.Customer, Reason: events.ReasonCustomer, By: c.By, Command: c.Command, Detail: c.Detail,
	}), nil
}

func release(o Order, c Release) ([]events.Event, error) {
	if o.Commands[c.Command] == "release" {
		return nil, nil
	}
	if o.Status != OnHold {
		return nil, &TransitionError{Order: o.ID, Wish: "release", Status: o.Status}
	}
	if !c.Operator && o.Hold.Reason != events.ReasonDuplicatePurchase {
		return nil, &ForbiddenError{Order: o.ID, Reason: o.Hold.Reason}
	}
	released := events.OrderReleased{Order: o.ID, By: c.By, Command: c.Command, ConfirmBy: c.ConfirmBy}
	return append(events.List(released), confirm(Evolve(o, released))...), nil
}

func refund(o Order, c Refund) ([]events.Event, error) {
	if known, ok := o.Refunds[c.Command]; ok {
		if (c.Amount.Amount != 0 && known.Amount != c.Amount.Amount) || known.Reason != c.Reason {
			return nil, &KeyReusedError{Order: o.ID}
		}
		return nil, nil
	}
	if o.Captured == 0 || o.Status == Cancelled {
		return nil, &TransitionError{Order: o.ID, Wish: "refund", Status: o.Status}
	}
	left := o.Refundable()
	if c.Amount.Amount == 0 {
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
