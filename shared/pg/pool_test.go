package pg

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// openPool opens a pool that the test closes at its end.
func openPool(t *testing.T, dsn string, opts PoolOptions) *pgxpool.Pool {
	t.Helper()
	pool, err := Open(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// show reads a setting; "" when the server does not know it.
func show(t *testing.T, q querier, name string) string {
	t.Helper()
	var value string
	if err := q.QueryRow(t.Context(), "select coalesce(current_setting($1, true), '')", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestEveryPooledConnectionHasTheSettings(t *testing.T) {
	t.Parallel()
	s, dsn := database(t, "pooled")
	want := map[string]string{
		"idle_in_transaction_session_timeout": "3s", "lock_timeout": "2s", "statement_timeout": "10s",
		"enable_seqscan": "off", "jit": "off", "TimeZone": "UTC", "application_name": "orders",
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3",
		"client_connection_check_interval": "2s", "synchronous_commit": "on",
	}
	if s.install.major >= transactionTimeoutSince {
		want[transactionTimeoutName] = transactionTimeout
	}
	const size = 4
	pool := openPool(t, dsn, PoolOptions{Name: "orders", MaxConns: size})
	for range size { // all are held at once, so each is another one
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		for name, value := range want {
			if got := show(t, conn, name); got != value {
				t.Errorf("%s is %q, expected %q", name, got, value)
			}
		}
	}
	if stat := pool.Stat(); stat.TotalConns() != size || stat.MaxConns() != size {
		t.Errorf("the pool has %d of %d connections, expected %d", stat.TotalConns(), stat.MaxConns(), size)
	}
}

func TestAFrozenTransactionGivesUpItsLocks(t *testing.T) {
	t.Parallel()
	_, dsn := database(t, "frozen")
	pool := openPool(t, dsn, PoolOptions{MaxConns: 2})
	if _, err := pool.Exec(t.Context(), "create table stock as select 1 as n"); err != nil {
		t.Fatal(err)
	}
	frozen, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = frozen.Rollback(context.Background()) }()
	if _, err := frozen.Exec(t.Context(), "update stock set n = 2"); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for { // each wait for the row ends by the lock's timeout, until the idle transaction is ended
		_, err := pool.Exec(t.Context(), "update stock set n = 3")
		if err == nil {
			break
		}
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "55P03" { // lock_not_available
			t.Fatal(err)
		}
		if refused++; refused > 10 {
			t.Fatal("the frozen transaction keeps its lock")
		}
	}
	if refused == 0 {
		t.Error("no wait for the row ended by lock_timeout")
	}
	if err := frozen.Commit(t.Context()); err == nil {
		t.Error("the frozen transaction was committed")
	}
}

func TestOneSessionMayOverrideSettings(t *testing.T) {
	t.Parallel()
	s, dsn := database(t, "single")
	conn, err := Connect(t.Context(), dsn, "relay", map[string]string{
		"idle_session_timeout": "3000", "statement_timeout": "0", transactionTimeoutName: "0", "enable_seqscan": "on",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	want := map[string]string{
		"idle_session_timeout": "3s", "statement_timeout": "0", "lock_timeout": "2s", "application_name": "relay",
		"enable_seqscan": "on",
	}
	if s.install.major >= transactionTimeoutSince {
		want[transactionTimeoutName] = "0"
	}
	for name, value := range want {
		if got := show(t, conn, name); got != value {
			t.Errorf("%s is %q, expected %q", name, got, value)
		}
	}
}

func TestAPoolSaysWhatItCannotReach(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"postgres://nobody@127.0.0.1:1/none", "postgres://%zz"} {
		_, err := Open(t.Context(), dsn, PoolOptions{Name: "orders"})
		if err == nil || !strings.Contains(err.Error(), "pool orders: the database") {
			t.Errorf("%s: got %v", dsn, err)
		}
		if _, err = Connect(t.Context(), dsn, "orders", nil); err == nil || !strings.Contains(err.Error(), "session orders") {
			t.Errorf("%s: got %v", dsn, err)
		}
	}
}

func TestMajorVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{
		"15.14 (Debian 15.14-0+deb12u1)": 15, "18.4": 18, "17": 17, "19devel": 19, "": 0, "unknown": 0,
	} {
		if got := majorVersion(version); got != want {
			t.Errorf("%q is read as %d, expected %d", version, got, want)
		}
	}
}
