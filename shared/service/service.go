package service

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/operator"
)

// Definition is all there is to say about a service. The demo, feira run, compose and tests run it alike.
type Definition struct {
	Name      string
	Publishes events.Topic   // zero: publishes nothing
	Private   []events.Event // prototypes of events the service keeps to itself
	Schema    fs.FS          // goose migrations (*.sql) of the service's own tables; nil: none
	Operators []operator.Definition
	Jobs      []jobs.Definition
	// Routes mounts the service's part of the public API; nil: none.
	Routes func(rt Runtime) http.Handler
	// Loops run beside the operators until ctx ends (timers). A returned error restarts the loop.
	Loops []Loop
	// Seed writes what must be there before the service opens; it must be idempotent. nil: nothing.
	Seed func(ctx context.Context, rt Runtime) error
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
}
