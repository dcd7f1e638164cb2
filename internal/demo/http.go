package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/feira-shop/feira/internal/host"
	"github.com/feira-shop/feira/internal/live"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

// mount builds the one public address: the API, its page, the live page, health and metrics.
func (d *demo) mount(metrics *telemetry.Metrics) (err error) {
	feed := live.New()
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", feed.Page)
	pages.HandleFunc("GET /live", feed.Events)
	d.handler, err = host.Front{
		Services: d.host.Handlers(), Pages: pages, Health: d.health, Metrics: metrics, Log: d.log,
	}.Handler()
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
