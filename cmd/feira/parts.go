package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/feira-shop/feira/internal/gateway"
	"github.com/feira-shop/feira/internal/host"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
	"github.com/feira-shop/feira/sim/provider"
)

// handler is everything this process answers: health and metrics, the provider's paths in parts, and the API of its
// services; of all services when it is the gateway.
func (c *runCmd) handler(h *host.Host, log *slog.Logger, health *web.Health, metrics *telemetry.Metrics, tracing *telemetry.Tracing, parts *http.ServeMux) (http.Handler, error) {
	front := host.Front{Pages: parts, Health: health, Metrics: metrics, Log: log}
	if c.has("provider") && len(c.Parts) == 1 {
		front.AddHealth()
		return parts, nil
	}
	backends := map[string]http.Handler{}
	for name, handler := range h.Handlers() {
		backends[name] = handler
	}
	if front.Public = c.has("gateway") || c.has("all"); front.Public {
		for name, address := range c.Upstreams {
			proxy, err := gateway.Proxy(address, log, tracing.Service("gateway"))
			if err != nil {
				return nil, err
			}
			if backends[name] == nil {
				backends[name] = proxy
			}
		}
	}
	front.Services = backends
	return front.Handler()
}

// provider adds the payment provider simulator, with its own store, to the paths of this process.
func (c *runCmd) provider(ctx context.Context, log *slog.Logger, metrics *telemetry.Metrics, tracing *telemetry.Tracing, health *web.Health, parts *http.ServeMux) (stop func(), err error) {
	if len(c.Parts) > 1 {
		return nil, errors.New("the provider is the outside world: run it as a process of its own")
	}
	if c.ProvideKey == "" {
		return nil, errors.New("the provider needs the secret its clients send: set --provider-key (FEIRA_PROVIDER_KEY)")
	}
	dsn, err := c.dsn("provider")
	if err != nil {
		return nil, err
	}
	if c.Migrate {
		if err := pg.Migrate(ctx, dsn, provider.Migrations()); err != nil {
			return nil, err
		}
	}
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "provider", MaxConns: c.MaxConns})
	if err != nil {
		return nil, err
	}
	server := provider.New(provider.Options{
		Pool: pool, Key: c.ProvideKey, Delay: c.Delay, Log: log, Metrics: metrics.Service("provider"), Tracer: tracing.Service("provider"),
	})
	health.Add("provider", server.Ready)
	parts.Handle("/", server.Handler())
	context.AfterFunc(ctx, server.Close) // answers that are late on purpose do not hold up the end
	return pool.Close, nil
}
