package pg

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Settings of every session. The server enforces the timeouts, so a client that is frozen, not only one that is
// dead, loses its transaction and with it its locks. They can be overridden for one session in [Connect].
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "3s",
	"lock_timeout":                        "2s",
	"statement_timeout":                   "10s",

	// A lost network is noticed within about 11 s, also in the middle of a statement.
	"tcp_keepalives_idle":              "5",
	"tcp_keepalives_interval":          "2",
	"tcp_keepalives_count":             "3",
	"tcp_user_timeout":                 "10000",
	"client_connection_check_interval": "2s",

	// Statements prepared while a table is empty keep their sequential scans as it fills.
	"enable_seqscan": "off",
	"jit":            "off",

	"timezone": "UTC",
}

// transactionTimeout ends a transaction that is never idle but never ends either. Servers have it since
// version 17; older ones would refuse the connection, so it is set once the version is known.
const (
	transactionTimeoutName  = "transaction_timeout"
	transactionTimeout      = "30s"
	transactionTimeoutSince = 17
)

const (
	connectTimeout  = 5 * time.Second
	defaultMaxConns = 8
)

// clientKeepAlive lets a client notice a lost server as fast as the server notices a lost client.
var clientKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// PoolOptions say what is particular to one pool.
type PoolOptions struct {
	Name     string // application_name, as seen in pg_stat_activity
	MaxConns int32  // 0: 8
}

// Open makes a pool whose every connection has the session settings of this package (see the package
// documentation), and proves with one connection that the database can be reached.
func Open(ctx context.Context, dsn string, opts PoolOptions) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("pool %s: the database address cannot be read: %w", opts.Name, err)
	}
	after := configure(cfg.ConnConfig, opts.Name, nil)
	cfg.AfterConnect = after
	cfg.MaxConns = opts.MaxConns
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = defaultMaxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", opts.Name, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("pool %s: the database does not answer: %w", opts.Name, err)
	}
	return pool, nil
}

// Connect opens one session outside any pool, for what must hold one: an advisory lock, LISTEN, a migration.
// extra holds run-time parameters that are added to, or replace, the session settings of this package.
func Connect(ctx context.Context, dsn, name string, extra map[string]string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("session %s: the database address cannot be read: %w", name, err)
	}
	after := configure(cfg, name, extra)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", name, err)
	}
	if err := after(ctx, conn); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("session %s: %w", name, err)
	}
	return conn, nil
}

// configure puts the settings into cfg and returns what must be done on a connection once it is made.
func configure(cfg *pgx.ConnConfig, name string, extra map[string]string) func(context.Context, *pgx.Conn) error {
	maps.Copy(cfg.RuntimeParams, sessionSettings)
	if name != "" {
		cfg.RuntimeParams["application_name"] = name
	}
	maps.Copy(cfg.RuntimeParams, extra)
	limit, ok := cfg.RuntimeParams[transactionTimeoutName]
	if !ok {
		limit = transactionTimeout
	}
	delete(cfg.RuntimeParams, transactionTimeoutName)

	cfg.DescriptionCacheCapacity = 0 // of a mode that nothing here uses; it would be half of what an idle connection holds
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{KeepAliveConfig: clientKeepAlive}
	cfg.DialFunc = dialer.DialContext

	return func(ctx context.Context, conn *pgx.Conn) error {
		if majorVersion(conn.PgConn().ParameterStatus("server_version")) < transactionTimeoutSince {
			return nil
		}
		_, err := conn.Exec(ctx, "select set_config($1, $2, false)", transactionTimeoutName, limit)
		return err
	}
}

// majorVersion reads "15.14 (Debian 15.14-0+deb12u1)" as 15, and what it cannot read as 0.
func majorVersion(version string) int {
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(version)
	}
	major, err := strconv.Atoi(version[:digits])
	if err != nil {
		return 0
	}
	return major
}
