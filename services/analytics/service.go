package analytics

import (
	"embed"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/service"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service declares analytics.
func Service() service.Definition {
	return service.Definition{
		Name:      "analytics",
		Publishes: events.Analytics,
		Schema:    migrations,
	}
}
