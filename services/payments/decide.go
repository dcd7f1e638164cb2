package payments

import (
	"slices"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
)

// Decide answers a command with what happened. A repeated command changes nothing, and neither does an
// answer of the provider that no longer matters.
func Decide(p Payment, cmd any) ([]events.Event, error) {
	switch c := cmd.(type) {
	case Authorize:
		return authorize(p, c)
	case Capture:
		return capture(p, c)
	case Cancel:
		return cancel(p, c), nil
	case Refund:
		return refund(p, c)
	case Authorized, Declined, Blocked:
		return authorizationAnswered(p, c), nil
	case Captured, CaptureRefused:
		return captureAnswered(p, c), nil
	case Voided:
		return voidAnswered(p, c), nil
	case Refunded, RefundRefused:
		return refundAnswered(p, c), nil
	}
	return nil, decider.Unknown(cmd)
}

func authorize(p Payment, c Authorize) ([]events.Event, error) {
	if p.known() {
		return nil, nil
	}
	o := c.Placed
	if o.PaymentMethod != "card" || o.Personal.Token == "" {
		return nil, &MethodError{Order: o.Order, Method: o.PaymentMethod}
	}
	if err := checkAmounts(o); err != nil {
		return nil, err
	}
	purchase := events.Purchase{
		Order: o.Order, Payment: PaymentID(o.Order), Customer: o.Customer, PurchasedAt: o.PlacedAt, Amount: o.Total,
	}
	if p.Cancelled {
		// The cancellation was here first: the provider was never asked and will not be.
		return then(p, events.PaymentVoided{Purchase: purchase}), nil
	}
	return then(p, AuthorizationRequested{
		Purchase: purchase, Personal: Personal{Token: o.Personal.Token}, Correlation: c.Correlation,
	}), nil
}

func capture(p Payment, c Capture) ([]events.Event, error) {
	switch {
	case p.Status == Reserved:
		if c.Amount != p.Purchase.Amount {
			return nil, &AmountError{Order: c.Order, Want: p.Purchase.Amount, Have: c.Amount, What: "the amount to capture"}
		}
		return then(p, CaptureRequested{
			Order: c.Order, Payment: p.Purchase.Payment, Authorization: p.Authorization, Amount: c.Amount,
			Correlation: p.Correlation,
		}), nil
	case p.Cancelled:
		return nil, nil
	case p.Status == None, p.Status == Authorizing:
		return nil, &OrderError{Order: c.Order, Command: "capture", Status: p.Status}
	}
	return nil, nil
}

func cancel(p Payment, c Cancel) []events.Event {
	switch {
	case p.Cancelled, p.Status == Refused, p.Status == GivenBack, p.Status == GivenUp:
		return nil
	}
	return then(p, CancellationNoted(c))
}

func refund(p Payment, c Refund) ([]events.Event, error) {
	if !p.known() {
		return nil, &OrderError{Order: c.Order, Command: "refund", Status: p.Status}
	}
	if slices.Contains(p.Commands, c.Command) {
		return nil, nil
	}
	return then(p, RefundQueued(c)), nil
}

// awaitsAuthorization says whether the provider's answer to the authorisation is still to come. It may come
// after a void was asked for, too.
func (p Payment) awaitsAuthorization() bool {
	return p.Status == Authorizing || p.Status == Voiding && p.Authorization == ""
}

func authorizationAnswered(p Payment, answer any) []events.Event {
	if !p.awaitsAuthorization() {
		return nil
	}
	switch a := answer.(type) {
	case Authorized:
		return then(p,
			AuthorizationReceived{Order: p.Purchase.Order, Authorization: a.Authorization},
			events.PaymentAuthorized{Purchase: p.withCard(a.Card), Brand: a.Card.Brand, LastFour: a.Card.LastFour})
	case Declined:
		return then(p, events.PaymentDeclined{Purchase: p.withCard(a.Card), Code: a.Code})
	}
	if p.Status == Voiding {
		return nil // as it should be: the answer to the void is what counts
	}
	// Blocked without a void of ours: someone voided it at the provider.
	return then(p, events.PaymentDeclined{Purchase: p.Purchase, Code: CodeVoided})
}

func captureAnswered(p Payment, answer any) []events.Event {
	if p.Status != Capturing {
		return nil
	}
	if a, refused := answer.(CaptureRefused); refused {
		return then(p, events.PaymentCaptureFailed{Purchase: p.Purchase, Code: a.Code})
	}
	return then(p, events.PaymentCaptured{Purchase: p.Purchase})
}

func voidAnswered(p Payment, a Voided) []events.Event {
	if p.Status != Voiding {
		return nil
	}
	return then(p, events.PaymentVoided{Purchase: p.withCard(a.Card)})
}

func refundAnswered(p Payment, answer any) []events.Event {
	if p.InFlight == nil {
		return nil
	}
	flying := *p.InFlight
	switch a := answer.(type) {
	case Refunded:
		if a.Key == flying.Key {
			return then(p, refunded(p, flying))
		}
	case RefundRefused:
		if a.Key == flying.Key {
			return then(p, refundFailed(p, flying.QueuedRefund, a.Code))
		}
	}
	return nil
}
