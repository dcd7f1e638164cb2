package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"

	"github.com/feira-shop/feira/shared/eventstore"
)

// poolConns are the connections of River's own pool: one that listens, the others fetch jobs and give them
// back. Outcomes go through the store.
const poolConns = 4

// Options configure a client.
type Options struct {
	Store   *eventstore.Store     // of the service; must be running for as long as the client
	Log     *slog.Logger          // nil: discard
	Metrics prometheus.Registerer // nil: none
	Member  string                // names this replica in the rows of its jobs; "" is "jobs"
}

// Client does the jobs of one service in this process.
type Client struct {
	opts        Options
	definitions []Definition
	pool        *pgxpool.Pool
	metrics     *metrics
	breakers    *breakers

	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	healthy error // nil while the workers run
	bound   context.Context
}

// Start begins to do jobs; every kind of the service must be among the definitions. ctx bounds the start only.
// A service without jobs gets a client that does nothing.
func Start(ctx context.Context, definitions []Definition, opts Options) (*Client, error) {
	if err := check(definitions, opts); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Member == "" {
		opts.Member = "jobs"
	}
	stopped := make(chan struct{})
	c := &Client{opts: opts, definitions: definitions, stopped: stopped}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	if len(definitions) == 0 {
		close(stopped)
		return c, nil
	}
	if err := c.prepare(ctx); err != nil {
		stop()
		return nil, err
	}
	first, err := c.begin(ctx)
	if err != nil {
		c.pool.Close()
		stop()
		return nil, err
	}
	go c.supervise(runCtx, first)
	return c, nil
}

func check(definitions []Definition, opts Options) error {
	var problems []string
	if opts.Store == nil {
		problems = append(problems, "Options.Store is missing: jobs are inserted and completed by it")
	}
	seen := map[string]bool{}
	for _, d := range definitions {
		if d.register == nil {
			problems = append(problems, fmt.Sprintf("definition %q was not made by jobs.Work", d.Kind))
		}
		if seen[d.Kind] {
			problems = append(problems, fmt.Sprintf("kind %q is defined twice", d.Kind))
		}
		seen[d.Kind] = true
	}
	if problems != nil {
		return &ConfigError{Problems: problems}
	}
	return nil
}

func (c *Client) prepare(ctx context.Context) error {
	m, err := newMetrics(c.opts.Metrics, c.definitions)
	if err != nil {
		return fmt.Errorf("jobs: register metrics: %w", err)
	}
	c.metrics = m
	c.breakers = &breakers{log: c.opts.Log, metrics: m, byName: map[string]*gobreaker.CircuitBreaker[any]{}}
	cfg := c.opts.Store.Pool().Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = poolConns, 0, 0
	cfg.ConnConfig.RuntimeParams["application_name"] = "jobs"
	if c.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("jobs: open a pool: %w", err)
	}
	return nil
}

// supervise keeps the workers running: when the lock on the client id is lost they stop, and begin again under
// another id.
func (c *Client) supervise(ctx context.Context, r *runner) {
	defer close(c.stopped)
	defer c.pool.Close()
	for {
		err := r.presence.watch(ctx, c.metrics)
		if err == nil {
			r.end(c.stopBound())
			return
		}
		c.setHealth(err)
		c.metrics.lostLocks.Inc()
		c.opts.Log.Warn("jobs: workers stop until this process has a lock again", "err", err)
		r.abort()
		if r = c.again(ctx); r == nil {
			return
		}
		c.setHealth(nil)
		c.opts.Log.Info("jobs: workers are running again", "client", r.presence.id)
	}
}

// again begins anew, however long it takes; nil when ctx ended before.
func (c *Client) again(ctx context.Context) *runner {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 5*time.Second
	for ctx.Err() == nil {
		r, err := c.begin(ctx)
		if err == nil {
			return r
		}
		c.setHealth(err)
		select {
		case <-ctx.Done():
		case <-time.After(wait.NextBackOff()):
		}
	}
	return nil
}

func (c *Client) setHealth(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.healthy = err
}

// Health says why no jobs are done at the moment; nil if they are.
func (c *Client) Health() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.healthy
}

// Stop ends the client: nothing new is begun, attempts that take longer than a moment are given back. It
// returns when all workers have ended or ctx has; the store must be running until then.
func (c *Client) Stop(ctx context.Context) error {
	c.mu.Lock()
	c.bound = ctx
	c.mu.Unlock()
	c.stop()
	select {
	case <-c.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("jobs: workers have not ended in time; their jobs are given back by another process: %w", ctx.Err())
	}
}

func (c *Client) stopBound() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bound
}
