// Package demo runs the whole shop in one process on embedded infrastructure: Kafka, Postgres, every service, the
// payment provider and simulated shoppers.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/feira-shop/feira/internal/host"
	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
	"github.com/feira-shop/feira/sim/provider"
)

// Options are what a user may choose.
type Options struct {
	Listen      string        // address of the shop
	KafkaListen string        // address of the broker
	Data        string        // folder kept between runs; "": a temporary one
	Shoppers    float64       // new orders per second; 0: nobody
	For         time.Duration // then stop, settle, summarise and verify; 0: until interrupted
	Deadline    time.Duration // from placed to confirmed
	Without     []string      // services that are left to other processes
	Seed        int64         // of the shoppers' choices
	Out         io.Writer     // what a person reads
	Terminal    bool          // Out is a terminal: a live line is kept up to date
}

// Hold is how long the demo holds a suspected duplicate.
const Hold = 10 * time.Second

// The provider answers some requests later than payments waits, as real ones do.
const providerDelay = 6 * time.Second

// demo is a running demo.
type demo struct {
	opts     Options
	log      *slog.Logger
	infra    *infra
	all      []service.Definition
	host     *host.Host
	provider string // address
	shop     string // address
	health   *web.Health
	handler  http.Handler
	stops    []func()
}

// Run runs the demo until ctx ends or the time is over. An error of [VerifyError] says that the books do not balance.
func Run(ctx context.Context, o Options) error {
	d := &demo{opts: o}
	defer d.stop()
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.introduce(); err != nil {
		return err
	}
	return d.trade(ctx)
}

func (d *demo) start(ctx context.Context) error {
	var err error
	started := time.Now()
	d.note("starting Kafka and Postgres …")
	if d.infra, err = startInfra(ctx, d.opts); err != nil {
		return err
	}
	d.stops = append(d.stops, d.infra.stop)
	if err := d.openLog(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.startProvider, d.startServices, d.serve, d.awaitReady} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	d.note("ready after %s", time.Since(started).Round(10*time.Millisecond))
	return nil
}

// openLog sends the services' logs to a file, so that the terminal stays readable.
func (d *demo) openLog() error {
	f, err := os.OpenFile(filepath.Join(d.infra.dir, "feira.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	d.log = slog.New(slog.NewJSONHandler(f, nil))
	d.stops = append(d.stops, func() { _ = f.Close() })
	return nil
}

// startProvider runs the payment provider as the separate server that it is, with a database of its own.
func (d *demo) startProvider(ctx context.Context) error {
	if err := d.infra.postgres.CreateDatabase(ctx, providerDatabase); err != nil {
		return err
	}
	dsn := d.infra.postgres.DSN(providerDatabase)
	if err := pg.Migrate(ctx, dsn, provider.Migrations()); err != nil {
		return err
	}
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "provider", MaxConns: 8})
	if err != nil {
		return err
	}
	server := provider.New(provider.Options{Pool: pool, Key: d.infra.providerKey, Delay: providerDelay, Log: d.log})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		pool.Close()
		return fmt.Errorf("open a port for the payment provider: %w", err)
	}
	d.provider = "http://" + listener.Addr().String()
	d.stops = append(d.stops, pool.Close)
	d.serveUntilStop(listener, server.Handler())
	return nil
}

func (d *demo) startServices(ctx context.Context) error {
	d.all = shop.Services(shop.Config{
		Deadline: d.opts.Deadline, Hold: Hold, ProviderURL: d.provider, ProviderKey: d.infra.providerKey,
	})
	ours, err := shop.Without(d.all, d.opts.Without...)
	if err != nil {
		return err
	}
	d.note("bringing %d databases and %d topics up to date …", len(d.all)+1, len(events.Topics()))
	if err := d.infra.prepare(ctx, d.all); err != nil {
		return err
	}
	verifier, err := auth.NewVerifier(ctx, d.infra.jwks, auth.Options{Log: d.log})
	if err != nil {
		return err
	}
	d.note("starting the services …")
	metrics := telemetry.NewMetrics()
	d.host, err = host.Start(ctx, host.Config{
		Services: ours, Kafka: d.infra.kafka.Config("feira"), Member: "demo", Auth: verifier, Log: d.log, Metrics: metrics,
		DSN: func(name string) (string, error) { return d.infra.postgres.DSN(name), nil },
	})
	if err != nil {
		return err
	}
	d.stops = append(d.stops, func() {
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		d.host.Stop(limit)
	})
	d.health = web.NewHealth(d.log)
	d.host.AddChecks(d.health)
	return d.mount(metrics)
}

// note tells a person what goes on.
func (d *demo) note(format string, args ...any) {
	_, _ = fmt.Fprintf(d.opts.Out, "feira: "+format+"\n", args...)
}

// awaitReady waits until every check passes.
func (d *demo) awaitReady(ctx context.Context) error { return host.AwaitReady(ctx, d.health) }

// stop undoes the start, last first.
func (d *demo) stop() {
	for i := len(d.stops) - 1; i >= 0; i-- {
		d.stops[i]()
	}
}
