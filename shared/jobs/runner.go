package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/telemetry"
)

const (
	maxWorkers        = 50                     // attempts at once, in one process; they mostly wait for an answer
	fetchCooldown     = 10 * time.Millisecond  // between two fetches: maxWorkers / fetchCooldown bounds the rate
	fetchPollInterval = 250 * time.Millisecond // for jobs whose time has come, and where a notification was lost
	completedKept     = time.Hour              // completed jobs are looked at by people only
	givenUpKept       = 400 * 24 * time.Hour   // those that were cancelled or given up are evidence for longer
	softStop          = 3 * time.Second        // that a stop waits before it cuts attempts short
	abortTimeout      = 5 * time.Second        // that a lost lock waits for workers, before others begin
)

// runner is one life of the workers: from having the lock on a client id to losing it.
type runner struct {
	store    *eventstore.Store
	pool     *pgxpool.Pool
	log      *slog.Logger
	metrics  *metrics
	breakers *breakers
	presence *presence
	river    *river.Client[pgx.Tx]
	over     chan struct{} // closed when this client id is given up
}

// begin takes a lock on a new client id and starts the workers under it.
func (c *Client) begin(ctx context.Context) (*runner, error) {
	id := c.opts.Member + "-" + uuid.NewString()
	p, err := appear(ctx, c.pool.Config().ConnConfig, id)
	if err != nil {
		return nil, err
	}
	r := &runner{
		store: c.opts.Store, pool: c.pool, log: c.opts.Log, metrics: c.metrics, breakers: c.breakers,
		presence: p, over: make(chan struct{}),
	}
	if err := r.start(ctx, id, c.definitions); err != nil {
		p.leave(ctx)
		return nil, err
	}
	return r, nil
}

func (r *runner) start(ctx context.Context, id string, definitions []Definition) error {
	workers := river.NewWorkers()
	for _, d := range definitions {
		if err := d.register(workers, r); err != nil {
			return fmt.Errorf("jobs: kind %s: %w", d.Kind, err)
		}
	}
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		ID:                          id,
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:                     workers,
		FetchCooldown:               fetchCooldown,
		FetchPollInterval:           fetchPollInterval,
		MaxAttempts:                 attemptsWithoutEnd,
		CompletedJobRetentionPeriod: completedKept,
		CancelledJobRetentionPeriod: givenUpKept,
		DiscardedJobRetentionPeriod: givenUpKept,
		SoftStopTimeout:             softStop,
		ErrorHandler:                &riverErrors{log: r.log},
		Logger:                      quiet(r.log),
	})
	if err != nil {
		return fmt.Errorf("jobs: configure River: %w", err)
	}
	// River takes the end of this context for a stop; ours are end and abort.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("jobs: start River: %w", err)
	}
	r.river = client
	return nil
}

// end stops the workers in order: what is being done may end, then it is cut short and given back.
func (r *runner) end(ctx context.Context) {
	if err := r.river.Stop(ctx); err != nil {
		r.log.Warn("jobs: River has not stopped in time", "err", err)
	}
	close(r.over)
	r.presence.leave(ctx)
}

// abort stops the workers at once, because others may already do their jobs.
func (r *runner) abort() {
	close(r.over)
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	if err := r.river.StopAndCancel(ctx); err != nil {
		r.log.Warn("jobs: workers go on although their lock is lost; what they write is refused", "err", err)
	}
	r.presence.leave(ctx)
}

// riverErrors hears of attempts that never reached one of our workers: an unknown kind, or arguments that
// cannot be read. River retries them, and keeps them when it gives up.
type riverErrors struct{ log *slog.Logger }

func (h *riverErrors) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	h.log.ErrorContext(telemetry.Continue(ctx, traceparentOf(job)), "jobs: a job cannot be done by this program", "kind", job.Kind, "job", job.ID, "attempt", job.Attempt, "err", err)
	return nil
}

func (h *riverErrors) HandlePanic(ctx context.Context, job *rivertype.JobRow, value any, trace string) *river.ErrorHandlerResult {
	h.log.ErrorContext(telemetry.Continue(ctx, traceparentOf(job)), "jobs: a job panicked", "kind", job.Kind, "job", job.ID, "panic", value, "stack", trace)
	return nil
}
