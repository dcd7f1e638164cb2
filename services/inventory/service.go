package inventory

import (
	"context"
	"embed"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/service"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Config is what a deployment may choose.
type Config struct {
	// First are the deliveries that the shop starts with; each counts once, whatever the number of starts.
	First []Delivery
}

// Service declares inventory.
func Service(cfg Config) service.Definition {
	return service.Definition{
		Name:      "inventory",
		Publishes: events.Inventory,
		Private:   []events.Event{ReservationClosed{}},
		Streams: []decider.Kind{
			reservations.Kind(Stream("")),
			decider.KindOf(receiptStream(Delivery{}), shape, Delivery{}, received),
		},
		Schema:    migrations,
		Operators: []operator.Definition{reserveOperator},
		Routes:    routes,
		Seed: func(ctx context.Context, rt service.Runtime) error {
			_, err := receive(ctx, rt.Store, "inventory", cfg.First)
			return err
		},
	}
}
