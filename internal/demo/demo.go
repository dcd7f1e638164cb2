// Package demo runs the whole shop in one process on embedded infrastructure: Kafka, Postgres, every service, the
// payment provider and simulated shoppers.
package demo

import (
	"context"
	"errors"
	"fmt"
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

// customerRate is how many requests a minute one customer may make at each service: far above what shoppers need, and
// the shopkeeper, who looks at every shelf each second.
const customerRate = 6000

// Hold is how long the demo holds a suspected duplicate.
const Hold = 10 * time.Second

const (
	// The provider answers some requests later than payments waits, as real ones do.
	providerDelay = 6 * time.Second
	stopWithin    = 10 * time.Second // what services may take to stop
)

// demo is a running demo.
type demo struct {
	opts     Options
	console  *console
	log      *slog.Logger
	infra    *infra
	all      []service.Definition
	host     *host.Host
	metrics  *telemetry.Metrics
	tracing  *telemetry.Tracing
	listener net.Listener
	provider string // address
	hurry    func() // has the provider give the answers that are late on purpose
	shop     string // address
	health   *web.Health
	handler  http.Handler
	stops    []func()
}

// Run runs the demo until ctx ends or the time is over. An error of [VerifyError] says that the books do not balance,
// [ErrInterrupted] that ctx ended before the time was over.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	d := &demo{opts: o, console: &console{out: o.Out, width: o.Width}, metrics: telemetry.NewMetrics()}
	defer d.stop()
	err := d.run(ctx)
	var differs *VerifyError
	if ctx.Err() == nil || errors.As(err, &differs) {
		return err
	}
	if o.For > 0 {
		return ErrInterrupted
	}
	return nil
}

func (d *demo) run(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.introduce(); err != nil {
		return err
	}
	return d.trade(ctx)
}

func (d *demo) start(ctx context.Context) error {
	began := time.Now()
	if err := d.listen(ctx); err != nil {
		return err
	}
	d.console.note("starting Kafka and Postgres …")
	var err error
	if d.infra, err = startInfra(ctx, d.opts); err != nil {
		return d.opts.explain(err)
	}
	d.stops = append(d.stops, d.infra.stop)
	if err := d.openLog(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.startTracing, d.startProvider, d.startServices, d.serve} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := host.AwaitReady(ctx, d.health); err != nil {
		return err
	}
	d.console.note("ready after %s", time.Since(began).Round(10*time.Millisecond))
	return nil
}

// openLog sends the services' logs to a file, so that the terminal stays readable.
func (d *demo) openLog() error {
	f, err := os.OpenFile(d.infra.path(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	d.stops = append(d.stops, func() { _ = f.Close() })
	d.log, err = telemetry.NewLogger(f, slog.LevelInfo, telemetry.JSON)
	return err
}

// startTracing exports traces where the environment names a collector.
func (d *demo) startTracing(ctx context.Context) (err error) {
	d.tracing, err = telemetry.NewTracing(ctx, telemetry.TracingOptions{Instance: "demo", Log: d.log})
	d.stops = append(d.stops, func() { d.tracing.Stop(ctx) })
	return err
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
	d.stops = append(d.stops, pool.Close)
	server := provider.New(provider.Options{
		Pool: pool, Key: d.infra.providerKey, Delay: providerDelay, Log: d.log, Metrics: d.metrics.Service("provider"),
		Tracer: d.tracing.Service("provider"),
	})
	listener, err := d.infra.listenAgain(ctx, "FEIRA_PROVIDER_URL")
	if err != nil {
		return fmt.Errorf("open a port for the payment provider: %w", err)
	}
	d.provider = "http://" + listener.Addr().String()
	d.serveUntilStop(listener, server.Handler())
	d.hurry = server.Close
	return nil
}

func (d *demo) startServices(ctx context.Context) error {
	d.all = shop.Services(shop.Config{
		Deadline: d.opts.Deadline, Hold: Hold, ProviderURL: d.provider, ProviderKey: d.infra.providerKey, Fraud: d.opts.Fraud,
		Analytics: d.opts.Analytics,
	})
	ours, err := shop.Without(d.all, d.opts.Without...)
	if err != nil {
		return err
	}
	d.console.note("bringing %d databases and %d topics up to date …", len(d.all)+1, len(events.Topics()))
	if err := d.infra.prepare(ctx, d.all); err != nil {
		return err
	}
	verifier, err := auth.NewVerifier(ctx, d.infra.jwks, auth.Options{Log: d.log})
	if err != nil {
		return err
	}
	d.console.note("starting %d services …", len(ours))
	d.host, err = host.Start(ctx, host.Config{
		Services: ours, Kafka: d.infra.kafka.Config("feira"), Member: "demo", Auth: verifier, Log: d.log, Metrics: d.metrics,
		Tracing: d.tracing, DSN: d.dsn, Rate: web.RateLimit{Requests: customerRate, Window: time.Minute},
	})
	if err != nil {
		return d.opts.explain(err)
	}
	d.stops = append(d.stops, func() {
		d.hurry()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		d.host.Stop(limit)
	})
	d.health = web.NewHealth(d.log)
	d.host.AddChecks(d.health)
	return d.mount()
}

func (d *demo) dsn(database string) (string, error) { return d.infra.postgres.DSN(database), nil }

// stop undoes the start, last first.
func (d *demo) stop() {
	for i := len(d.stops) - 1; i >= 0; i-- {
		d.stops[i]()
	}
}

// logFile is where the services' logs go, in the demo's folder.
const logFile = "feira.log"

func (in *infra) path(parts ...string) string {
	return filepath.Join(append([]string{in.dir}, parts...)...)
}
