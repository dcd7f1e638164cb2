package fraud

import (
	"time"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/stream"
)

// Config is what a deployment may choose.
type Config struct {
	// Disorder is how late an authorisation may come after others of its partition; choose the order deadline,
	// since retries at the provider make authorisations late. Default 5 minutes.
	Disorder time.Duration
}

// Service declares fraud.
func Service(cfg Config) service.Definition {
	if cfg.Disorder <= 0 {
		cfg.Disorder = 5 * time.Minute
	}
	return service.Definition{
		Name:      "fraud",
		Publishes: events.Fraud,
		FromLog:   true,
		Streams:   []decider.Kind{stream.Kind(Stream(""))},
		Operators: []operator.Definition{duplicates(cfg.Disorder)},
	}
}

// duplicates judges payments in memory; its state is saved with the offsets.
func duplicates(disorder time.Duration) operator.Definition {
	from := stream.From(events.Payments, events.PaymentAuthorized{}, events.PaymentVoided{}).
		KeyBy(card).At(purchasedAt).Disorder(disorder)
	return from.Process("fraud.duplicates", stream.Rule[Purchases]{
		Apply: Judge, Until: Purchases.Until, Trim: Purchases.Trim,
		Stream: func(e events.Event) string {
			switch v := e.(type) {
			case events.PurchaseCleared:
				return Stream(v.Payment)
			case events.PurchaseHeld:
				return Stream(v.Payment)
			}
			return ""
		},
	})
}

// Stream is the stream of a payment's verdict.
func Stream(payment string) string { return "verdict-" + payment }

func card(r events.Recorded) string {
	return Key(purchase(r))
}

func purchasedAt(r events.Recorded) time.Time {
	return purchase(r).PurchasedAt
}

func purchase(r events.Recorded) events.Purchase {
	switch e := r.Event.(type) {
	case events.PaymentAuthorized:
		return e.Purchase
	case events.PaymentVoided:
		return e.Purchase
	}
	return events.Purchase{}
}
