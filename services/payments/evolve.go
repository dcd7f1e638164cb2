package payments

import (
	"slices"

	"github.com/feira-shop/feira/shared/events"
)

// Evolve is the payment after an event.
func Evolve(p Payment, e events.Event) Payment {
	switch e := e.(type) {
	case AuthorizationRequested:
		p.Status, p.Purchase, p.Correlation = Authorizing, e.Purchase, e.Correlation
	case AuthorizationReceived:
		p.Authorization = e.Authorization
	case CaptureRequested:
		p.Status = Capturing
	case CancellationNoted:
		p.Cancelled = true
	case VoidRequested:
		p.Status = Voiding
	case RefundQueued:
		p.Commands = append(slices.Clone(p.Commands), e.Command)
		p.Queue = append(slices.Clone(p.Queue), QueuedRefund{Command: e.Command, Amount: e.Amount})
	case RefundRequested:
		p = refundBegun(p, e)
	case events.PaymentAuthorized:
		p.Purchase = e.Purchase
		if p.Status == Authorizing {
			p.Status = Reserved // while Voiding, it stays so: the void takes this one back
		}
	case events.PaymentDeclined:
		p.Status, p.Purchase = Refused, e.Purchase
	case events.PaymentCaptured:
		p.Status = Taken
	case events.PaymentCaptureFailed:
		p.Status = CaptureFailed
	case events.PaymentVoided:
		p.Status, p.Purchase = GivenUp, e.Purchase
	case events.PaymentRefunded:
		p.InFlight, p.Refunded = nil, e.RefundedSoFar.Amount
		if p.Kept() == 0 {
			p.Status = GivenBack
		}
	case events.PaymentRefundFailed:
		p = refundEnded(p)
	}
	return p
}

func refundBegun(p Payment, e RefundRequested) Payment {
	p.InFlight = &FlyingRefund{QueuedRefund: QueuedRefund{Command: e.Command, Amount: e.Amount}, Key: e.Key}
	if len(p.Queue) > 0 {
		p.Queue = slices.Clone(p.Queue[1:])
		return p
	}
	p.GaveBack = true
	return p
}

// refundEnded takes away the refund that failed: the one in flight or, when payments itself refused it, the
// first in the queue, which is only looked at while none is in flight.
func refundEnded(p Payment) Payment {
	if p.InFlight != nil {
		p.InFlight = nil
		return p
	}
	if len(p.Queue) > 0 {
		p.Queue = slices.Clone(p.Queue[1:])
	}
	return p
}
