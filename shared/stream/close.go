package stream

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

var (
	//go:embed sql/horizon.sql
	horizonSQL string
	//go:embed sql/panes.sql
	panesSQL string
	//go:embed sql/close.sql
	closeSQL string
)

// windowsAtOnce bounds what a closing reads.
const windowsAtOnce = 8

// position is how far windows are closed.
type position struct {
	until int64  // closed whole up to here
	key   string // and of the next window that holds anything, keys up to this one; "": none
}

// closing is what a closing says, and how far the windows are closed by it.
type closing[A any] struct {
	results []Result[A]
	position
}

// Ripe implements [operator.Closing]. The watermarks of other processes can only be lower than these allow.
func (w *windower[A]) Ripe() bool {
	lowest := w.lowest()
	return lowest > noWatermark && w.windows.passed(lowest) > w.closed
}

// lowest is the minimum of the watermarks in this process; noWatermark if there is none.
func (w *windower[A]) lowest() int64 {
	if len(w.watermarks) == 0 {
		return noWatermark
	}
	return slices.Min(slices.Collect(maps.Values(w.watermarks)))
}

// Look implements [operator.Closing]: it adds up what can close, and says how many results that is, at most most. What
// it reads cannot change any more: events that would change it are late in their partitions.
func (w *windower[A]) Look(ctx context.Context, q operator.Querier, most int) (int, error) {
	w.closing = nil
	h, err := w.horizon(ctx, q)
	if err != nil || h.until <= h.from.until {
		return 0, err
	}
	if w.ahead == nil || !w.ahead.follows(h) {
		if w.ahead, err = w.readAhead(ctx, q, h, min(windowsAtOnce, most)); err != nil {
			return 0, err
		}
	}
	if w.ahead == nil {
		return 0, nil
	}
	w.closing = w.ahead.first(most)
	return len(w.closing.results), nil
}

// horizon is how far the windows are closed, and how far they can be.
type horizon struct {
	from       position
	until      int64
	partitions int // that the operator reads
}

func (w *windower[A]) horizon(ctx context.Context, q operator.Querier) (horizon, error) {
	h := horizon{until: noWatermark}
	var lowest *int64
	err := q.QueryRow(ctx, horizonSQL, w.name, w.topics(), int64(noWatermark)).Scan(&h.from.until, &h.from.key, &h.partitions, &lowest)
	if err != nil {
		return h, fmt.Errorf("read the watermarks of %s: %w", w.name, err)
	}
	if lowest != nil { // else some partition has said nothing yet
		h.until = w.windows.passed(*lowest)
	}
	return h, nil
}

func (w *windower[A]) topics() []string {
	topics := make([]string, len(w.from))
	for i, s := range w.from {
		topics[i] = s.topic.Name
	}
	return topics
}

// ends are those of the first windows in (from, until] that hold anything, at most most, and whether there are more.
func (w *windower[A]) ends(ctx context.Context, q operator.Querier, from, until int64, most int) ([]int64, bool, error) {
	rows, err := q.Query(ctx, "select distinct pane from stream_partials where operator = $1 and pane > $2 and pane < $3 order by pane limit $4",
		w.name, from-w.windows.size.Microseconds(), until, most+1)
	if err != nil {
		return nil, false, fmt.Errorf("look for windows of %s to close: %w", w.name, err)
	}
	panes, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, false, fmt.Errorf("look for windows of %s to close: %w", w.name, err)
	}
	ends := slices.DeleteFunc(w.windows.ends(panes), func(end int64) bool { return end <= from || end > until })
	if len(ends) > most {
		return ends[:most], true, nil
	}
	return ends, len(panes) > most, nil
}

// read adds up the panes in [from, to), key by key.
func (w *windower[A]) read(ctx context.Context, q operator.Querier, from, to int64) (map[int64]map[string]A, error) {
	rows, err := q.Query(ctx, panesSQL, w.name, from, to)
	if err != nil {
		return nil, fmt.Errorf("read the panes of %s: %w", w.name, err)
	}
	panes, err := w.addPanes(rows)
	if err != nil {
		return nil, fmt.Errorf("read the panes of %s: %w", w.name, err)
	}
	return panes, nil
}

// addPanes adds rows of partial values up, by pane and key.
func (w *windower[A]) addPanes(rows pgx.Rows) (map[int64]map[string]A, error) {
	panes := map[int64]map[string]A{}
	var pane int64
	var entries []byte
	_, err := pgx.ForEachRow(rows, []any{&pane, &entries}, func() error {
		if panes[pane] == nil {
			panes[pane] = map[string]A{}
		}
		return w.addEntries(panes[pane], entries)
	})
	return panes, err
}

func (w *windower[A]) addEntries(into map[string]A, entries []byte) error {
	var values map[string]A
	if err := json.Unmarshal(entries, &values); err != nil {
		return err
	}
	for key, v := range values {
		w.merge(into, key, v)
	}
	return nil
}

// fold makes results of panes, in the order of windows and keys, but for those that were said.
func (w *windower[A]) fold(from position, ends []int64, panes map[int64]map[string]A) []Result[A] {
	var results []Result[A]
	for i, end := range ends {
		values := w.window(panes, end)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if i == 0 && key <= from.key {
				continue
			}
			results = append(results, Result[A]{Key: key, Window: w.windows.ending(end), Value: values[key], Revision: 1})
		}
	}
	return results
}

// window adds up the panes of the window that ends then.
func (w *windower[A]) window(panes map[int64]map[string]A, end int64) map[string]A {
	slide := w.windows.slide.Microseconds()
	if w.windows.size == w.windows.slide {
		return panes[end-slide]
	}
	sum := map[string]A{}
	for pane := end - w.windows.size.Microseconds(); pane < end; pane += slide {
		for key, v := range panes[pane] {
			w.merge(sum, key, v)
		}
	}
	return sum
}

// Close implements [operator.Closing]: it queues what Look found, and forgets the panes that no open window needs.
func (w *windower[A]) Close(ctx context.Context, tx *eventstore.Tx) error {
	c := w.closing
	if c == nil {
		return errors.New("shared/stream: nothing was found to close")
	}
	said := c.results
	if w.refused {
		// Perhaps a stream is there already, from before this operator's tables were lost: it has its next revision.
		var err error
		if said, err = w.differing(ctx, tx, said); err != nil {
			return err
		}
	}
	if err := w.holdPartitions(ctx, tx); err != nil {
		return err
	}
	if err := w.say(tx, said); err != nil {
		return err
	}
	keys, ends, err := keysByWindow(c.results)
	if err != nil {
		return err
	}
	tx.Later(closeSQL, w.name, c.until, c.key, c.until-w.windows.size.Microseconds(), ends, keys)
	return nil
}

// keysByWindow lists the keys of each window.
func keysByWindow[A any](results []Result[A]) (keys []string, ends []int64, err error) {
	byEnd := map[int64][]string{}
	for _, r := range results {
		end := r.Window.End.UnixMicro()
		byEnd[end] = append(byEnd[end], r.Key)
	}
	for _, end := range slices.Sorted(maps.Keys(byEnd)) {
		list, err := json.Marshal(byEnd[end])
		if err != nil {
			return nil, nil, err
		}
		keys, ends = append(keys, string(list)), append(ends, end)
	}
	return keys, ends, nil
}

// Closed implements [operator.Closing].
func (w *windower[A]) Closed(committed bool) {
	w.refused = !committed
	if committed && w.closing != nil {
		w.closed = w.closing.until
		if w.ahead.said(w.closing); len(w.ahead.results) == 0 {
			w.ahead = nil
		}
		w.metrics.closed(len(w.closing.results))
	}
	w.closing = nil
	w.show()
}
