package orders

import (
	"time"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/money"
)

// Commands from people.
type (
	// Place opens an order. Its lines carry the prices of our own replica of the catalogue.
	Place struct {
		Order, Number, Customer string
		Lines                   []events.Line
		Shipping, Discount      money.Money
		PaymentMethod           string
		Personal                events.Personal
		PlacedAt, ConfirmBy     time.Time
		Fingerprint             string
	}
	// Cancel is a customer's or an operator's wish to cancel.
	Cancel struct{ Command, By, Detail string }
	// Release lets a held order go on, until the hold ends. A customer may release only what was held as a duplicate.
	Release struct {
		Command, By    string
		Operator       bool
		Now, ConfirmBy time.Time
	}
	// Refund gives back part of what was paid; no amount at all (not even a currency) means all that is left. Of a
	// cancelled order, which gives all back by itself, only an operator may ask, once that has failed.
	Refund struct {
		Command, By, Reason string
		Operator            bool
		Amount              money.Money
	}
)

// Commands that state what other services found out.
type (
	// NoteReserved says that inventory holds every line.
	NoteReserved struct{}
	// NoteRefused says that a line is out of stock.
	NoteRefused struct{ Missing []events.Missing }
	// NoteAuthorized says that the money is reserved.
	NoteAuthorized struct {
		Payment, Brand, LastFour string
		Amount                   money.Money
	}
	// NoteDeclined says that the card was refused.
	NoteDeclined struct{ Payment, Code string }
	// NoteCleared says that fraud has no objection.
	NoteCleared struct{ Payment string }
	// NoteHeld says that fraud wants the order held.
	NoteHeld struct {
		Payment, Reason, DuplicateOf string
		Until                        time.Time
	}
	// NoteCaptured says that the money was taken.
	NoteCaptured struct {
		Payment string
		Amount  money.Money
	}
	// NoteCaptureFailed says that the provider would not capture.
	NoteCaptureFailed struct{ Payment, Code string }
	// NoteVoided says that the reserved money was given back.
	NoteVoided struct{ Payment string }
	// NoteRefunded says that money went back.
	NoteRefunded struct {
		Payment, Command      string
		Amount, RefundedSoFar money.Money
	}
	// NoteRefundFailed says that the provider would not refund.
	NoteRefundFailed struct {
		Payment, Command, Code string
		Amount                 money.Money
	}
)

// Expire is the timer's command: whatever is due at Now ends.
type Expire struct{ Now time.Time }
