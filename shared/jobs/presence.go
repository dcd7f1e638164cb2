package jobs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// sweepEvery is how often a process looks for jobs whose owner is gone, and thereby shows that it is not.
	sweepEvery = 2 * time.Second
	// presenceTimeout is after how long without a sign the server takes a process for gone, also a frozen one,
	// and frees its lock.
	presenceTimeout = 6 * time.Second
	// sweepTimeout bounds one sweep; a server that is slower has lost us.
	sweepTimeout = 5 * time.Second
	// statsEvery is how many sweeps go by between two looks at the backlog.
	statsEvery = 3
)

var (
	//go:embed sql/sweep.sql
	sweepSQL string
	//go:embed sql/stats.sql
	statsSQL string
)

// errLockTaken says that somebody holds the lock of a client id that was just made up.
var errLockTaken = errors.New("jobs: the lock of a new client id is taken; ids must be unique")

// presence is a session that holds the advisory lock of a client id: as long as it lives, so does the client.
type presence struct {
	conn *pgx.Conn
	id   string
}

// appear opens the session and takes the lock. cfg is that of the service's pool.
func appear(ctx context.Context, cfg *pgx.ConnConfig, id string) (*presence, error) {
	cfg = cfg.Copy()
	cfg.RuntimeParams["application_name"] = "jobs-presence"
	cfg.RuntimeParams["idle_session_timeout"] = fmt.Sprint(presenceTimeout.Milliseconds())
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("jobs: connect for the lock on the client id: %w", err)
	}
	var locked bool
	err = conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 7162))", id).Scan(&locked)
	if err == nil && !locked {
		err = errLockTaken
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("jobs: lock the client id: %w", err)
	}
	return &presence{conn: conn, id: id}, nil
}

// watch sweeps until the lock is lost, which is an error, or ctx ends.
func (p *presence) watch(ctx context.Context, m *metrics) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for round := 0; ; round++ {
		if err := p.sweep(ctx, m, round%statsEvery == 0); err != nil && ctx.Err() == nil {
			return fmt.Errorf("jobs: the lock on client id %s is lost: %w", p.id, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sweep is not cut short by a stop: that would close the session while workers still end.
func (p *presence) sweep(ctx context.Context, m *metrics, stats bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
	defer cancel()
	tag, err := p.conn.Exec(ctx, sweepSQL, p.id)
	if err != nil {
		return err
	}
	m.swept.Add(float64(tag.RowsAffected()))
	if !stats {
		return nil
	}
	var b backlog
	if err := p.conn.QueryRow(ctx, statsSQL).Scan(&b.available, &b.waiting, &b.running, &b.oldestSeconds); err != nil {
		return err
	}
	m.backlog(b)
	return nil
}

// leave gives the lock up.
func (p *presence) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx)
}
