package payments

import (
	"fmt"

	"github.com/feira-shop/feira/shared/money"
)

// AmountError says that the amounts of an order do not add up, so nothing is charged. The event is parked for
// a person to look at: orders checks the same sum, so one of the two services has an error.
type AmountError struct {
	Order      string
	Want, Have money.Money
	What       string // the sum that is wrong
}

func (e *AmountError) Error() string {
	return fmt.Sprintf("payments: order %s: %s is %s, but should be %s; nothing is charged before orders and payments agree",
		e.Order, e.What, e.Have, e.Want)
}

// MethodError says that an order is to be paid in a way that payments does not know.
type MethodError struct{ Order, Method string }

func (e *MethodError) Error() string {
	return fmt.Sprintf("payments: order %s is to be paid by %q; only a card with a token of the provider can be charged", e.Order, e.Method)
}

// OrderError says that an event came before the one it builds on. Events of one order are read in the order
// in which they happened, so something was lost or skipped before it.
type OrderError struct {
	Order   string
	Command string
	Status  Status
}

func (e *OrderError) Error() string {
	status := e.Status
	if status == None {
		status = "unknown"
	}
	return fmt.Sprintf("payments: order %s: %s cannot be done while its payment is %s; an earlier event of the order is missing",
		e.Order, e.Command, status)
}
