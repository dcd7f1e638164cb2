package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/jobs"
	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/operator"
	"github.com/feira-shop/feira/shared/pg"
	"github.com/feira-shop/feira/shared/relay"
	"github.com/feira-shop/feira/shared/telemetry"
)

// Config is where a service runs.
type Config struct {
	DSN      string       // of the service's own database
	Kafka    kafka.Config // the brokers
	Member   string       // stable name of this replica among others of the same service
	MaxConns int32        // connections to the database for requests; 0 is 8. Whatever else works there has its own
	Log      *slog.Logger
	Metrics  prometheus.Registerer // carries the label service; nil: none
	Tracer   *telemetry.Tracer     // of the service; nil: none
	Keep     Keep                  // how long what only people look at is kept
}

// Running is a started service.
type Running struct {
	Definition Definition
	Runtime    Runtime

	pool      *pgxpool.Pool
	relay     *relay.Relay
	operators []*operator.Operator
	gate      gate
	jobs      *jobs.Client
	stops     []func(context.Context) // undo the start, last first
}

// undoTimeout bounds the stop of what a failed start has started.
const undoTimeout = 10 * time.Second

// Start starts a service whose database is migrated and whose topics exist. An error leaves nothing running.
func Start(ctx context.Context, d Definition, cfg Config) (*Running, error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 8
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("service", d.Name)
	r := &Running{Definition: d}
	for _, part := range []func(context.Context, Config) error{r.startStore, r.seed, r.startRelay, r.startJobs, r.startOperators, r.startCleaning} {
		if err := part(ctx, cfg); err != nil {
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
			defer cancel()
			r.Stop(limit)
			return nil, fmt.Errorf("start %s: %w", d.Name, err)
		}
	}
	for _, l := range d.Loops {
		r.background(func(ctx context.Context) { r.loop(ctx, l) })
	}
	return r, nil
}

func (r *Running) startStore(ctx context.Context, cfg Config) error {
	pool, err := r.openPool(ctx, cfg, "store", cfg.MaxConns)
	if err != nil {
		return err
	}
	r.pool = pool
	if cfg.Metrics != nil {
		if err := telemetry.Register(cfg.Metrics, append([]prometheus.Collector{pg.NewFigures(pool)}, r.Definition.Figures...)...); err != nil {
			return err
		}
	}
	store := eventstore.New(pool, eventstore.Options{
		Service: r.Definition.Name, Registry: r.Definition.Registry(), Log: cfg.Log, Metrics: cfg.Metrics,
		Tracer: cfg.Tracer,
	})
	r.Runtime = Runtime{Store: store, Log: cfg.Log, Kafka: cfg.Kafka}
	r.background(func(ctx context.Context) { r.report("store", store.Run(ctx)) })
	return nil
}

// openPool opens connections to the service's database for what is named, until the service stops.
func (r *Running) openPool(ctx context.Context, cfg Config, name string, size int32) (*pgxpool.Pool, error) {
	pool, err := pg.Open(ctx, cfg.DSN, pg.PoolOptions{Name: "feira-" + r.Definition.Name, MaxConns: size})
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, func(limit context.Context) { within(limit, pool.Close) })
	if cfg.Metrics == nil {
		return pool, nil
	}
	return pool, telemetry.RegisterPool(cfg.Metrics, name, pool)
}

func (r *Running) seed(ctx context.Context, _ Config) error {
	if r.Definition.Seed == nil {
		return nil
	}
	if err := r.Definition.Seed(ctx, r.Runtime); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return nil
}

func (r *Running) startRelay(_ context.Context, cfg Config) error {
	if r.Definition.Publishes == (events.Topic{}) {
		return nil
	}
	r.relay = relay.New(relay.Options{
		Store: r.Runtime.Store, DSN: cfg.DSN, Kafka: cfg.Kafka, Topic: r.Definition.Publishes, Log: cfg.Log, Metrics: cfg.Metrics,
		Tracer: cfg.Tracer,
	})
	r.background(func(ctx context.Context) { r.report("relay", r.relay.Run(ctx)) })
	return nil
}

func (r *Running) startJobs(ctx context.Context, cfg Config) error {
	if len(r.Definition.Jobs) == 0 {
		return nil
	}
	client, err := jobs.Start(ctx, r.Definition.Jobs, jobs.Options{
		Store: r.Runtime.Store, Log: cfg.Log, Metrics: cfg.Metrics, Member: cfg.Member,
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	r.jobs = client
	r.stops = append(r.stops, func(ctx context.Context) { r.report("jobs", client.Stop(ctx)) })
	return nil
}

// startOperators starts all operators; they are stopped together, so that stopping takes as long as the slowest.
func (r *Running) startOperators(ctx context.Context, cfg Config) error {
	if len(r.Definition.Operators) == 0 {
		return nil
	}
	pool, err := r.openPool(ctx, cfg, "operators", int32(len(r.Definition.Operators))+1)
	if err != nil {
		return err
	}
	for _, d := range r.Definition.Operators {
		r.operators = append(r.operators, operator.New(d, operator.Options{
			Store: r.Runtime.Store, Pool: pool, Kafka: cfg.Kafka, Member: cfg.Member, Log: cfg.Log, Metrics: cfg.Metrics,
		}))
	}
	r.background(func(ctx context.Context) {
		if !r.pass(ctx) {
			return
		}
		var wg sync.WaitGroup
		for _, o := range r.operators {
			wg.Go(func() { r.report("operator", o.Run(ctx)) })
		}
		wg.Wait()
	})
	return nil
}

// background runs f until the service stops, which waits for f's end.
func (r *Running) background(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	r.stops = append(r.stops, func(limit context.Context) {
		cancel()
		within(limit, func() { <-done })
	})
}

// within waits for f's end, at most until limit is done: a connection that was never given back must not hold up the
// process.
func within(limit context.Context, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-limit.Done():
	}
}

// loop starts a loop again whenever it ends before its time.
func (r *Running) loop(ctx context.Context, l Loop) {
	for {
		err := l.Run(ctx, r.Runtime)
		if ctx.Err() != nil {
			return
		}
		r.Runtime.Log.Error("a loop ended and is started again", "loop", l.Name, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func (r *Running) report(part string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Runtime.Log.Error("stopped", "part", part, "error", err)
	}
}

// Stop stops what was started, last first, within ctx.
func (r *Running) Stop(ctx context.Context) {
	for i := len(r.stops) - 1; i >= 0; i-- {
		r.stops[i](ctx)
	}
	r.stops = nil
}
