package service

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/decider"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/relay"
	"github.com/feira-shop/feira/shared/stream"
)

// Definition is all there is to say about a service. The demo, feira run, compose and tests run it alike.
type Definition struct {
	Name      string
	Publishes events.Topic   // zero: publishes nothing
	Private   []events.Event // prototypes of events the service keeps to itself
	// FromLog says that all it keeps follows from the events it publishes and hears, so that events its store lost can
	// be copied back from its topic.
	FromLog   bool
	Streams   []decider.Kind // what its streams' states are computed from
	Schema    fs.FS          // goose files (migrations/*.sql) of the service's own tables; nil: none
	Operators []operator.Definition
	Jobs      []jobs.Definition
	// Routes mounts the service's part of the public API; nil: none.
	Routes func(rt Runtime, r chi.Router)
	// Loops run beside the operators until ctx ends (timers). One that returns before is started again.
	Loops []Loop
	// Seed writes what must be there before the service opens; it is idempotent. nil: nothing.
	Seed func(ctx context.Context, rt Runtime) error
	// Figures are metrics of the service's own. nil: none.
	Figures []prometheus.Collector
	// Ready says why the service cannot do its work yet, or nil; beside the checks every service has. nil: none.
	Ready func(ctx context.Context, rt Runtime) error
}

// Loop is a background activity of a service.
type Loop struct {
	Name string
	Run  func(ctx context.Context, rt Runtime) error
}

// Runtime is what a running service gives its routes, loops and seed.
type Runtime struct {
	Store *eventstore.Store
	Log   *slog.Logger
	Kafka kafka.Config // for what is no event of the service's own, and so not written by its relay
}

// Topics lists what the service reads and writes, each once.
func (d Definition) Topics() []events.Topic {
	var list []events.Topic
	seen := map[string]bool{"": true}
	add := func(t events.Topic) {
		if !seen[t.Name] {
			seen[t.Name] = true
			list = append(list, t)
		}
	}
	add(d.Publishes)
	for _, o := range d.Operators {
		for _, t := range o.Topics {
			add(t)
		}
	}
	return list
}

// Registry decodes the shared events and the service's own.
func (d Definition) Registry() *events.Registry { return events.NewRegistry(d.Private...) }

// Migrate brings the service's database, named by dsn, to what this version needs.
func (d Definition) Migrate(ctx context.Context, dsn string) error {
	sets := []pg.Set{eventstore.Migrations(), relay.Migrations(), operator.Migrations(), stream.Migrations()}
	if err := pg.Migrate(ctx, dsn, sets...); err != nil {
		return err
	}
	if len(d.Jobs) > 0 {
		if err := jobs.Migrate(ctx, dsn); err != nil {
			return err
		}
	}
	if d.Schema == nil {
		return nil
	}
	files, err := fs.Sub(d.Schema, "migrations")
	if err != nil {
		return fmt.Errorf("migrate %s: %w", d.Name, err)
	}
	return pg.Migrate(ctx, dsn, pg.Set{Name: d.Name, FS: files})
}
