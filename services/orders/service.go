package orders

import (
	"context"
	"embed"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/service"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service declares orders.
func Service(cfg Config) service.Definition {
	cfg = cfg.withDefaults()
	return service.Definition{
		Name:      "orders",
		Publishes: events.Orders,
		FromLog:   true,
		Streams:   []decider.Kind{Rules.Kind(Stream(""))},
		Schema:    migrations,
		Operators: operators(cfg),
		Routes:    routes(cfg),
		Loops:     []service.Loop{timer},
		Ready:     func(ctx context.Context, rt service.Runtime) error { return replicaFilled(ctx, rt.Store, cfg.Products) },
	}
}
