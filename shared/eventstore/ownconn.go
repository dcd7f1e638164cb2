package eventstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// idleBeforePing is how long a connection may have been idle and still be used without asking whether it lives.
const idleBeforePing = time.Second

// ownConn is the connection of what the store does by itself: a lane, the tail. It is not one of the pool's: with a hundred
// readers waiting for one of those, each flush and each look would wait behind all of them; and waiting for rows must not use
// them up.
type ownConn struct {
	store  *Store
	params map[string]string // run-time parameters, beside or in place of the pool's
	conn   *pgx.Conn
	used   time.Time
}

// lend gives the connection, a new one when there is none that lives. It must come back through giveBack.
func (o *ownConn) lend(ctx context.Context) (*pgx.Conn, error) {
	if o.conn != nil && time.Since(o.used) > idleBeforePing && o.conn.Ping(ctx) != nil {
		o.close(ctx)
	}
	if o.conn == nil {
		conn, err := o.store.dial(ctx, o.params)
		if err != nil {
			return nil, err
		}
		o.conn = conn
	}
	return o.conn, nil
}

// giveBack keeps the connection, unless the error of its use was more than an ordinary refusal.
func (o *ownConn) giveBack(ctx context.Context, err error) {
	o.used = time.Now()
	var pe *pgconn.PgError
	if o.conn.IsClosed() || err != nil && !errors.As(err, &pe) {
		o.close(ctx)
	}
}

func (o *ownConn) close(ctx context.Context) {
	if o.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = o.conn.Close(ctx)
	o.conn = nil
}

// dial opens a connection like those of the pool, with other run-time parameters, and outside of it.
func (s *Store) dial(ctx context.Context, params map[string]string) (*pgx.Conn, error) {
	cfg := s.pool.Config()
	for name, value := range params {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, err
	}
	if cfg.AfterConnect != nil {
		if err := cfg.AfterConnect(ctx, conn); err != nil {
			_ = conn.Close(ctx)
			return nil, err
		}
	}
	return conn, nil
}
