package orders

import (
	"maps"

	"github.com/feira-shop/feira/shared/events"
)

// Evolve folds one event into the order.
func Evolve(o Order, event events.Event) Order {
	switch e := event.(type) {
	case events.OrderPlaced:
		return begun(e)
	case events.OrderStockReserved:
		o.Stock = true
	case events.OrderPaymentAuthorized:
		o.Payment = &Payment{ID: e.Payment, Brand: e.Brand, LastFour: e.LastFour}
		if o.Captured == 0 {
			o.Financial = Authorized
		}
	case events.OrderFraudCleared:
		o.Cleared = true
	case events.OrderHeld:
		o.Status, o.Reason = OnHold, e.Reason
		o.Hold = &Hold{Reason: e.Reason, DuplicateOf: e.DuplicateOf, Until: e.Until}
		o.DueAt = e.Until.UnixMicro()
	case events.OrderReleased:
		o.Status, o.Reason, o.Cleared = Placed, "", true
		o.DueAt = e.ConfirmBy.UnixMicro()
		o.Commands = remember(o.Commands, e.Command, released)
	case events.OrderConfirmed:
		o.Status, o.DueAt = Confirmed, 0
	case events.OrderCancelled:
		o = ended(o, e)
	default:
		return evolveMoney(o, event)
	}
	return o
}

func begun(e events.OrderPlaced) Order {
	return Order{
		ID: e.Order, Number: e.Number, Customer: e.Customer, Status: Placed, Financial: Pending,
		Lines: e.Lines, Subtotal: e.Subtotal, Shipping: e.Shipping, Discount: e.Discount, Total: e.Total,
		Method: e.PaymentMethod, Fingerprint: e.Fingerprint, PlacedAt: e.PlacedAt,
		PlacedUS: e.PlacedAt.UnixMicro(), DueAt: e.ConfirmBy.UnixMicro(),
	}
}

func ended(o Order, e events.OrderCancelled) Order {
	o.Status, o.Reason, o.DueAt = Cancelled, e.Reason, 0
	o.Commands = remember(o.Commands, e.Command, cancelled(e.Detail))
	if o.Financial == Pending {
		o.Financial = Voided // nothing was ever reserved, as far as the order knows
		if e.Reason == events.ReasonPaymentDeclined {
			o.Financial = Failed
		}
	}
	return o
}

func evolveMoney(o Order, event events.Event) Order {
	switch e := event.(type) {
	case events.OrderPaid:
		o.Captured, o.Financial = e.Amount.Amount, Paid
	case events.OrderPaymentVoided:
		o.Financial = Voided
	case events.OrderRefundRequested:
		o.Refunds = with(o.Refunds, e.Command, RefundState{Amount: e.Amount.Amount, Reason: e.Reason, State: "requested"})
	case events.OrderRefunded:
		o.Returned, o.Financial = e.RefundedSoFar.Amount, PartiallyRefunded
		if o.Returned >= o.Captured {
			o.Financial = Refunded
		}
		o.Refunds = settle(o.Refunds, e.Command, "done")
	case events.OrderRefundFailed: // also that of a cancellation, or its repeat would be noted again
		o.Refunds = with(o.Refunds, e.Command, RefundState{
			Amount: e.Amount.Amount, Reason: o.Refunds[e.Command].Reason, State: "failed",
		})
	}
	return o
}

func settle(m map[string]RefundState, command, state string) map[string]RefundState {
	r, asked := m[command]
	if !asked {
		return m // the refund of a cancellation, which nobody asked us for
	}
	r.State = state
	return with(m, command, r)
}

func remember(m map[string]string, command, what string) map[string]string {
	if command == "" {
		return m
	}
	return with(m, command, what)
}

// with returns a copy: a state is never changed in place, since others may still read the one before.
func with[V any](m map[string]V, key string, v V) map[string]V {
	c := maps.Clone(m)
	if c == nil {
		c = map[string]V{}
	}
	c[key] = v
	return c
}
