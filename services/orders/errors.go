package orders

import (
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/money"
)

// NotFoundError says that a command names an order that was never placed.
type NotFoundError struct{ Command string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("orders: %s is for an order that was never placed", e.Command)
}

// KeyReusedError says that an Idempotency-Key came again with another request.
type KeyReusedError struct{ Order string }

func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("orders: this Idempotency-Key was used for another request (order %s); use a new key for a new request", e.Order)
}

// TransitionError says that an order is too far on its way for what was asked.
type TransitionError struct {
	Order, Wish string
	Status      Status
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("orders: cannot %s order %s: it is %s", e.Wish, e.Order, e.Status)
}

// ForbiddenError says that only an operator may release this hold.
type ForbiddenError struct{ Order, Reason string }

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("orders: order %s is held for %s; only an operator may release it", e.Order, e.Reason)
}

// HoldEndedError says that a hold ended before its release was asked for: the order is about to be cancelled.
type HoldEndedError struct {
	Order string
	Until time.Time
}

func (e *HoldEndedError) Error() string {
	return fmt.Sprintf("orders: cannot release order %s: its hold ended at %s", e.Order, e.Until.Format(time.RFC3339))
}

// RefundError says that more was asked back than is left of what was paid.
type RefundError struct {
	Order       string
	Asked, Left money.Money
}

func (e *RefundError) Error() string {
	return fmt.Sprintf("orders: cannot refund %s of order %s: %s is left", e.Asked, e.Order, e.Left)
}

// SumError says that prices and quantities do not add up; it is a fault of ours, never of the customer.
type SumError struct {
	SKU       string // of the line; "" when it is the whole
	Want, Got money.Money
}

func (e *SumError) Error() string {
	if e.SKU == "" {
		return fmt.Sprintf("orders: the order does not add up: its total is %s, at least %s is wanted, "+
			"and neither shipping nor discount below zero", e.Got, e.Want)
	}
	return fmt.Sprintf("orders: line %q does not add up: %s wanted, %s given, for at least one piece", e.SKU, e.Want, e.Got)
}
