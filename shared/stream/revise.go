package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// revisedAtOnce bounds a transaction that appends revisions.
const revisedAtOnce = 500

// noteClosed reads how far the windows are closed: whole, and of the one after it up to which key.
func (w *windower[A]) noteClosed(ctx context.Context, q operator.Querier) error {
	c := closing[A]{position: position{until: noWatermark}}
	var partly int64
	err := q.QueryRow(ctx, `select closed_until, closed_key, (select coalesce(max(window_end), 0) from stream_closings c where c.operator = w.operator)
		from stream_windows w where operator = $1`, w.name).Scan(&c.until, &c.key, &partly)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read how far the windows of %s are closed: %w", w.name, err)
	}
	w.closed, w.closing, w.partly = c.until, &c, partly
	return nil
}

// isClosed says whether a result was said when Differs was called.
func (w *windower[A]) isClosed(end int64, key string) bool {
	return end <= w.closing.until || w.closing.key != "" && end == w.partly && key <= w.closing.key
}

// Revise implements [operator.Revised].
func (w *windower[A]) Revise(ctx context.Context, store *eventstore.Store, dry bool) (operator.TableDifference, error) {
	d := operator.TableDifference{Table: "results"}
	results, err := w.closedResults(ctx, store)
	if err != nil {
		return d, err
	}
	for chunk := range slices.Chunk(results, revisedAtOnce) {
		if err := w.reviseChunk(ctx, store, chunk, dry, &d); err != nil {
			return d, fmt.Errorf("revise the results of %s: %w", w.name, err)
		}
	}
	return d, nil
}

// closedResults are those that must have been said, and, with the value of no events, those that were said and must not
// have been.
func (w *windower[A]) closedResults(ctx context.Context, store *eventstore.Store) ([]Result[A], error) {
	panes := map[int64]map[string]A{}
	for of, values := range w.whole().partials {
		if panes[of.pane] == nil {
			panes[of.pane] = map[string]A{}
		}
		for key, v := range values {
			w.merge(panes[of.pane], key, v)
		}
	}
	wanted := map[int64]map[string]A{}
	for _, end := range w.windows.ends(slices.Collect(maps.Keys(panes))) {
		wanted[end] = maps.Clone(w.window(panes, end))
		maps.DeleteFunc(wanted[end], func(key string, _ A) bool { return !w.isClosed(end, key) })
	}
	if err := w.addSaid(ctx, store, wanted); err != nil {
		return nil, err
	}
	var results []Result[A]
	for _, end := range slices.Sorted(maps.Keys(wanted)) {
		for _, key := range slices.Sorted(maps.Keys(wanted[end])) {
			results = append(results, Result[A]{Key: key, Window: w.windows.ending(end), Value: wanted[end][key], Revision: 1})
		}
	}
	return results, nil
}

// addSaid adds what was said without any event to say it of.
func (w *windower[A]) addSaid(ctx context.Context, store *eventstore.Store, wanted map[int64]map[string]A) error {
	rows, err := store.Pool().Query(ctx, "select window_end, keys from stream_closings where operator = $1", w.name)
	if err != nil {
		return fmt.Errorf("read what %s has closed: %w", w.name, err)
	}
	var end int64
	var list []byte
	_, err = pgx.ForEachRow(rows, []any{&end, &list}, func() error {
		var keys []string
		if err := json.Unmarshal(list, &keys); err != nil {
			return err
		}
		for _, key := range keys {
			if _, is := wanted[end][key]; is || !w.isClosed(end, key) {
				continue
			}
			if wanted[end] == nil {
				wanted[end] = map[string]A{}
			}
			var none A
			wanted[end][key] = none
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what %s has closed: %w", w.name, err)
	}
	return nil
}

// reviseChunk compares some results with the newest revisions, and appends what differs as the next ones, with what the
// service keeps of them, in one transaction.
func (w *windower[A]) reviseChunk(ctx context.Context, store *eventstore.Store, results []Result[A], dry bool, d *operator.TableDifference) error {
	tx, err := store.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	next, err := w.differing(ctx, tx, results)
	if err != nil {
		return err
	}
	d.Rows += int64(len(results))
	for _, r := range next {
		if r.Revision == 1 {
			d.Missing++
		} else {
			d.Different++
		}
		d.Note(fmt.Sprintf("%s must be %+v, which is revision %d", w.total.Stream(r), r.Value, r.Revision))
	}
	if dry || len(next) == 0 {
		return nil
	}
	if err := w.say(tx, next); err != nil {
		return err
	}
	return tx.Commit(ctx, "es_commit")
}
