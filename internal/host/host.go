// Package host runs any subset of the services in one process, with their HTTP side.
package host

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

// Config is where the services run.
type Config struct {
	Services []service.Definition
	DSN      func(service string) (string, error) // address of a service's database
	Kafka    kafka.Config
	Member   string       // stable name of this process among its replicas
	MaxConns int32        // per service; 0 is the services' default
	Keep     service.Keep // how long what only people look at is kept
	Auth     *auth.Verifier
	Rate     web.RateLimit
	Proxied  bool // a gateway of ours, in another process, is in front: see web.Options
	Log      *slog.Logger
	Metrics  *telemetry.Metrics
	Tracing  *telemetry.Tracing // nil: none
}

// Host is a process's running services.
type Host struct {
	running  []*service.Running
	handlers map[string]http.Handler
}

// undoTimeout bounds the stop of the services that a failed start has started.
const undoTimeout = 10 * time.Second

// Start starts all services, or none.
func Start(ctx context.Context, cfg Config) (*Host, error) {
	h := &Host{handlers: map[string]http.Handler{}}
	var mu sync.Mutex
	var g errgroup.Group
	for _, d := range cfg.Services {
		g.Go(func() error {
			dsn, err := cfg.DSN(d.Name)
			if err != nil {
				return err
			}
			r, err := service.Start(ctx, d, service.Config{
				DSN: dsn, Kafka: cfg.Kafka, Member: cfg.Member, MaxConns: cfg.MaxConns, Log: cfg.Log, Metrics: cfg.Metrics.Service(d.Name),
				Tracer: cfg.Tracing.Service(d.Name), Keep: cfg.Keep,
			})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			h.running = append(h.running, r)
			return h.route(r, cfg)
		})
	}
	if err := g.Wait(); err != nil {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		h.Stop(limit)
		return nil, err
	}
	return h, nil
}

// route builds the HTTP side of a service that has one.
func (h *Host) route(r *service.Running, cfg Config) error {
	d := r.Definition
	if d.Routes == nil {
		return nil
	}
	spec, err := api.Spec()
	if err != nil {
		return err
	}
	router, err := web.New(web.Options{
		Name: d.Name, Spec: spec, Tags: []string{d.Name}, Auth: cfg.Auth, Log: cfg.Log, Metrics: cfg.Metrics.Service(d.Name),
		Tracer: cfg.Tracing.Service(d.Name), Rate: cfg.Rate, Proxied: cfg.Proxied,
	})
	if err != nil {
		return fmt.Errorf("routes of %s: %w", d.Name, err)
	}
	d.Routes(r.Runtime, router)
	h.handlers[d.Name] = router
	return nil
}

// Handlers are the services' parts of the public API, by the name of the service.
func (h *Host) Handlers() map[string]http.Handler { return h.handlers }

// AddChecks adds the checks of all services to health, as "service: part".
func (h *Host) AddChecks(health *web.Health) {
	for _, r := range h.running {
		for part, check := range r.Checks() {
			health.Add(r.Definition.Name+": "+part, check)
		}
	}
}

// Stop stops all services at once, within ctx.
func (h *Host) Stop(ctx context.Context) {
	var wg sync.WaitGroup
	for _, r := range h.running {
		wg.Go(func() { r.Stop(ctx) })
	}
	wg.Wait()
}
