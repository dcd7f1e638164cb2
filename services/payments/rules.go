package payments

import (
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Codes with which payments itself answers, beside those of the provider.
const (
	CodeVoided          = "voided"           // the authorisation had been voided at the provider
	CodeNotCaptured     = "not_captured"     // there is no captured money to refund
	CodeInvalidAmount   = "invalid_amount"   // nothing, less than nothing, or another currency
	CodeExceedsCaptured = "exceeds_captured" // more than what is left of the captured money
)

// then is what happened, and all that follows from it at once.
func then(p Payment, happened ...events.Event) []events.Event {
	for _, e := range happened {
		p = Evolve(p, e)
	}
	for e := next(p); e != nil; e = next(p) {
		happened = append(happened, e)
		p = Evolve(p, e)
	}
	return happened
}

// next is the one thing that a payment calls for now; nil while it waits for an answer or has nothing to do.
// Each event takes away its own reason, so asking again and again comes to an end.
func next(p Payment) events.Event {
	switch p.Status {
	case Authorizing, Reserved:
		return voidIfCancelled(p)
	case CaptureFailed:
		if len(p.Queue) > 0 {
			return refundFailed(p, p.Queue[0], CodeNotCaptured)
		}
		return voidIfCancelled(p)
	case Refused, GivenUp:
		if len(p.Queue) > 0 {
			return refundFailed(p, p.Queue[0], CodeNotCaptured)
		}
	case Taken, GivenBack:
		return nextRefund(p)
	}
	return nil
}

// voidIfCancelled also voids what the provider has not answered yet: the void goes by the key of the
// authorisation, and a later authorisation with that key is refused by the provider.
func voidIfCancelled(p Payment) events.Event {
	if !p.Cancelled {
		return nil
	}
	return VoidRequested{Order: p.Purchase.Order, Payment: p.Purchase.Payment, Correlation: p.Correlation}
}

// nextRefund begins the refunds one by one: those asked for, then what a cancellation has to give back.
func nextRefund(p Payment) events.Event {
	if p.InFlight != nil {
		return nil
	}
	request := RefundRequested{Order: p.Purchase.Order, Authorization: p.Authorization, Correlation: p.Correlation}
	switch {
	case len(p.Queue) > 0:
		head := p.Queue[0]
		if code := refuse(p, head.Amount); code != "" {
			return refundFailed(p, head, code)
		}
		request.Command, request.Amount = head.Command, head.Amount
		request.Key = refundKey(p.Purchase.Payment, head.Command)
	case p.Cancelled && !p.GaveBack && p.Kept() > 0:
		request.Command = CommandCancellation
		request.Amount = money.New(p.Kept(), p.Purchase.Amount.Currency)
		request.Key = cancellationKey(p.Purchase.Payment)
	default:
		return nil
	}
	return request
}

// refuse says why an amount cannot be refunded; "" if it can. Never is more refunded than was captured.
func refuse(p Payment, amount money.Money) string {
	switch {
	case amount.Currency != p.Purchase.Amount.Currency, amount.Amount <= 0:
		return CodeInvalidAmount
	case amount.Amount > p.Kept():
		return CodeExceedsCaptured
	}
	return ""
}

func refunded(p Payment, r FlyingRefund) events.Event {
	return events.PaymentRefunded{
		Purchase: p.Purchase, Command: r.Command, Refunded: r.Amount,
		RefundedSoFar: money.New(p.Refunded+r.Amount.Amount, r.Amount.Currency),
	}
}

func refundFailed(p Payment, r QueuedRefund, code string) events.Event {
	return events.PaymentRefundFailed{Purchase: p.Purchase, Command: r.Command, Refund: r.Amount, Code: code}
}

// checkAmounts makes sure that an order's amounts add up before its total is charged:
// lines + shipping − discount = total, and total is more than nothing.
func checkAmounts(o events.OrderPlaced) error {
	sum := money.New(0, o.Total.Currency)
	for _, line := range o.Lines {
		want, err := line.UnitPrice.Times(line.Quantity)
		if err != nil {
			return err
		}
		if line.Total != want {
			return &AmountError{Order: o.Order, Want: want, Have: line.Total, What: "the line of " + line.SKU}
		}
		if sum, err = sum.Add(line.Total); err != nil {
			return err
		}
	}
	if o.Subtotal != sum {
		return &AmountError{Order: o.Order, Want: sum, Have: o.Subtotal, What: "the subtotal"}
	}
	sum, err := sum.Add(o.Shipping)
	if err != nil {
		return err
	}
	if sum, err = sum.Sub(o.Discount); err != nil {
		return err
	}
	if o.Total != sum {
		return &AmountError{Order: o.Order, Want: sum, Have: o.Total, What: "the total"}
	}
	if o.Total.Amount <= 0 {
		return &AmountError{Order: o.Order, Want: money.New(1, o.Total.Currency), Have: o.Total, What: "the total, to be charged,"}
	}
	return nil
}
