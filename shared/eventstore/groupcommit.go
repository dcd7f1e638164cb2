package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
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
	main := newLane(s, s.queue, s.opts.maxFlush(), true)
	defer main.conn.close(mainDone)
	main.busy = func(r *request) {
		s.metrics.sideLane.Inc()
		s.side.putBack(false, r)
	}
	side := newLane(s, s.side, 1, false)
	defer side.conn.close(mainDone)
	side.conn.params = map[string]string{"lock_timeout": sideLaneWait}
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
