package orders

import (
	"fmt"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Decide answers a command with what happened to the order. Commands that state facts are idempotent and
// never fail on an order that has gone another way: a fact that no longer fits yields no event.
func Decide(o Order, cmd any) ([]events.Event, error) {
	if c, ok := cmd.(Place); ok {
		return place(o, c)
	}
	if !o.Exists() {
		return nil, &NotFoundError{Command: fmt.Sprintf("%T", cmd)}
	}
	switch c := cmd.(type) {
	case Cancel:
		return cancel(o, c)
	case Release:
		return release(o, c)
	case Refund:
		return refund(o, c)
	case Expire:
		return expire(o, c)
	case NoteReserved, NoteAuthorized, NoteCleared:
		return advance(o, c)
	default:
		return note(o, c)
	}
}

func place(o Order, c Place) ([]events.Event, error) {
	if o.Exists() {
		if o.Fingerprint != c.Fingerprint {
			return nil, &KeyReusedError{Order: o.ID}
		}
		return nil, nil
	}
	subtotal, total, err := sums(c)
	if err != nil {
		return nil, err
	}
	return events.List(events.OrderPlaced{
		Order: c.Order, Number: c.Number, Customer: c.Customer, Lines: c.Lines,
		Subtotal: subtotal, Shipping: c.Shipping, Discount: c.Discount, Total: total,
		PaymentMethod: c.PaymentMethod, Personal: c.Personal,
		PlacedAt: c.PlacedAt, ConfirmBy: c.ConfirmBy, Fingerprint: c.Fingerprint,
	}), nil
}

// sums checks every line and returns subtotal and total: sum of lines + shipping − discount. A total of nothing is
// refused, since nobody could authorise it and the order would wait in vain.
func sums(c Place) (subtotal, total money.Money, err error) {
	subtotal = money.New(0, c.Shipping.Currency)
	for _, l := range c.Lines {
		if l.Quantity < 1 || l.UnitPrice.Amount < 0 {
			return subtotal, total, &SumError{SKU: l.SKU, Want: l.UnitPrice, Got: l.Total}
		}
		want, err := l.UnitPrice.Times(l.Quantity)
		if err != nil {
			return subtotal, total, err
		}
		if want != l.Total {
			return subtotal, total, &SumError{SKU: l.SKU, Want: want, Got: l.Total}
		}
		if subtotal, err = subtotal.Add(l.Total); err != nil {
			return subtotal, total, err
		}
	}
	if total, err = subtotal.Add(c.Shipping); err != nil {
		return subtotal, total, err
	}
	if total, err = total.Sub(c.Discount); err != nil {
		return subtotal, total, err
	}
	if total.Amount <= 0 || c.Shipping.Amount < 0 || c.Discount.Amount < 0 {
		return subtotal, total, &SumError{Want: money.New(1, total.Currency), Got: total}
	}
	return subtotal, total, nil
}

// advance notes one of the three things an order waits for, and confirms it when it was the last.
func advance(o Order, cmd any) ([]events.Event, error) {
	var fact events.Event
	switch c := cmd.(type) {
	case NoteReserved:
		if o.Stock {
			return nil, nil
		}
		fact = events.OrderStockReserved{Order: o.ID}
	case NoteAuthorized:
		if o.Payment != nil {
			return nil, nil
		}
		fact = events.OrderPaymentAuthorized{Order: o.ID, Payment: c.Payment, Amount: c.Amount, Brand: c.Brand, LastFour: c.LastFour}
	case NoteCleared:
		if o.Cleared || o.Status == Cancelled {
			return nil, nil
		}
		fact = events.OrderFraudCleared{Order: o.ID, Payment: c.Payment}
	}
	return append(events.List(fact), confirm(Evolve(o, fact))...), nil
}

// confirm is what follows once stock, payment and fraud are in.
func confirm(o Order) []events.Event {
	if o.Status != Placed || !o.Stock || !o.Cleared || o.Payment == nil {
		return nil
	}
	lines := make([]events.Quantity, len(o.Lines))
	for i, l := range o.Lines {
		lines[i] = events.Quantity{SKU: l.SKU, Quantity: l.Quantity}
	}
	return events.List(events.OrderConfirmed{
		Order: o.ID, Customer: o.Customer, Payment: o.Payment.ID, Total: o.Total, Lines: lines,
	})
}

// note takes the facts that do not bring an order nearer to its confirmation.
func note(o Order, cmd any) ([]events.Event, error) {
	switch c := cmd.(type) {
	case NoteRefused:
		return cancelIf(o.Open(), o, events.ReasonOutOfStock, "inventory", missing(c.Missing))
	case NoteDeclined:
		return cancelIf(o.Open(), o, events.ReasonPaymentDeclined, "payments", c.Code)
	case NoteCaptureFailed:
		return cancelIf(o.Status == Confirmed, o, events.ReasonPaymentDeclined, "payments", c.Code)
	case NoteHeld:
		if o.Status != Placed || o.Cleared || o.Hold != nil {
			return nil, nil
		}
		return events.List(events.OrderHeld{Order: o.ID, Payment: c.Payment, Reason: c.Reason, DuplicateOf: c.DuplicateOf, Until: c.Until}), nil
	case NoteCaptured:
		if o.Captured > 0 {
			return nil, nil
		}
		return events.List(events.OrderPaid{Order: o.ID, Customer: o.Customer, Payment: c.Payment, Amount: c.Amount}), nil
	case NoteVoided:
		if o.Status != Cancelled || o.Payment == nil || o.Financial != Authorized {
			return nil, nil
		}
		return events.List(events.OrderPaymentVoided{Order: o.ID, Payment: c.Payment}), nil
	case NoteRefunded:
		if c.RefundedSoFar.Amount <= o.Returned {
			return nil, nil
		}
		return events.List(events.OrderRefunded{Order: o.ID, Payment: c.Payment, Command: c.Command, Amount: c.Amount, RefundedSoFar: c.RefundedSoFar}), nil
	case NoteRefundFailed:
		if o.Refunds[c.Command].State == "failed" {
			return nil, nil
		}
		return events.List(events.OrderRefundFailed{Order: o.ID, Payment: c.Payment, Command: c.Command, Amount: c.Amount, Code: c.Code}), nil
	}
	return nil, decider.Unknown(cmd)
}

func missing(m []events.Missing) string {
	if len(m) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d wanted, %d available", m[0].SKU, m[0].Wanted, m[0].Available)
}

func cancelIf(fits bool, o Order, reason, by, detail string) ([]events.Event, error) {
	if !fits {
		return nil, nil
	}
	return events.List(events.OrderCancelled{Order: o.ID, Customer: o.Customer, Reason: reason, By: by, Detail: detail}), nil
}
