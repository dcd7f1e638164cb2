package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Pause stops all processes of a service from beginning jobs, within a moment; what is being done ends. It
// lasts until [Resume], also over restarts. pool is one to the service's database, from any process.
func Pause(ctx context.Context, pool *pgxpool.Pool) error {
	client, err := outside(ctx, pool)
	if err != nil {
		return err
	}
	if err := client.QueuePause(ctx, river.QueueDefault, nil); err != nil {
		return fmt.Errorf("jobs: pause: %w", err)
	}
	return nil
}

// Resume lets jobs be done again.
func Resume(ctx context.Context, pool *pgxpool.Pool) error {
	client, err := outside(ctx, pool)
	if err != nil {
		return err
	}
	if err := client.QueueResume(ctx, river.QueueDefault, nil); err != nil {
		return fmt.Errorf("jobs: resume: %w", err)
	}
	return nil
}

// Paused says whether a service's jobs are paused.
func Paused(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	var paused bool
	err := pool.QueryRow(ctx, "select paused_at is not null from river_queue where name = $1", river.QueueDefault).Scan(&paused)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil // never started yet
	}
	if err != nil {
		return false, fmt.Errorf("jobs: read the state of the queue: %w", err)
	}
	return paused, nil
}

// outside is a client that does no jobs. The queue is made if the service never ran.
func outside(ctx context.Context, pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	const sql = "insert into river_queue (name, updated_at) values ($1, now()) on conflict do nothing"
	if _, err := pool.Exec(ctx, sql, river.QueueDefault); err != nil {
		return nil, fmt.Errorf("jobs: prepare the queue: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet(nil)})
	if err != nil {
		return nil, fmt.Errorf("jobs: configure River: %w", err)
	}
	return client, nil
}
