package eventstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	withinTries      = 10
	withinMinBackoff = 2 * time.Millisecond
	withinMaxBackoff = 200 * time.Millisecond
)

// Within runs fn in a transaction of its own and commits it when fn returns nil: load (and lock) streams, write the
// service's own rows, append. fn must not commit, and may be called again: a conflict with another writer, a
// deadlock or a lock that could not be had in time is retried, at most 10 times.
//
// When the connection is lost at the commit, the streams that fn loaded are locked again, which waits for the lost
// transaction's end, and the ids of the appended events tell. A transaction that appended no events to loaded
// streams cannot be recognised; it ends with [ErrUnknown].
func (s *Store) Within(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	backoff := withinMinBackoff
	ctx, end := s.traceWithin(ctx)
	for try := 1; ; try++ {
		tx, again, err := s.tryWithin(ctx, fn)
		if err != nil && errors.Is(err, ErrUnknown) {
			var written bool
			if written, again = s.settled(ctx, tx); written {
				end(tx)
				tx.written()
				return nil
			}
		}
		if err == nil {
			end(tx)
			return nil
		}
		if !again || ctx.Err() != nil {
			return err
		}
		if try == withinTries {
			return fmt.Errorf("eventstore: gave up after %d tries: %w", try, err)
		}
		s.metrics.within.Inc()
		select {
		case <-time.After(backoff/2 + rand.N(backoff)): //nolint:gosec // jitter is no secret
		case <-ctx.Done():
			return err
		}
		backoff = min(2*backoff, withinMaxBackoff)
	}
}

// tryWithin runs fn once; again says whether the error is one of bad luck.
func (s *Store) tryWithin(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (tx *Tx, again bool, err error) {
	tx, err = s.Begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer tx.Rollback()
	unlucky := func(err error) bool {
		return hasCode(err, codeLockNotAvailable, codeDeadlock, codeSerialization) || noPart(err)
	}
	if err := fn(ctx, tx); err != nil {
		return tx, unlucky(err), err
	}
	err = tx.Commit(ctx, callCommit)
	var conflict *ConflictError
	return tx, errors.As(err, &conflict) || unlucky(err), err
}

// settled finds out what became of a transaction whose commit got no answer. known is false when that cannot be
// told: a transaction that did not lock these streams could still come.
func (s *Store) settled(ctx context.Context, lost *Tx) (written, known bool) {
	var probe *Append
	for i := range lost.appends {
		if a := &lost.appends[i]; lost.loaded[a.Stream] && a.id() != "" {
			probe = a
		}
	}
	if probe == nil {
		return false, false
	}
	for range withinTries {
		written, err := s.writtenUnderLock(ctx, slices.Collect(maps.Keys(lost.loaded)), probe)
		if err == nil {
			return written, true
		}
		s.log.WarnContext(ctx, "the outcome of a transaction is not known yet", "stream", probe.Stream, "error", err)
		select {
		case <-time.After(withinMaxBackoff):
		case <-ctx.Done():
			return false, false
		}
	}
	return false, false
}

// writtenUnderLock locks the streams, so the lost transaction has ended, and looks for an event of it.
func (s *Store) writtenUnderLock(ctx context.Context, streams []string, a *Append) (bool, error) {
	tx, err := s.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	if _, err := tx.Load(ctx, streams); err != nil {
		return false, err
	}
	rows, err := tx.Query(ctx, "select meta ->> 'id' from events where stream = $1 and version = $2", a.Stream, a.Expected+1)
	if err != nil {
		return false, err
	}
	id, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return id == a.id(), err
}
