package jobs

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/feira-shop/feira/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock under which one process at a time migrates River's tables.
const migrationLock = 0x66656972615f7276 // "feira_rv"

// Migrate makes River's tables with its own migrator, then what this package adds to them. Processes that
// migrate at the same time wait for each other.
func Migrate(ctx context.Context, dsn string) error {
	if err := migrateRiver(ctx, dsn); err != nil {
		return fmt.Errorf("jobs: migrate River's tables: %w", err)
	}
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	return pg.Migrate(ctx, dsn, pg.Set{Name: "jobs", FS: sub})
}

func migrateRiver(ctx context.Context, dsn string) error {
	// A second process waits for the lock as long as the first one works.
	lock, err := pg.Connect(ctx, dsn, "migrate-river-lock", map[string]string{"lock_timeout": "0", "statement_timeout": "0"})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close(context.WithoutCancel(ctx)) }()
	if _, err := lock.Exec(ctx, "select pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	pool, err := pg.Open(ctx, dsn, pg.PoolOptions{Name: "migrate-river", MaxConns: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet(nil)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
