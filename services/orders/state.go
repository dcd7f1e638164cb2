package orders

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Status is where an order is on its way.
type Status string

// The states of an order; doc.go draws them.
const (
	Placed    Status = "placed"
	OnHold    Status = "on_hold"
	Confirmed Status = "confirmed"
	Cancelled Status = "cancelled"
)

// Financial is what is known of an order's money.
type Financial string

// The states of an order's money.
const (
	Pending           Financial = "pending"
	Authorized        Financial = "authorized"
	Paid              Financial = "paid"
	PartiallyRefunded Financial = "partially_refunded"
	Refunded          Financial = "refunded"
	Voided            Financial = "voided"
	Failed            Financial = "failed"
)

// Order is the state of one order, folded from its events. It holds no personal data.
type Order struct {
	ID          string        `json:"id"`
	Number      string        `json:"number"`
	Customer    string        `json:"customer"`
	Status      Status        `json:"status"`
	Financial   Financial     `json:"financial_status"`
	Lines       []events.Line `json:"lines"`
	Subtotal    money.Money   `json:"subtotal"`
	Shipping    money.Money   `json:"shipping"`
	Discount    money.Money   `json:"discount"`
	Total       money.Money   `json:"total"`
	Method      string        `json:"method"`
	Fingerprint string        `json:"fingerprint"`
	PlacedAt    time.Time     `json:"placed_at"`
	PlacedUS    int64         `json:"placed_us"` // the same in microseconds since 1970, for the index that lists orders

	// DueAt is when the timer ends what is now awaited, in microseconds since 1970: the deadline, or the end of
	// a hold. 0: nothing is awaited. The store keeps an index of it.
	DueAt int64 `json:"due_at,omitempty"`

	Stock    bool     `json:"stock,omitempty"`   // reserved
	Cleared  bool     `json:"cleared,omitempty"` // by fraud, or released by a person
	Payment  *Payment `json:"payment,omitempty"` // nil until authorised
	Hold     *Hold    `json:"hold,omitempty"`    // the last hold, also after its release
	Reason   string   `json:"reason,omitempty"`  // why cancelled or held
	Captured int64    `json:"captured,omitempty"`
	Returned int64    `json:"returned,omitempty"` // minor units refunded so far
	// Refunds by the id of their request; that of a cancellation only when it failed.
	Refunds map[string]RefundState `json:"refunds,omitempty"`
	// Commands that were carried out, by the id of their request: what it was, and the hash of what it said.
	Commands map[string]string `json:"commands,omitempty"`
}

// Payment is what may be shown of a card.
type Payment struct {
	ID       string `json:"id"`
	Brand    string `json:"brand"`
	LastFour string `json:"last_four"`
}

// Hold is why and until when an order waits for a person.
type Hold struct {
	Reason      string    `json:"reason"`
	DuplicateOf string    `json:"duplicate_of,omitempty"`
	Until       time.Time `json:"until"`
}

// RefundState is one refund that was asked for.
type RefundState struct {
	Amount int64  `json:"amount"`
	Reason string `json:"reason"`
	State  string `json:"state"` // requested, done or failed
}

// Exists reports whether the order was ever placed.
func (o Order) Exists() bool { return o.ID != "" }

// Began is when the order was placed: figures show how long it took to be confirmed or cancelled.
func (o Order) Began() time.Time { return o.PlacedAt }

// Open reports whether the order is still on its way to a confirmation.
func (o Order) Open() bool { return o.Status == Placed || o.Status == OnHold }

// keepsMoney reports whether the refund of a cancellation failed, money is left, and none of it is on its way back.
func (o Order) keepsMoney() bool {
	for _, r := range o.Refunds {
		if r.State == "requested" {
			return false
		}
	}
	return o.Refunds[ofCancellation].State == "failed" && o.Returned < o.Captured
}

// Refundable is what was captured and neither refunded nor asked for, in minor units.
func (o Order) Refundable() int64 {
	left := o.Captured - o.Returned
	for _, r := range o.Refunds {
		if r.State == "requested" {
			left -= r.Amount
		}
	}
	return left
}
