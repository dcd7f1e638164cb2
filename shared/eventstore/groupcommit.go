package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrStopped says that the store does not take appends any more: [Store.Run] has ended. Nothing was written.
var ErrStopped = errors.New("eventstore: the store has stopped; nothing was written")

const (
	// stopGrace is how long Run goes on writing what was handed to it before it was told to stop.
	stopGrace = 3 * time.Second
	// sideLaneWait is how long the side lane waits for one row before it tries its next request.
	sideLaneWait = "100ms"
)

// Append writes one request through the group commit: requests of concurrent callers share a transaction.
//
// ctx never reaches that transaction. When it ends while the request is still queued, the request is withdrawn and
// Append returns ctx's error: nothing was written. When it ends later, Append returns [ErrUnknown], and appending
// the same events (the same ids) at the same expected version tells: it succeeds, without writing twice.
//
// Other errors: [*ConflictError], [*TooLargeError], [*InvalidError], [ErrAttemptLost], [ErrStopped], or the
// server's own when it refuses the data. Failures of network and server are retried until ctx ends.
func (s *Store) Append(ctx context.Context, a Append) (Result, error) {
	if err := a.check(); err != nil {
		return Result{}, err
	}
	if len(a.Events) == 0 && len(a.Jobs) > 0 && a.Attempt == nil {
		return Result{}, &InvalidError{Stream: a.Stream, Reason: "jobs need events or an attempt, by which they are recognised after an unknown outcome"}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	r := newRequest(a)
	if !s.queue.push(r) {
		return Result{}, ErrStopped
	}
	select {
	case o := <-r.outcome:
		r.flushed.note(ctx)
		return o.result, o.err
	case <-ctx.Done():
	}
	if r.leave() {
		s.queue.remove(r)
		s.side.remove(r)
		return Result{}, ctx.Err()
	}
	select {
	case o := <-r.outcome: // it came at the same moment
		return o.result, o.err
	default:
		return Result{}, fmt.Errorf("%w (%w)", ErrUnknown, ctx.Err())
	}
}

// commitGroups runs both lanes until stop ends and what was handed to them is written, or the grace is over.
func (s *Store) commitGroups(stop context.Context) {
	hard, cancel := context.WithCancel(context.WithoutCancel(stop))
	defer cancel()
	unhook := context.AfterFunc(stop, func() {
		s.queue.close()
		time.AfterFunc(stopGrace, cancel)
	})
	defer unhook()

	mainDone, sideStop := context.WithCancel(context.WithoutCancel(stop))
	defer sideStop()
	var own ownConn
	defer own.close(mainDone)
	main := newLane(s, s.queue, s.opts.maxFlush(), true)
	main.connect = s.lend
	main.busy = func(r *request) {
		s.metrics.sideLane.Inc()
		s.side.putBack(false, r)
	}
	side := newLane(s, s.side, 1, false)
	side.connect = func(ctx context.Context) (session, func(error), error) { return own.lend(ctx, s) }
	side.busy = func(r *request) { s.side.putBack(false, r) } // behind the others: one slow row must not hold them up

	var lanes sync.WaitGroup
	lanes.Go(func() { side.run(hard, mainDone) })
	main.run(hard, stop)
	sideStop()
	lanes.Wait()
	s.abandon(s.queue)
	s.abandon(s.side)
}

// abandon answers those whose requests could not be written before the stop.
func (s *Store) abandon(q *queue) {
	q.close()
	for q.len() > 0 {
		for _, r := range q.take(maxFlush) {
			err := ErrStopped
			if r.uncertain {
				err = ErrUnknown
			}
			r.settle(Result{}, err)
		}
	}
}

// lend gives the main lane a connection of the pool.
func (s *Store) lend(ctx context.Context) (session, func(error), error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return conn, func(error) { conn.Release() }, nil
}

// ownConn is the side lane's connection. It is not one of the pool's: waiting for rows must not use them up.
type ownConn struct{ conn *pgx.Conn }

func (o *ownConn) lend(ctx context.Context, s *Store) (session, func(error), error) {
	if o.conn == nil {
		conn, err := s.dial(ctx, map[string]string{"lock_timeout": sideLaneWait})
		if err != nil {
			return nil, nil, err
		}
		o.conn = conn
	}
	giveBack := func(err error) { // to be used again, unless more happened than an ordinary refusal
		var pe *pgconn.PgError
		if err != nil && (!errors.As(err, &pe) || o.conn.IsClosed()) {
			o.close(ctx)
		}
	}
	return o.conn, giveBack, nil
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
