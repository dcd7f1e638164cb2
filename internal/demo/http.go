package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/feira-shop/feira/internal/host"
	"github.com/feira-shop/feira/internal/live"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/web"
)

// listen takes the shop's address before anything is started, so that nobody waits to be told that it is taken. Who
// connects from now on gets an answer once the shop is ready.
func (d *demo) listen(ctx context.Context) (err error) {
	d.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", d.opts.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return takenError("the shop", d.opts.Listen, "--listen")
	}
	if err != nil {
		return fmt.Errorf("the shop cannot listen on %s (choose another address with --listen): %w", d.opts.Listen, err)
	}
	d.stops = append(d.stops, func() { _ = d.listener.Close() })
	d.shop = "http://" + reachable(d.listener.Addr())
	return nil
}

// reachable is an address that this machine can connect to: one that listens everywhere has none of its own.
func reachable(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", t.Port)
	}
	return a.String()
}

// mount builds the one public address: the API, its page, the live page, health and metrics.
func (d *demo) mount() (err error) {
	feed := live.New()
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", feed.Page)
	pages.HandleFunc("GET /live", feed.Events)
	d.handler, err = host.Front{
		Services: d.host.Handlers(), Pages: pages, Health: d.health, Metrics: d.metrics, Public: true, Log: d.log,
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

// serve opens the shop.
func (d *demo) serve(context.Context) error {
	d.serveUntilStop(d.listener, d.handler)
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
