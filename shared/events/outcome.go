package events

import "slices"

// Ending is an event that ends something in one of a few ways which figures tell apart: an order is cancelled for lack
// of stock, by its deadline, by the customer.
type Ending interface {
	Event
	// Outcome is the way in which it ended. It becomes a label of a metric, so it is one of Outcomes; another one is
	// counted as "other".
	Outcome() string
	// Outcomes lists every way. They belong to the type: a zero value gives them too.
	Outcomes() []string
}

// otherOutcome stands for those that are not listed, so that no data can make labels.
const otherOutcome = "other"

// OutcomeOf says in which way an event ended something; ends is false for an event that ends nothing.
func OutcomeOf(e Event) (outcome string, ends bool) {
	ending, ends := e.(Ending)
	if !ends {
		return "", false
	}
	if outcome = ending.Outcome(); !slices.Contains(ending.Outcomes(), outcome) {
		return otherOutcome, true
	}
	return outcome, true
}

// Outcome of a confirmed order: there is one way, so it has no name.
func (OrderConfirmed) Outcome() string { return "" }

// Outcomes implements [Ending].
func (OrderConfirmed) Outcomes() []string { return []string{""} }

// Outcome of a cancelled order is the reason.
func (e OrderCancelled) Outcome() string { return e.Reason }

// Outcomes implements [Ending].
func (OrderCancelled) Outcomes() []string {
	return []string{
		ReasonOutOfStock, ReasonPaymentDeclined, ReasonDuplicatePurchase, ReasonFraud, ReasonDeadline, ReasonCustomer,
	}
}
