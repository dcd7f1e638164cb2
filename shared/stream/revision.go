package stream

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

//go:embed sql/newest.sql
var newestSQL string

// say queues results as the revisions they are, and what the service keeps of them.
func (w *windower[A]) say(tx *eventstore.Tx, results []Result[A]) error {
	for _, r := range results {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make an event id: %w", err)
		}
		meta := events.Meta{ID: id.String(), Time: events.Timestamp(w.now()), Correlation: id.String(), Actor: w.name}
		e, err := eventstore.Encode(meta, w.total.Event(r))
		if err != nil {
			return operator.Reject(err)
		}
		tx.Append(eventstore.Append{
			Stream: w.total.Stream(r), Expected: int64(r.Revision) - 1, State: json.RawMessage(`{}`), Events: []eventstore.Event{e},
		})
	}
	if w.total.Keep == nil || len(results) == 0 {
		return nil
	}
	return w.total.Keep(tx, results)
}

// newest is the last revision of a result as the store has it.
type newest struct {
	Stream  string
	Version int64
	Data    []byte // nil: archived
}

// differing leaves out the results that the store has as they are, and numbers the others as the next revisions. Its
// streams are locked until the transaction ends.
func (w *windower[A]) differing(ctx context.Context, tx *eventstore.Tx, results []Result[A]) ([]Result[A], error) {
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = w.total.Stream(r)
	}
	if _, err := tx.Load(ctx, names); err != nil {
		return nil, err
	}
	have, err := revisions(ctx, tx, names)
	if err != nil {
		return nil, err
	}
	var next []Result[A]
	for i, r := range results {
		same, err := w.same(r, have[names[i]])
		if err != nil {
			return nil, err
		}
		if !same {
			r.Revision = int(have[names[i]].Version) + 1
			next = append(next, r)
		}
	}
	return next, nil
}

// revisions are the newest ones of streams.
func revisions(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, streams []string,
) (map[string]newest, error) {
	rows, err := q.Query(ctx, newestSQL, streams)
	if err != nil {
		return nil, fmt.Errorf("read the newest revisions: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[newest])
	if err != nil {
		return nil, fmt.Errorf("read the newest revisions: %w", err)
	}
	have := make(map[string]newest, len(all))
	for _, n := range all {
		have[n.Stream] = n
	}
	return have, nil
}

// same says whether the store's revision tells the same value. What is archived is known to be there, and taken for right.
func (w *windower[A]) same(r Result[A], have newest) (bool, error) {
	if have.Version == 0 {
		return false, nil
	}
	r.Revision = int(have.Version)
	data, err := json.Marshal(w.total.Event(r))
	return have.Data == nil || bytes.Equal(data, have.Data), err
}
