package catalog

import (
	"context"
	"embed"
	"errors"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/service"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Config is what a deployment may choose.
type Config struct {
	// First are the products that the shop starts with. One that exists is left as it is.
	First []events.ProductChanged
}

// Service declares catalog.
func Service(cfg Config) service.Definition {
	return service.Definition{
		Name:      "catalog",
		Publishes: events.Catalog,
		Streams:   []decider.Kind{decider.KindOf(Stream(""), shape, events.ProductChanged{}, latest)},
		Schema:    migrations,
		Routes:    routes,
		Seed: func(ctx context.Context, rt service.Runtime) error {
			for _, p := range cfg.First {
				_, err := put(ctx, rt.Store, p, 0, "catalog")
				var exists *VersionError
				if err != nil && !errors.As(err, &exists) {
					return err
				}
			}
			return nil
		},
	}
}
