package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feira-shop/feira/internal/host"
	"github.com/feira-shop/feira/internal/shop"
	"github.com/feira-shop/feira/services/payments"
	"github.com/feira-shop/feira/shared/auth"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/service"
	"github.com/feira-shop/feira/shared/telemetry"
	"github.com/feira-shop/feira/shared/web"
)

type runCmd struct {
	databases `embed:""`
	brokers   `embed:""`
	safety    `embed:""`
	judging   `embed:""`
	windowing `embed:""`

	Parts []string `arg:"" help:"Services by name, gateway, provider, or all: every service and the gateway."`

	Listen     string            `env:"FEIRA_LISTEN" default:"127.0.0.1:8081" help:"Address of this process: its part of the API, /livez, /readyz and /metrics; port 0 takes any free one."`
	Member     string            `env:"FEIRA_MEMBER" help:"Stable name of this process among its replicas, which makes restarts quick (default: the host's name)."`
	JWKS       string            `name:"jwks" env:"FEIRA_JWKS" placeholder:"FILE|URL" help:"Key set that tokens are verified by; what has an API does not start without one."`
	Deadline   time.Duration     `env:"FEIRA_DEADLINE" default:"5m" help:"How long an order may take from placed to confirmed."`
	Hold       time.Duration     `env:"FEIRA_HOLD" default:"15m" help:"How long a suspected duplicate waits for its release."`
	MaxConns   int32             `env:"FEIRA_MAX_CONNS" default:"8" help:"Connections of each service to its database for requests; operators and what writes have their own."`
	Rate       int               `env:"FEIRA_RATE" default:"1200" help:"Requests a customer may make per minute at each service; 0: no limit."`
	Behind     bool              `name:"behind-gateway" env:"FEIRA_BEHIND_GATEWAY" help:"Clients come through a gateway in another process only: who is not signed in is limited by the address that it passes on, not by the gateway's own."`
	Upstreams  map[string]string `env:"FEIRA_UPSTREAMS" placeholder:"SERVICE=HOST:PORT" mapsep:"," help:"For the gateway: where services are that do not run in this process; several by commas."`
	Migrate    bool              `env:"FEIRA_MIGRATE" help:"Bring the databases of the given services up to date first."`
	ProvideURL string            `name:"provider-url" env:"FEIRA_PROVIDER_URL" placeholder:"URL" help:"For payments: where the payment provider is."`
	ProvideKey string            `name:"provider-key" env:"FEIRA_PROVIDER_KEY" placeholder:"SECRET" help:"What payments and the provider know each other by."`
	Delay      time.Duration     `env:"FEIRA_PROVIDER_DELAY" default:"6s" help:"For provider: how late a late answer is."`
	KeepAudit  time.Duration     `env:"FEIRA_KEEP_AUDIT" default:"9600h" help:"How long it is kept what was done by hand; discarded records and accepted gaps stay."`
	KeepAsked  time.Duration     `name:"keep-requests" env:"FEIRA_KEEP_REQUESTS" default:"720h" help:"How long requests to operators are kept after their end."`
	KeepGone   time.Duration     `name:"keep-gone" env:"FEIRA_KEEP_GONE" default:"9600h" help:"How long checkpoints and state are kept of operators that the service no longer has."`
	LogFormat  string            `env:"FEIRA_LOG_FORMAT" default:"auto" enum:"auto,json,text" help:"auto is text on a terminal, else json."`
	LogLevel   string            `env:"FEIRA_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"The least that is logged."`
}

// Run runs the parts until it is told to stop. Then it takes no new requests, lets those in flight finish, and stops
// the services.
func (c *runCmd) Run(ctx context.Context) error {
	level, err := telemetry.ParseLevel(c.LogLevel)
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(os.Stderr, level, telemetry.Format(c.LogFormat))
	if err != nil {
		return err
	}
	services, err := c.services()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen (choose another address with --listen): %w", err)
	}
	defer func() { _ = listener.Close() }()
	metrics, health := telemetry.NewMetrics(), web.NewHealth(log)
	tracing, err := telemetry.NewTracing(ctx, telemetry.TracingOptions{Instance: c.Member, Log: log})
	if err != nil {
		return err
	}
	defer tracing.Stop(ctx)
	parts := http.NewServeMux()
	if c.has("provider") {
		stop, err := c.provider(ctx, log, metrics, tracing, health, parts)
		if err != nil {
			return err
		}
		defer stop()
	}
	if len(services) > 0 {
		if err := c.inspect(ctx, c.kafka("feira-inspect"), log); err != nil {
			return err
		}
	}
	h, err := c.host(ctx, services, log, metrics, tracing)
	if err != nil && ctx.Err() != nil { // it was told to stop before it had started
		log.Info("stopped before it had started", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	h.AddChecks(health)
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		h.Stop(limit)
	}()
	handler, err := c.handler(h, log, health, metrics, tracing, parts)
	if err != nil {
		return err
	}
	log.Info("running", "parts", c.Parts, "listen", listener.Addr().String(), "member", c.Member)
	context.AfterFunc(ctx, health.Drain)
	return web.ServeListener(ctx, listener, handler, log)
}

// stopWithin bounds how long services may take to stop.
const stopWithin = 10 * time.Second

func (c *runCmd) has(part string) bool { return slices.Contains(c.Parts, part) }

// services picks the definitions and checks what they need.
func (c *runCmd) services() ([]service.Definition, error) {
	var names []string
	for _, p := range c.Parts {
		if p != "gateway" && p != "provider" {
			names = append(names, p)
		}
	}
	if c.Member == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("no --member, and no host name to take instead: %w", err)
		}
		c.Member = host
	}
	judges, err := c.config()
	if err != nil {
		return nil, err
	}
	counts, err := c.analytics()
	if err != nil {
		return nil, err
	}
	all := shop.Services(shop.Config{
		Deadline: c.Deadline, Hold: c.Hold, ProviderURL: c.ProvideURL, ProviderKey: c.ProvideKey, Fraud: judges, Analytics: counts,
	})
	picked, err := shop.Select(all, names...)
	if err != nil {
		return nil, err
	}
	needs := func(name string) bool {
		return slices.ContainsFunc(picked, func(d service.Definition) bool { return d.Name == name })
	}
	if c.has("gateway") && len(picked) == 0 && len(c.Upstreams) == 0 {
		return nil, errors.New("the gateway has nothing to pass requests on to: set --upstreams orders=127.0.0.1:8081,… (FEIRA_UPSTREAMS), or run services in the same process")
	}
	if needs("payments") && (c.ProvideURL == "" || c.ProvideKey == "") {
		return nil, errors.New("payments needs --provider-url and --provider-key (FEIRA_PROVIDER_URL, FEIRA_PROVIDER_KEY)")
	}
	if err := (payments.Config{ProviderURL: c.ProvideURL, ProviderKey: c.ProvideKey}).Validate(); needs("payments") && err != nil {
		return nil, err
	}
	if c.JWKS == "" && slices.ContainsFunc(picked, func(d service.Definition) bool { return d.Routes != nil }) {
		return nil, errors.New("without a key set nobody's token can be verified: set --jwks (FEIRA_JWKS); feira token makes a development key")
	}
	return picked, nil
}

func (c *runCmd) host(ctx context.Context, services []service.Definition, log *slog.Logger, metrics *telemetry.Metrics, tracing *telemetry.Tracing) (*host.Host, error) {
	var verifier *auth.Verifier
	if c.JWKS != "" {
		var err error
		if verifier, err = auth.NewVerifier(ctx, c.JWKS, auth.Options{Log: log}); err != nil {
			return nil, err
		}
	}
	if c.Migrate {
		var g errgroup.Group
		for _, d := range services {
			g.Go(func() error {
				dsn, err := c.dsn(d.Name)
				if err != nil {
					return err
				}
				return d.Migrate(ctx, dsn)
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	for _, d := range services {
		if err := c.migrated(ctx, d.Name); err != nil {
			return nil, err
		}
	}
	return host.Start(ctx, host.Config{
		Services: services, DSN: c.dsn, Kafka: c.kafka("feira-" + c.Member), Member: c.Member, MaxConns: c.MaxConns,
		Auth: verifier, Rate: web.RateLimit{Requests: c.Rate, Window: time.Minute}, Proxied: c.Behind, Log: log, Metrics: metrics,
		Tracing: tracing, Keep: service.Keep{Audit: c.KeepAudit, Requests: c.KeepAsked, Gone: c.KeepGone},
	})
}

// migrated refuses a database that was never migrated: a service would wait for its tables for ever.
func (c *runCmd) migrated(ctx context.Context, service string) error {
	dsn, err := c.dsn(service)
	if err != nil {
		return err
	}
	conn, err := pg.Connect(ctx, dsn, "feira-run", nil)
	if err != nil {
		return fmt.Errorf("the database of %s: %w", service, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var migrated bool
	if err := conn.QueryRow(ctx, "select to_regclass('checkpoints') is not null").Scan(&migrated); err != nil {
		return fmt.Errorf("the database of %s: %w", service, err)
	}
	if !migrated {
		return fmt.Errorf("the database of %s has no tables: run feira migrate %s first, or add --migrate", service, service)
	}
	return nil
}
