// Package pgtest gives each test a Postgres database of its own, in about 15 ms.
//
// The first call starts one server for the test process, in memory (/dev/shm) where there is 1 GiB free. Migrations run
// once per combination of sets, into a template that the tests' databases are copied from. Nothing has to be
// dropped: when the process is gone, however it ends, so are the server and its files.
//
// A package that looks for leaked goroutines uses [Main], since the server has one.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/feira-shop/feira/shared/pg"
)

// DB is the database of one test. Its sessions have the settings of production ones.
type DB struct {
	DSN  string        // as the role that owns the database
	Pool *pgxpool.Pool // closed when the test ends
}

// prepareTimeout bounds what New does: starting a server and migrating, on a loaded machine.
const prepareTimeout = 2 * time.Minute

var databases atomic.Int64

// New makes a database with the migrations of sets applied, in this order.
func New(tb testing.TB, sets ...pg.Set) *DB {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), prepareTimeout)
	defer cancel()
	server, err := shared.get()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	template, err := server.template(ctx, sets)
	if err != nil {
		tb.Fatalf("pgtest: template database: %v", err)
	}
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := server.clone(ctx, template, name); err != nil {
		tb.Fatalf("pgtest: database: %v", err)
	}
	db := &DB{DSN: withDatabase(server.DSN(template), name)}
	if db.Pool, err = pg.Open(ctx, db.DSN, pg.PoolOptions{Name: tb.Name()}); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { closePool(tb, db.Pool, returnTimeout) })
	return db
}

// returnTimeout is how long a test's end waits for connections that were not given back.
const returnTimeout = 15 * time.Second

// closePool fails the test whose connections are not given back: closing would wait for them for ever.
func closePool(tb testing.TB, pool *pgxpool.Pool, patience time.Duration) {
	tb.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		tb.Errorf("pgtest: %d connections were not given back to the pool (rows not closed, a transaction not ended"+
			" or a loop not stopped before the test's end)", pool.Stat().AcquiredConns())
	}
}

// withDatabase is the address of another database for the same role: that of the template owns all copies.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // never: the address is one of our own
	}
	u.Path = "/" + name
	return u.String()
}
