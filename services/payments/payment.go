package payments

import (
	"net/url"

	"github.com/google/uuid"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Status is where a payment stands.
type Status string

// The statuses of a payment; the picture is in the package documentation.
const (
	None          Status = ""
	Authorizing   Status = "authorizing"    // the provider is asked
	Reserved      Status = "authorized"     // the money is reserved
	Refused       Status = "declined"       // final: the provider said no
	Capturing     Status = "capturing"      // the provider is asked to take the money
	CaptureFailed Status = "capture_failed" // it does not; the reservation may still stand
	Taken         Status = "captured"       // the money is the shop's, as far as it is not refunded
	Voiding       Status = "voiding"        // the provider is asked to give the reservation back
	GivenUp       Status = "voided"         // final: nothing is reserved, nothing will be
	GivenBack     Status = "refunded"       // final: all that was captured went back
)

// CommandCancellation names the refund that a cancellation brings about.
const CommandCancellation = "cancellation"

// Payment is the state of one order's payment.
type Payment struct {
	Status        Status          `json:"status"`
	Purchase      events.Purchase `json:"purchase"`
	Correlation   string          `json:"correlation,omitempty"`   // of the order's story
	Authorization string          `json:"authorization,omitempty"` // the provider's id; "" before its answer
	Cancelled     bool            `json:"cancelled,omitempty"`     // the order is; nothing new is begun
	Refunded      int64           `json:"refunded,omitempty"`      // minor units that went back, never more than was captured
	Commands      []string        `json:"commands,omitempty"`      // ids of all refund requests there ever were
	Queue         []QueuedRefund  `json:"queue,omitempty"`         // asked for and not yet begun
	InFlight      *FlyingRefund   `json:"in_flight,omitempty"`     // the one the provider is asked for now
	// GaveBack is set once the refund that answers the cancellation was asked for: it is asked for once.
	GaveBack bool `json:"gave_back,omitempty"`
}

// QueuedRefund is a refund that was asked for.
type QueuedRefund struct {
	Command string      `json:"command"`
	Amount  money.Money `json:"amount"`
}

// FlyingRefund is a refund that the provider is asked for.
type FlyingRefund struct {
	QueuedRefund
	Key string `json:"key"`
}

// Kept is how much of the captured money, in minor units, the shop still has.
func (p Payment) Kept() int64 {
	if p.Status != Taken {
		return 0
	}
	return p.Purchase.Amount.Amount - p.Refunded
}

// known says whether the order was seen at all.
func (p Payment) known() bool { return p.Purchase.Payment != "" }

// withCard is the purchase with its card, once the provider has named it.
func (p Payment) withCard(c Card) events.Purchase {
	purchase := p.Purchase
	if purchase.CardFingerprint == "" {
		purchase.CardFingerprint = c.Fingerprint
	}
	return purchase
}

// paymentNamespace makes payment ids differ from all other name-based ids.
var paymentNamespace = uuid.MustParse("f6d5c1a2-3b0e-5f6a-9a51-7a1d2a1c9d10")

// PaymentID is the id of an order's payment: one order has one payment, its first attempt.
func PaymentID(order string) string {
	return uuid.NewSHA1(paymentNamespace, []byte(order+"/1")).String()
}

// StreamOf is the stream of an order's payment.
func StreamOf(order string) string { return "payment-" + order }

// Idempotency keys at the provider: a job repeats its request with the same key, so nothing happens twice.

func authorizeKey(payment string) string { return payment + "/authorize" }
func captureKey(payment string) string   { return payment + "/capture" }
func voidKey(payment string) string      { return payment + "/void" }
func refundKey(payment, command string) string {
	return payment + "/refund/" + url.PathEscape(command)
}
func cancellationKey(payment string) string { return payment + "/cancellation" }
