package demo

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/feira-shop/feira/api"
	"github.com/feira-shop/feira/internal/gateway"
	"github.com/feira-shop/feira/internal/live"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

// mount builds the one public address: the API, its page, the live page, health and metrics.
func (d *demo) mount(metrics *telemetry.Metrics) error {
	feed := live.New()
	spec, err := api.Spec()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	health := d.health.Handler(metrics.Handler())
	for _, p := range []string{"/livez", "/readyz", "/metrics"} {
		mux.Handle(p, health)
	}
	mux.HandleFunc("GET /{$}", feed.Page)
	mux.HandleFunc("GET /live", feed.Events)
	d.handler, err = gateway.New(gateway.Options{
		Spec: spec, Source: api.Source(), Services: d.host.Handlers(), Page: mux, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.background(func(ctx context.Context) {
		if err := feed.Run(ctx, d.infra.kafka.Config("feira-live"), events.Topics(), d.log); err != nil {
			d.log.Error("the live page stopped", "error", err)
		}
	})
	return nil
}

// serve opens the shop's address.
func (d *demo) serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.opts.Listen)
	if err != nil {
		return fmt.Errorf("open the shop's address (choose another with --listen): %w", err)
	}
	d.shop = "http://" + listener.Addr().String()
	d.serveUntilStop(listener, d.handler)
	return nil
}

// serveUntilStop answers requests until the demo stops, and lets those in flight finish.
func (d *demo) serveUntilStop(listener net.Listener, h http.Handler) {
	d.background(func(ctx context.Context) {
		if err := web.ServeListener(ctx, listener, h, d.log); err != nil {
			d.log.Error("a server stopped", "address", listener.Addr().String(), "error", err)
		}
	})
}

// background runs f until the demo stops, which waits for f's end.
func (d *demo) background(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	d.stops = append(d.stops, func() { cancel(); <-done })
}

// sorted lists failing checks by name.
func sorted(failing map[string]error) []error {
	var list []error
	for _, name := range slices.Sorted(maps.Keys(failing)) {
		list = append(list, fmt.Errorf("%s: %w", name, failing[name]))
	}
	return list
}
