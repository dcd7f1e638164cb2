package eventstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/feira-shop/feira/shared/failpoint"
)

// What es_append says of a request.
const (
	statusConflict = int16(iota)
	statusAccepted
	statusBusy
	statusAttemptLost
	statusWrittenBefore
)

const (
	// flushTimeout is more than any timeout of the server: it ends a flush whose server has vanished.
	flushTimeout = 15 * time.Second
	minBackoff   = 10 * time.Millisecond
	maxBackoff   = time.Second
)

// lane writes the requests of one queue, one flush after the other. There are two: the main lane skips rows that
// somebody else holds, the side lane waits for them.
type lane struct {
	store *Store
	queue *queue
	limit int // requests per flush
	skip  bool
	conn  ownConn
	// busy takes a request whose row or lock is held by somebody else.
	busy func(*request)
	sql  string
}

func newLane(s *Store, q *queue, limit int, skip bool) *lane {
	return &lane{store: s, queue: q, limit: limit, skip: skip, conn: ownConn{store: s}, sql: callSQL("es_append", 0, fmt.Sprintf(", %t", skip))}
}

// run flushes at once when there is something, and takes what has queued meanwhile: batches form under load by
// themselves. When stop ends it goes on until its queue is empty; hard ends it in any case.
func (l *lane) run(hard, stop context.Context) {
	backoff := minBackoff
	for {
		if l.queue.len() == 0 {
			if stop.Err() != nil {
				return
			}
			select {
			case <-l.queue.ready:
			case <-stop.Done():
			}
			continue
		}
		if err := l.round(hard); err != nil {
			l.store.metrics.retries.Inc()
			l.store.log.Warn("append failed, trying again", "error", err, "waiting", l.queue.len())
			select {
			case <-time.After(backoff + rand.N(backoff)): //nolint:gosec // jitter is no secret
			case <-hard.Done():
			}
			backoff = min(2*backoff, maxBackoff)
		} else {
			backoff = minBackoff
		}
		if hard.Err() != nil {
			return
		}
	}
}

// round does one flush. Its error is one that concerns no request in particular; the requests are back in the queue.
func (l *lane) round(hard context.Context) error {
	ctx, cancel := context.WithTimeout(hard, flushTimeout)
	defer cancel()
	// The connection comes first: while it is awaited requests can still be taken back, and more of them come.
	conn, err := l.conn.lend(ctx)
	if err != nil {
		return err
	}
	batch := l.queue.take(l.limit)
	if len(batch) == 0 {
		l.conn.giveBack(hard, nil)
		return nil
	}
	start := time.Now()
	for _, r := range batch {
		r.flushed = flush{start, len(batch)}
	}
	failpoint.At("eventstore.before-append", l.store.opts.Service)
	statuses, actual, err := l.write(ctx, conn, batch)
	failpoint.At("eventstore.after-append", l.store.opts.Service)
	l.conn.giveBack(hard, err)
	l.store.metrics.flushSeconds.Observe(time.Since(start).Seconds())
	l.store.metrics.batchSize.Observe(float64(len(batch)))
	if err != nil {
		return l.failed(batch, err)
	}
	l.settle(batch, statuses, actual)
	return nil
}

// write sends es_append and its commit as one statement, so that the server never waits for this process while it
// holds the store lock.
func (l *lane) write(ctx context.Context, conn *pgx.Conn, batch []*request) (statuses []int16, actual []int64, err error) {
	a := &arrays{}
	for _, r := range batch {
		a.add(&r.Append)
	}
	rows, err := conn.Query(ctx, l.sql, a.args()...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&statuses, &actual); err != nil {
			return nil, nil, err
		}
	}
	rows.Close() // reads up to the end of the commit
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	if len(statuses) != len(batch) || len(actual) != len(batch) {
		return nil, nil, fmt.Errorf("eventstore: es_append answered %d of %d requests; is the schema of this version?", len(statuses), len(batch))
	}
	return statuses, actual, nil
}

// failed decides what a failed flush means: data that the server refuses splits it into single requests, a row
// that cannot be had sends it to the side lane, anything else has it written again whole.
func (l *lane) failed(batch []*request, err error) error {
	l.store.wantPart(err)
	if mayBeCommitted(err) { // written again with the same ids, it is recognised if it was
		l.store.metrics.unknown.Add(float64(len(batch)))
		for _, r := range batch {
			r.uncertain = true
		}
		l.queue.putBack(true, batch...)
		return err
	}
	if len(batch) == 1 && Deterministic(err) {
		batch[0].settle(Result{}, fmt.Errorf("eventstore: append to stream %s was refused: %w", batch[0].Stream, err))
		return nil
	}
	for _, r := range batch {
		r.unsend()
	}
	held := createdElsewhere(err)
	switch {
	case len(batch) == 1 && (held || !l.skip && hasCode(err, codeLockNotAvailable)):
		l.busy(batch[0])
		return nil
	case held || Deterministic(err):
		for _, r := range batch {
			r.alone = true
		}
		l.queue.putBack(true, batch...)
		return nil
	}
	l.queue.putBack(true, batch...)
	return err
}

// createdElsewhere says whether a flush gave up on a stream that somebody else is just inserting: such a row
// cannot be skipped.
func createdElsewhere(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == codeLockNotAvailable && strings.Contains(pe.Where, "es_create")
}

// settle tells each caller what became of its request.
func (l *lane) settle(batch []*request, statuses []int16, actual []int64) {
	var written bool
	var queues []string
	for i, r := range batch {
		switch statuses[i] {
		case statusAccepted, statusWrittenBefore:
			written = true
			if statuses[i] == statusAccepted || r.uncertain { // else an earlier request of its was counted
				l.store.metrics.appended(r.Events)
				l.store.wrote(len(r.Events))
			}
			for j := range r.Jobs {
				queues = append(queues, r.Jobs[j].Queue)
			}
			r.settle(Result{Version: r.next()}, nil)
		case statusBusy:
			r.unsend()
			l.busy(r)
		case statusAttemptLost:
			r.settle(Result{}, ErrAttemptLost)
		default:
			l.store.metrics.conflicts.Inc()
			r.settle(Result{}, &ConflictError{Stream: r.Stream, Expected: r.Expected, Actual: actual[i]})
		}
	}
	if written {
		l.store.committed(queues)
	}
}
