package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
)

// Until bounds a history: zero values mean no bound.
type Until struct {
	Version int64
	Time    time.Time // events recorded at or before it
}

// eachPage is how many events [Store.Each] reads at once.
const eachPage = 1000

const (
	recordedColumns = "select position, stream, type, key, data, meta, recorded_at from events "
	historySQL      = "select version, position, stream, type, key, data, meta, recorded_at from events where stream = $1 and version <= $2 order by version"
	eachSQL         = recordedColumns + "where position > $1 order by position limit $2"
	eachStreamSQL   = "select stream, version, shape, state from streams where stream > $1 order by stream limit $2"
	eachOfSQL       = recordedColumns + "where position > $1 and type = any ($3) order by position limit $2"
)

// History reads a stream's events in order, decoded; the event at index i has version i+1. A type that nobody
// here declared has a nil Event. Error: [*ArchivedError].
func (s *Store) History(ctx context.Context, stream string, until Until) ([]events.Recorded, error) {
	history, err := s.history(ctx, s.pool, stream, until)
	if err != nil {
		return nil, err
	}
	return until.cut(history), nil
}

func (s *Store) history(ctx context.Context, q querier, stream string, until Until) ([]events.Recorded, error) {
	var first int64
	rows, err := q.Query(ctx, historySQL, stream, until.last())
	if err != nil {
		return nil, fmt.Errorf("eventstore: history of stream %s: %w", stream, err)
	}
	history, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (events.Recorded, error) {
		var version int64
		r, err := s.scanRecorded(row, &version)
		if first == 0 {
			first = version
		}
		return r, err
	})
	if err == nil {
		err = s.complete(ctx, q, stream, first)
	}
	if err != nil {
		return nil, fmt.Errorf("eventstore: history of stream %s: %w", stream, err)
	}
	return history, nil
}

func (u Until) last() int64 {
	if u.Version > 0 {
		return u.Version
	}
	return 1<<63 - 1
}

// cut keeps what comes before the first event recorded later, so that a clock that was set back leaves no hole.
func (u Until) cut(history []events.Recorded) []events.Recorded {
	if u.Time.IsZero() {
		return history
	}
	for i := range history {
		if history[i].RecordedAt.After(u.Time) {
			return history[:i]
		}
	}
	return history
}

// History reads the events of a stream inside the transaction; for a state of an older shape. Error: [*ArchivedError].
func (t *Tx) History(ctx context.Context, stream string) ([]events.Recorded, error) {
	return t.store.history(ctx, t, stream, Until{})
}

// Each calls fn for every event after a position, in the order of positions, up to the newest. Events are read in
// pages, so a store of any size fits. An error of fn ends it and is returned. Error: [*ArchivedError], before fn is
// called with what comes after a hole.
func (s *Store) Each(ctx context.Context, after int64, fn func(events.Recorded) error) error {
	return s.each(ctx, after, fn, eachSQL)
}

// EventsOf is [Store.Each] for events of some types.
func (s *Store) EventsOf(ctx context.Context, after int64, types []string, fn func(events.Recorded) error) error {
	return s.each(ctx, after, fn, eachOfSQL, types)
}

func (s *Store) each(ctx context.Context, after int64, fn func(events.Recorded) error, sql string, args ...any) error {
	for {
		rows, err := s.pool.Query(ctx, sql, append([]any{after, eachPage}, args...)...)
		if err != nil {
			return fmt.Errorf("eventstore: read events after %d: %w", after, err)
		}
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (events.Recorded, error) { return s.scanRecorded(row) })
		if err == nil {
			err = s.whole(ctx, after)
		}
		if err != nil {
			return fmt.Errorf("eventstore: read events after %d: %w", after, err)
		}
		for _, r := range page {
			if err := fn(r); err != nil {
				return err
			}
			after = r.Sequence
		}
		if len(page) < eachPage {
			return nil
		}
	}
}

// EachStream calls fn for every stream that has events, in the order of names: what is kept, not what is folded.
func (s *Store) EachStream(ctx context.Context, fn func(Stream) error) error {
	for after := ""; ; {
		rows, err := s.pool.Query(ctx, eachStreamSQL, after, eachPage)
		if err != nil {
			return fmt.Errorf("eventstore: read streams after %q: %w", after, err)
		}
		page, err := pgx.CollectRows(rows, scanStream)
		if err != nil {
			return fmt.Errorf("eventstore: read streams after %q: %w", after, err)
		}
		for _, stream := range page {
			after = stream.Name
			if stream.Version == 0 {
				continue
			}
			if err := fn(stream); err != nil {
				return err
			}
		}
		if len(page) < eachPage {
			return nil
		}
	}
}

// scanRecorded reads the columns of recordedColumns, with those of before in front of them.
func (s *Store) scanRecorded(row pgx.CollectableRow, before ...any) (events.Recorded, error) {
	var r events.Recorded
	var meta []byte
	into := slices.Concat(before, []any{&r.Sequence, &r.Subject, &r.Type, &r.Key, (*[]byte)(&r.Data), &meta, &r.RecordedAt})
	if err := row.Scan(into...); err != nil {
		return r, err
	}
	if err := json.Unmarshal(meta, &r.Meta); err != nil {
		return r, fmt.Errorf("meta of the event at position %d: %w", r.Sequence, err)
	}
	r.RecordedAt = r.RecordedAt.UTC()
	r.Source = events.SourceOf(s.opts.Service)
	return r, s.decode(&r)
}

// decode sets the event, unless its type or version is unknown here.
func (s *Store) decode(r *events.Recorded) error {
	if s.opts.Registry == nil {
		return nil
	}
	event, err := s.opts.Registry.Decode(r.Type, r.Data)
	var unknownType *events.UnknownTypeError
	var unknownVersion *events.UnknownVersionError
	switch {
	case err == nil:
		r.Event = event
	case errors.As(err, &unknownType), errors.As(err, &unknownVersion):
	default:
		return fmt.Errorf("event at position %d: %w", r.Sequence, err)
	}
	return nil
}
