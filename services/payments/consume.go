package payments

import (
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

// shape is the version of [Payment]'s JSON.
const shape = 1

// aggregate is the payment as the runtime runs it.
func aggregate() decider.Decider[Payment] {
	return decider.Decider[Payment]{Decide: Decide, Evolve: Evolve, Shape: shape, Jobs: jobsOf}
}

// Routes is what a payment hears: the story of its order, as far as it concerns money.
func Routes() []decider.Route {
	return []decider.Route{
		decider.OnRecorded(func(r events.Recorded, e events.OrderPlaced) (stream string, cmd any) {
			return StreamOf(e.Order), Authorize{Placed: e, Correlation: r.Correlation}
		}),
		decider.On(func(e events.OrderConfirmed) (stream string, cmd any) {
			return StreamOf(e.Order), Capture{Order: e.Order, Amount: e.Total}
		}),
		decider.On(func(e events.OrderCancelled) (stream string, cmd any) {
			return StreamOf(e.Order), Cancel{Order: e.Order, Reason: e.Reason}
		}),
		decider.On(func(e events.OrderRefundRequested) (stream string, cmd any) {
			return StreamOf(e.Order), Refund{Order: e.Order, Command: e.Command, Amount: e.Amount}
		}),
	}
}

func operators() []operator.Definition {
	return []operator.Definition{decider.Operator("payments.pay", aggregate(), Routes()...)}
}
