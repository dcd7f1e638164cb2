//nolint:revive // EventType and EventKey are documented where they are declared, in Event
package events

import (
	"time"

	"github.com/feira-shop/feira/shared/money"
)

// Purchase is what every payments event says of the payment it is about.
type Purchase struct {
	Order       string    `json:"order"`
	Payment     string    `json:"payment"` // UUIDv5 of order and attempt
	Customer    string    `json:"customer"`
	PurchasedAt time.Time `json:"purchased_at"` // when the order was placed: the event time of fraud
	// CardFingerprint names a card without being one; "" where no card was ever seen.
	CardFingerprint string      `json:"card_fingerprint,omitempty"`
	Amount          money.Money `json:"amount"` // of the payment as a whole
}

// About is the purchase itself, for readers that take any payments event.
func (p Purchase) About() Purchase { return p }

// EventKey is the card, so that one card is one partition; the order where there is no card.
func (p Purchase) EventKey() string {
	if p.CardFingerprint != "" {
		return p.CardFingerprint
	}
	return p.Order
}

// PaymentAuthorized says that the provider reserved the money.
type PaymentAuthorized struct {
	Purchase
	Brand    string `json:"brand"`
	LastFour string `json:"last_four"`
}

// PaymentDeclined says that the provider refused the card.
type PaymentDeclined struct {
	Purchase
	Code string `json:"code"` // the provider's decline code
}

// PaymentCaptured says that the reserved money was taken.
type PaymentCaptured struct{ Purchase }

// PaymentCaptureFailed says that the provider refused to capture what it had authorised.
type PaymentCaptureFailed struct {
	Purchase
	Code string `json:"code"`
}

// PaymentVoided says that an authorisation was given back, or can never come into being.
type PaymentVoided struct{ Purchase }

// PaymentRefunded says that captured money went back.
type PaymentRefunded struct {
	Purchase
	Command       string      `json:"command"` // the refund request it answers, or "cancellation"
	Refunded      money.Money `json:"refunded"`
	RefundedSoFar money.Money `json:"refunded_so_far"`
}

// PaymentRefundFailed says that the provider refused a refund.
type PaymentRefundFailed struct {
	Purchase
	Command string      `json:"command"`
	Refund  money.Money `json:"refund"`
	Code    string      `json:"code"`
}

func (PaymentAuthorized) EventType() string    { return "shop.feira.payment.authorized.v1" }
func (PaymentDeclined) EventType() string      { return "shop.feira.payment.declined.v1" }
func (PaymentCaptured) EventType() string      { return "shop.feira.payment.captured.v1" }
func (PaymentCaptureFailed) EventType() string { return "shop.feira.payment.capture_failed.v1" }
func (PaymentVoided) EventType() string        { return "shop.feira.payment.voided.v1" }
func (PaymentRefunded) EventType() string      { return "shop.feira.payment.refunded.v1" }
func (PaymentRefundFailed) EventType() string  { return "shop.feira.payment.refund_failed.v1" }
