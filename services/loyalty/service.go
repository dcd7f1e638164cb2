package loyalty

import (
	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
)

// Rules is the account as a decider.
var Rules = decider.Decider[Account]{Decide: Decide, Evolve: Evolve, Shape: 1}

// Stream is the stream of a customer's account.
func Stream(customer string) string { return "loyalty-" + customer }

// Service declares loyalty.
func Service() service.Definition {
	return service.Definition{
		Name:      "loyalty",
		Publishes: events.Loyalty,
		FromLog:   true,
		Streams:   []decider.Kind{Rules.Kind(Stream(""))},
		Operators: operators(),
		Routes:    routes,
	}
}

// Routes says what the events of payments mean to an account.
func Routes() []decider.Route {
	return []decider.Route{
		decider.On(func(e events.PaymentCaptured) (string, any) {
			return Stream(e.Customer), Earn{e.Customer, e.Order, e.Amount}
		}),
		decider.On(func(e events.PaymentRefunded) (string, any) {
			return Stream(e.Customer), Reverse{e.Customer, e.Order, e.RefundedSoFar, e.Amount}
		}),
	}
}

func operators() []operator.Definition {
	return []operator.Definition{decider.Operator("loyalty.account", Rules, Routes()...)}
}
