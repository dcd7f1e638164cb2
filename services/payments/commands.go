package payments

import (
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// What the order's events ask of a payment.

// Authorize asks to reserve the total of an order that was placed.
type Authorize struct {
	Placed      events.OrderPlaced
	Correlation string // of the order's story; kept for what comes out of jobs
}

// Capture asks to take the money of an order that was confirmed.
type Capture struct {
	Order  string
	Amount money.Money // the order's total; must be what was authorised
}

// Cancel asks to give back whatever there is, because the order was cancelled.
type Cancel struct{ Order, Reason string }

// Refund asks to give back part or all of what was captured.
type Refund struct {
	Order   string
	Command string // id of the request; a repeat of it changes nothing
	Amount  money.Money
}

// What the provider answered. An answer that no longer matters changes nothing; none of them is ever refused,
// since what happened at the provider has happened.

// Card is what the provider says of the card behind a token.
type Card struct{ Fingerprint, Brand, LastFour string }

// Authorized is the provider's yes to an authorisation.
type Authorized struct {
	Authorization string // the provider's id
	Card          Card
}

// Declined is the provider's no to an authorisation.
type Declined struct {
	Code string
	Card Card // zero where the provider did not say
}

// Blocked says that the authorisation's key had been voided before it was asked for.
type Blocked struct{}

// Captured says that the money was taken.
type Captured struct{}

// CaptureRefused says that the provider does not capture what it authorised.
type CaptureRefused struct{ Code string }

// Voided says that the authorisation was given back or can never come into being.
type Voided struct {
	Card Card // of the authorisation that was voided; zero where there was none
}

// Refunded says that the refund with this idempotency key was made.
type Refunded struct{ Key string }

// RefundRefused says that the provider does not make the refund with this idempotency key.
type RefundRefused struct{ Key, Code string }
