package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ArchivedError says that what was to be read is archived, in part or whole.
type ArchivedError struct {
	Service string
	Stream  string // whose history was to be read; "" when events were read by position
	Version int64  // the stream's events up to this version are archived
	After   int64  // events after this position were to be read,
	Last    int64  // and those up to this one are archived
}

func (e *ArchivedError) Error() string {
	what := fmt.Sprintf("events after position %d were to be read, and those up to position %d are archived", e.After, e.Last)
	if e.Stream != "" {
		what = fmt.Sprintf("the events of stream %s up to version %d are archived", e.Stream, e.Version)
	}
	return fmt.Sprintf("eventstore: %s: %s; `feira admin parts %s` names the files, `feira admin unarchive` brings them back, the latest first",
		e.Service, what, e.Service)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Archived is the position up to which events are archived, 0: none are. Ask after a read: a part is noted here before
// it goes, so what was missing in the read is in the answer.
func (s *Store) Archived(ctx context.Context) (int64, error) {
	var last int64
	if err := s.pool.QueryRow(ctx, "select es_archived()").Scan(&last); err != nil {
		return 0, fmt.Errorf("eventstore: ask what is archived: %w", err)
	}
	return last, nil
}

// whole says whether a read of the events after a position was complete.
func (s *Store) whole(ctx context.Context, after int64) error {
	last, err := s.Archived(ctx)
	if err == nil && after < last {
		return &ArchivedError{Service: s.opts.Service, After: after, Last: last}
	}
	return err
}

// complete says whether a history, whose first event has the given version (0: it has no event), was complete.
func (s *Store) complete(ctx context.Context, q querier, stream string, first int64) error {
	if first == 1 {
		return nil
	}
	rows, err := q.Query(ctx, "select version from archived_streams where stream = $1", stream)
	if err != nil {
		return err
	}
	version, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // never written, or broken, which the caller notices
	case err != nil:
		return err
	}
	return &ArchivedError{Service: s.opts.Service, Stream: stream, Version: version}
}
