package payments

import (
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// The events that payments keeps to itself: what it asked of the provider, and what it must not forget
// meanwhile. Each *Requested event brings about one job, see [jobsOf].

// AuthorizationRequested says that the provider is asked to reserve the money.
type AuthorizationRequested struct {
	events.Purchase
	Personal    Personal `json:"personal"`
	Correlation string   `json:"correlation,omitempty"` // of the order's story, for what comes out of jobs
}

// Personal is the personal data of an authorisation, in one object so that it can be encrypted as one.
type Personal struct {
	Token string `json:"token"` // the provider's token for the card, never a card number
}

// AuthorizationReceived keeps the provider's id of the authorisation, by which it is captured and refunded.
type AuthorizationReceived struct {
	Order         string `json:"order"`
	Authorization string `json:"authorization"`
}

// CaptureRequested says that the provider is asked to take the reserved money.
type CaptureRequested struct {
	Order         string      `json:"order"`
	Payment       string      `json:"payment"`
	Authorization string      `json:"authorization"`
	Amount        money.Money `json:"amount"`
	Correlation   string      `json:"correlation,omitempty"`
}

// CancellationNoted remembers that the order is cancelled, whatever is in flight at that moment.
type CancellationNoted struct {
	Order  string `json:"order"`
	Reason string `json:"reason"`
}

// VoidRequested says that the provider is asked to give the authorisation back or, where it has none yet,
// never to make it.
type VoidRequested struct {
	Order       string `json:"order"`
	Payment     string `json:"payment"`
	Correlation string `json:"correlation,omitempty"`
}

// RefundQueued remembers a refund that was asked for. Refunds of one payment are made one after the other.
type RefundQueued struct {
	Order   string      `json:"order"`
	Command string      `json:"command"`
	Amount  money.Money `json:"amount"`
}

// RefundRequested says that the provider is asked to give captured money back.
type RefundRequested struct {
	Order         string      `json:"order"`
	Authorization string      `json:"authorization"`
	Command       string      `json:"command"` // of the request, or [CommandCancellation]
	Amount        money.Money `json:"amount"`
	Key           string      `json:"key"` // idempotency key at the provider
	Correlation   string      `json:"correlation,omitempty"`
}

// EventType is the CloudEvents type.
func (AuthorizationRequested) EventType() string {
	return "shop.feira.payment.authorization_requested.v1"
}

// EventType is the CloudEvents type.
func (AuthorizationReceived) EventType() string {
	return "shop.feira.payment.authorization_received.v1"
}

// EventType is the CloudEvents type.
func (CaptureRequested) EventType() string { return "shop.feira.payment.capture_requested.v1" }

// EventType is the CloudEvents type.
func (CancellationNoted) EventType() string { return "shop.feira.payment.cancellation_noted.v1" }

// EventType is the CloudEvents type.
func (VoidRequested) EventType() string { return "shop.feira.payment.void_requested.v1" }

// EventType is the CloudEvents type.
func (RefundQueued) EventType() string { return "shop.feira.payment.refund_queued.v1" }

// EventType is the CloudEvents type.
func (RefundRequested) EventType() string { return "shop.feira.payment.refund_requested.v1" }

// EventKey is the order; private events are never published.
func (e AuthorizationReceived) EventKey() string { return e.Order }

// EventKey is the order.
func (e CaptureRequested) EventKey() string { return e.Order }

// EventKey is the order.
func (e CancellationNoted) EventKey() string { return e.Order }

// EventKey is the order.
func (e VoidRequested) EventKey() string { return e.Order }

// EventKey is the order.
func (e RefundQueued) EventKey() string { return e.Order }

// EventKey is the order.
func (e RefundRequested) EventKey() string { return e.Order }

// private lists the prototypes of the private events.
func private() []events.Event {
	return events.List(AuthorizationRequested{}, AuthorizationReceived{}, CaptureRequested{},
		CancellationNoted{}, VoidRequested{}, RefundQueued{}, RefundRequested{})
}
