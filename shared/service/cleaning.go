package service

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feira-shop/feira/shared/telemetry"
)

var (
	//go:embed sql/clean_audit.sql
	cleanAuditSQL string
	//go:embed sql/clean_requests.sql
	cleanRequestsSQL string
	//go:embed sql/gone.sql
	goneSQL string
	//go:embed sql/clean_deltas.sql
	cleanDeltasSQL string
	//go:embed sql/clean_gone.sql
	cleanGoneSQL string
)

// Keep says how long a service keeps what only people look at. 0 is the default of a field; none of it is needed by
// the service itself.
type Keep struct {
	Audit    time.Duration // what was done by hand, but for discarded records and accepted gaps, which stay; 400 days
	Requests time.Duration // requests to operators, after their end; 30 days
	Gone     time.Duration // checkpoints and keyed state of operators that the service no longer has, after their last move; 400 days
}

func (k Keep) withDefaults() Keep {
	const day = 24 * time.Hour
	for field, days := range map[*time.Duration]time.Duration{&k.Audit: 400, &k.Requests: 30, &k.Gone: 400} {
		if *field == 0 {
			*field = days * day
		}
	}
	return k
}

const (
	cleanEvery  = time.Hour
	cleanRows   = 1000             // per statement, so that none holds locks for long
	cleanWithin = 10 * time.Second // a statement
	cleanPause  = 50 * time.Millisecond
)

// cleaner deletes what has become too old, in every process of a service: who comes later finds less.
type cleaner struct {
	pool  *pgxpool.Pool
	log   *slog.Logger
	keep  Keep
	known []string // operators that the service has
	rows  *prometheus.CounterVec
}

func newCleaner(pool *pgxpool.Pool, d Definition, cfg Config) *cleaner {
	c := &cleaner{pool: pool, log: cfg.Log, keep: cfg.Keep.withDefaults(), known: []string{}, rows: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "feira", Subsystem: "service", Name: "cleaned_rows_total",
		Help: "Rows that were deleted because of their age, by what they were.",
	}, []string{"what"})}
	for _, what := range []string{cleanedAudit, cleanedRequests, cleanedOperators} {
		c.rows.WithLabelValues(what)
	}
	for _, o := range d.Operators {
		c.known = append(c.known, o.Name)
	}
	return c
}

func (r *Running) startCleaning(_ context.Context, cfg Config) error {
	c := newCleaner(r.pool, r.Definition, cfg)
	if cfg.Metrics != nil {
		if err := telemetry.Register(cfg.Metrics, c.rows); err != nil {
			return err
		}
	}
	r.background(c.run)
	return nil
}

func (c *cleaner) run(ctx context.Context) {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.clean(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("what is too old could not be deleted, trying again in an hour", "error", err)
		}
	}
}

// What is cleaned.
const (
	cleanedAudit     = "audit"
	cleanedRequests  = "requests"
	cleanedOperators = "operators"
)

// clean deletes all that is too old.
func (c *cleaner) clean(ctx context.Context) error {
	err := errors.Join(
		c.batches(ctx, cleanedAudit, cleanAuditSQL, c.keep.Audit.Seconds()),
		c.batches(ctx, cleanedRequests, cleanRequestsSQL, c.keep.Requests.Seconds()),
	)
	rows, queryErr := c.pool.Query(ctx, goneSQL, c.keep.Gone.Seconds(), c.known)
	if queryErr != nil {
		return errors.Join(err, queryErr)
	}
	gone, queryErr := pgx.CollectRows(rows, pgx.RowTo[string])
	err = errors.Join(err, queryErr)
	for _, operator := range gone {
		err = errors.Join(err, c.forget(ctx, operator))
	}
	return err
}

// batches deletes until a batch is not full. The statement takes the argument and the size of a batch.
func (c *cleaner) batches(ctx context.Context, what, sql string, arg any) error {
	total := int64(0)
	for {
		n, err := c.delete(ctx, sql, arg)
		c.rows.WithLabelValues(what).Add(float64(n))
		total += n
		if err != nil {
			return fmt.Errorf("clean %s: %w", what, err)
		}
		if n < cleanRows {
			break
		}
		select {
		case <-time.After(cleanPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if total > 0 {
		c.log.Info("deleted what was too old", "what", what, "rows", total)
	}
	return nil
}

func (c *cleaner) delete(ctx context.Context, sql string, arg any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	tag, err := c.pool.Exec(ctx, sql, arg, cleanRows)
	return tag.RowsAffected(), err
}

// forget deletes an operator that is gone: its state first, so that it never meets a checkpoint without it.
func (c *cleaner) forget(ctx context.Context, operator string) error {
	if err := c.batches(ctx, cleanedOperators, cleanDeltasSQL, operator); err != nil {
		return err
	}
	var n int64
	if err := c.pool.QueryRow(ctx, cleanGoneSQL, operator, c.keep.Gone.Seconds()).Scan(&n); err != nil {
		return fmt.Errorf("clean operator %s: %w", operator, err)
	}
	c.rows.WithLabelValues(cleanedOperators).Add(float64(n))
	if n > 0 {
		c.log.Warn("deleted an operator that the service no longer has", "operator", operator, "checkpoints", n)
	}
	return nil
}
