package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/kafka"
	"github.com/feira-shop/feira/shared/pg"
)

// leaderLock is the session advisory lock of the leader; advisory locks are per database, as stores are.
const leaderLock int64 = 0x66656972615f726c // "feira_rl"

// callTimeout bounds a statement on the client's side: longer than the server's own timeout, for a server that
// does not answer at all.
const callTimeout = 15 * time.Second

// partition is how far a partition is published.
type partition struct {
	last    int64     // position of its last event
	next    int64     // offset after its last record, as far as known
	changed bool      // since it was last saved
	record  time.Time // when this leader last wrote an event to it, or began to lead
	tick    time.Time // when it last wrote a tick
}

// leader is one leadership: a session that holds the lock, and what is known while it does. The lock, the reads
// and the cursor are on this one connection, so whoever loses the lock can also not read or move the cursor.
type leader struct {
	relay      *Relay
	conn       *pgx.Conn
	publisher  *kafka.Publisher
	term       int64
	position   int64
	partitions []partition
	counted    int32 // number of partitions as recorded, 0: never seen
	was, is    string
	backlogAt  time.Time
	limit      int // events per round
}

// elect waits until this process holds the lock, then takes the next term. It returns nil when ctx ended before.
func (r *Relay) elect(ctx context.Context) (*leader, error) {
	conn, err := pg.Connect(ctx, r.opts.DSN, "relay", map[string]string{
		"idle_session_timeout": strconv.FormatInt(r.timing.idleSession.Milliseconds(), 10),
		// The cursor may fall back when the server crashes: events are then published again and dropped by
		// consumers. The events themselves were durable before anybody could read them.
		"synchronous_commit": "off",
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil // nobody is to lead any more
		}
		return nil, fmt.Errorf("relay: %w", err)
	}
	l := &leader{relay: r, conn: conn, limit: maxEvents}
	for looked := time.Now(); ; {
		var locked bool
		if err := l.row(ctx, []any{&locked}, "select pg_try_advisory_lock($1)", leaderLock); err != nil {
			return nil, errors.Join(fmt.Errorf("relay: lock: %w", err), l.close(ctx))
		}
		if locked {
			break
		}
		r.metrics.follow()
		if time.Since(looked) > r.timing.frozen/4 {
			looked = time.Now()
			var ended int
			if err := l.row(ctx, []any{&ended}, evictSQL, leaderLock, r.timing.frozen.Seconds()); err != nil {
				return nil, errors.Join(fmt.Errorf("relay: look for a frozen leader: %w", err), l.close(ctx))
			}
		}
		if rest(ctx, r.timing.elect, nil); ctx.Err() != nil {
			return nil, l.close(ctx)
		}
	}
	if err := l.take(ctx); err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

// take raises the term and reads how far the store is published.
func (l *leader) take(ctx context.Context) error {
	topic := l.relay.opts.Topic.Name
	err := l.row(ctx, []any{&l.term, &l.position, &l.counted, &l.was, &l.is}, takeSQL, topic)
	if err != nil {
		return fmt.Errorf("relay: take the cursor of %s: %w", topic, err)
	}
	l.partitions = make([]partition, l.counted)
	ctx, cancel := l.call(ctx)
	defer cancel()
	rows, err := l.conn.Query(ctx, "select partition, last_position, next_offset from relay_partitions where topic = $1", topic)
	if err != nil {
		return fmt.Errorf("relay: read the partitions of %s: %w", topic, err)
	}
	var n int32
	var p partition
	_, err = pgx.ForEachRow(rows, []any{&n, &p.last, &p.next}, func() error {
		if n >= l.counted {
			return fmt.Errorf("partition %d is kept, of %d", n, l.counted)
		}
		p.record = time.Now()
		l.partitions[n] = p
		return nil
	})
	if err != nil {
		return fmt.Errorf("relay: read the partitions of %s: %w", topic, err)
	}
	return nil
}

// prepare connects to Kafka and makes sure that topic, log and store still belong together.
func (l *leader) prepare(ctx context.Context) error {
	if err := l.measure(ctx); err != nil {
		return err
	}
	if err := l.readable(ctx); err != nil {
		return err
	}
	cfg := l.relay.opts.Kafka
	if cfg.ClientID == "" {
		cfg.ClientID = "relay"
	}
	err := l.alive(ctx, func(context.Context) (err error) {
		l.publisher, err = kafka.NewPublisher(cfg)
		return err
	})
	if err != nil {
		return err
	}
	if err := l.count(ctx); err != nil {
		return err
	}
	return l.compare(ctx, cfg)
}

// count records how many partitions the topic has when it is first seen, and later insists on it.
func (l *leader) count(ctx context.Context) error {
	topic := l.relay.opts.Topic.Name
	n, err := l.publisher.Partitions(topic)
	if err == nil && n == l.counted && n > 0 {
		return nil
	}
	err = l.alive(ctx, func(context.Context) (err error) { // metadata may be old, so ask
		n, err = l.publisher.RefreshPartitions(topic)
		return err
	})
	switch {
	case err != nil:
		return err
	case n == l.counted:
		return nil
	case l.counted != 0:
		return &PartitionCountError{Topic: topic, Have: n, Want: l.counted}
	}
	if err := l.exec(ctx, "update relay_cursor set partitions = $3 where topic = $1 and term = $2", topic, l.term, n); err != nil {
		return err
	}
	l.counted, l.partitions = n, make([]partition, n)
	for i := range l.partitions {
		l.partitions[i].record = time.Now()
	}
	return nil
}

// alive runs fn, which must not use the session, and keeps the session alive meanwhile. When the session is lost,
// so is the leadership, and fn's context ends. At shutdown fn has a little time to finish.
func (l *leader) alive(ctx context.Context, fn func(context.Context) error) error {
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.relay.timing.send)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- fn(inner) }()
	ping := time.NewTicker(l.relay.timing.ping)
	defer ping.Stop()
	ending, lost := ctx.Done(), error(nil)
	for {
		select {
		case err := <-done:
			if lost != nil {
				return lost
			}
			return err
		case <-ending:
			ending = nil
			time.AfterFunc(l.relay.timing.finish, cancel)
		case <-ping.C:
			if lost != nil {
				continue
			}
			if lost = l.measure(ctx); lost != nil {
				cancel()
			}
		}
	}
}

// measure tells the metrics how much is not published yet; it also shows whether the session is still there.
func (l *leader) measure(ctx context.Context) error {
	var outbox int64
	var oldest float64
	if err := l.row(ctx, []any{&outbox, &oldest}, backlogSQL, l.position); err != nil {
		return fmt.Errorf("relay: look at the store: %w", err)
	}
	l.backlogAt = time.Now()
	l.relay.metrics.outbox.Set(float64(max(outbox, 0)))
	l.relay.metrics.oldest.Set(max(oldest, 0))
	return nil
}

// call bounds a statement. The end of ctx does not cut it off, since that would cost the connection: a leader that
// is to stop does so between statements.
func (l *leader) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
}

func (l *leader) row(ctx context.Context, into []any, sql string, args ...any) error {
	ctx, cancel := l.call(ctx)
	defer cancel()
	return l.conn.QueryRow(ctx, sql, args...).Scan(into...)
}

// exec changes the one row of the cursor.
func (l *leader) exec(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := l.call(ctx)
	defer cancel()
	tag, err := l.conn.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = errFenced
	}
	return err
}

// confess writes a named error to the cursor, where people look for it, and returns the error.
func (l *leader) confess(ctx context.Context, err error) error {
	if !stops(err) {
		return err
	}
	return errors.Join(err, l.exec(ctx, "update relay_cursor set stopped = $3 where topic = $1 and term = $2", l.relay.opts.Topic.Name, l.term, err.Error()))
}

// close gives the leadership up: the lock goes with the session.
func (l *leader) close(ctx context.Context) error {
	var err error
	if l.publisher != nil {
		err = l.publisher.Close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.relay.timing.finish)
	defer cancel()
	// A session that the server has ended cannot be closed in good order, and need not be.
	_ = l.conn.Close(ctx)
	return err
}
