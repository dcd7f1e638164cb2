package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

// mostRows is how many rows a pane of a partition has before the batch that adds another one makes them one. A window
// that fills in many small batches would else be read from as many rows when it closes.
const mostRows = 128

// compact takes the rows of panes that have many into the harvest, which writes them as one. Until then a pane's rows
// are not read, so this costs one row in as many.
func (w *windower[A]) compact(ctx context.Context, tx *eventstore.Tx, h *harvest[A]) error {
	for _, p := range slices.SortedFunc(maps.Keys(h.partials), comparePanes) {
		if w.rows[p] < w.mostRows {
			continue
		}
		rows, err := tx.Query(ctx, `delete from stream_partials where operator = $1 and topic = $2 and partition = $3 and pane = $4
			returning pane, entries`, w.name, p.topic, p.partition, p.pane)
		if err != nil {
			return fmt.Errorf("merge the rows of a pane of %s/%d: %w", p.topic, p.partition, err)
		}
		panes, err := w.addPanes(rows)
		if err != nil {
			return fmt.Errorf("merge the rows of a pane of %s/%d: %w", p.topic, p.partition, err)
		}
		for key, v := range panes[p.pane] {
			w.merge(h.partials[p], key, v)
		}
		h.merged[p] = true
	}
	return nil
}

// countRows follows a committed batch. A pane that gets nothing any more is forgotten.
func (w *windower[A]) countRows(h *harvest[A]) {
	for p := range h.partials {
		if h.merged[p] {
			w.rows[p] = 0
		}
		w.rows[p]++
	}
	maps.DeleteFunc(w.rows, func(p paneOf, _ int) bool { return w.windows.late(p.pane, w.watermarks[p.shardKey]) })
}

// restoreRows counts the rows of a partition that was claimed.
func (w *windower[A]) restoreRows(ctx context.Context, q operator.Querier, c operator.Claim) error {
	p := shardKey{c.Topic, c.Partition}
	rows, err := q.Query(ctx, "select pane, count(*) from stream_partials where operator = $1 and topic = $2 and partition = $3 group by pane",
		w.name, c.Topic, c.Partition)
	if err != nil {
		return fmt.Errorf("count the rows of %s on %s/%d: %w", w.name, c.Topic, c.Partition, err)
	}
	w.forgetRows(p)
	var pane int64
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&pane, &n}, func() error {
		w.rows[paneOf{p, pane}] = n
		return nil
	}); err != nil {
		return fmt.Errorf("count the rows of %s on %s/%d: %w", w.name, c.Topic, c.Partition, err)
	}
	return nil
}

func (w *windower[A]) forgetRows(of shardKey) {
	maps.DeleteFunc(w.rows, func(p paneOf, _ int) bool { return p.shardKey == of })
}
