package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// Set is the migrations of one component. Each set has a version table of its own, goose_<name>, so that the
// runtime and the service that uses it can move apart.
type Set struct {
	Name string // lower case, unique in one database
	FS   fs.FS  // goose files (00001_what.sql) at its root
}

// Migrations may run long and must not be ended half-way, but must not queue long for a table lock either:
// everybody else would queue behind them.
var migrationSettings = map[string]string{
	"idle_in_transaction_session_timeout": "60s",
	"lock_timeout":                        "5s",
	"statement_timeout":                   "0",
	transactionTimeoutName:                "0",
}

// migrationLock is the advisory lock under which one process at a time migrates a database.
const migrationLock = 0x66656972615f6d67 // "feira_mg"

// Migrate brings the database up to the newest migration of each set, in the given order. Processes that migrate
// at the same time wait for each other.
func Migrate(ctx context.Context, dsn string, sets ...Set) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("migrate: the database address cannot be read: %w", err)
	}
	after := configure(cfg, "migrate", migrationSettings)
	db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(after))
	defer func() { _ = db.Close() }()

	release, err := lockMigrations(ctx, db)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer release()
	for _, set := range sets {
		if err := migrateSet(ctx, db, set); err != nil {
			return fmt.Errorf("migrate %s: %w", set.Name, err)
		}
	}
	return nil
}

func migrateSet(ctx context.Context, db *sql.DB, set Set) error {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, set.FS,
		goose.WithTableName("goose_"+set.Name), goose.WithDisableGlobalRegistry(true))
	if errors.Is(err, goose.ErrNoMigrations) {
		return errors.New("the set has no migrations: its FS must have the .sql files at its root")
	}
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// lockMigrations polls, because a session that waits inside pg_advisory_lock holds a snapshot and would block a
// CREATE INDEX CONCURRENTLY of the one that has the lock.
func lockMigrations(ctx context.Context, db *sql.DB) (release func(), err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for busy := false; ; busy = true {
		var locked bool
		if err := conn.QueryRowContext(ctx, "select pg_try_advisory_lock($1)", int64(migrationLock)).Scan(&locked); err != nil {
			_ = conn.Close()
			if busy && ctx.Err() != nil {
				err = fmt.Errorf("another process is migrating this database: %w", ctx.Err())
			}
			return nil, err
		}
		if locked {
			// Closing the database ends the session, and with it the lock.
			return func() { _ = conn.Close() }, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = conn.Close()
			return nil, fmt.Errorf("another process is migrating this database: %w", ctx.Err())
		}
	}
}
