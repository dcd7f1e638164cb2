package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/operator"
)

var _ operator.Revised = (*windower[int])(nil)

// StateTables implements [operator.Recomputed].
func (w *windower[A]) StateTables() []string {
	return []string{"stream_partials", "stream_watermarks", "stream_late"}
}

// Recompute implements [operator.Recomputed]: the whole history is one harvest. Nothing is emitted: what a window holds
// is known when all partitions were read.
func (w *windower[A]) Recompute(r operator.Record, _ func(string, events.Event) error) error {
	p := shardKey{r.Topic, r.Partition}
	if _, met := w.watermarks[p]; !met {
		w.watermarks[p] = noWatermark
	}
	return w.take(w.whole(), r)
}

// whole is what the history adds up to.
func (w *windower[A]) whole() *harvest[A] {
	if w.history == nil {
		w.history = newHarvest[A]()
	}
	return w.history
}

// account is a partition of the history, or of what is saved, as it can be compared.
type account[A any] struct {
	watermark int64
	tally     tally
	set       []setAside
	panes     map[int64]map[string]A
}

// account is a partition as it must be: of its panes those that open windows need.
func (w *windower[A]) account(c operator.Claim) account[A] {
	p, h := shardKey{c.Topic, c.Partition}, w.whole()
	a := account[A]{watermark: noWatermark, tally: h.ledger.tallies[p], panes: map[int64]map[string]A{}}
	if at, met := h.watermarks[p]; met {
		a.watermark = at
	}
	for _, s := range h.ledger.set {
		if s.shardKey == p {
			a.set = append(a.set, s)
		}
	}
	for of, values := range h.partials {
		if of.shardKey == p && of.pane > w.closed-w.windows.size.Microseconds() {
			a.panes[of.pane] = values
		}
	}
	return a
}

// saved is a partition as the running operator has it.
func (w *windower[A]) saved(ctx context.Context, q operator.Querier, c operator.Claim) (account[A], error) {
	a := account[A]{watermark: noWatermark, tally: tally{}, panes: map[int64]map[string]A{}}
	rows, err := q.Query(ctx, "select coalesce(watermark, $4), counted, late, quarantined from stream_watermarks where operator = $1 and topic = $2 and partition = $3",
		w.name, c.Topic, c.Partition, int64(noWatermark))
	if err != nil {
		return a, err
	}
	var counts [3]int64
	if _, err = pgx.ForEachRow(rows, []any{&a.watermark, &counts[0], &counts[1], &counts[2]}, func() error {
		a.tally = tally{counted: counts[0], late: counts[1], quarantined: counts[2]}
		return nil
	}); err != nil {
		return a, err
	}
	rows, err = q.Query(ctx, `select "offset", reason from stream_late where operator = $1 and topic = $2 and partition = $3`, w.name, c.Topic, c.Partition)
	if err != nil {
		return a, err
	}
	var s setAside
	if _, err = pgx.ForEachRow(rows, []any{&s.offset, &s.fate}, func() error {
		a.set = append(a.set, s)
		return nil
	}); err != nil {
		return a, err
	}
	rows, err = q.Query(ctx, "select pane, entries from stream_partials where operator = $1 and topic = $2 and partition = $3", w.name, c.Topic, c.Partition)
	if err != nil {
		return a, err
	}
	a.panes, err = w.addPanes(rows)
	return a, err
}

// texts are what there is to compare, by what it is about.
func (a account[A]) texts() (map[string]string, error) {
	texts := map[string]string{
		"watermark": "watermark " + strconv.FormatInt(a.watermark, 10),
		"events":    fmt.Sprintf("%d events counted, %d late, %d quarantined", a.tally[counted], a.tally[late], a.tally[quarantined]),
	}
	for _, s := range a.set {
		texts[fmt.Sprintf("late %d", s.offset)] = fmt.Sprintf("offset %d is %s", s.offset, s.fate)
	}
	for pane, values := range a.panes {
		for key, v := range values {
			b, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			about := fmt.Sprintf("pane %s of %s", time.UnixMicro(pane).UTC().Format(time.RFC3339), key)
			texts[about] = about + " holds " + string(b)
		}
	}
	return texts, nil
}

// Differs implements [operator.Recomputed]. It also takes note of how far the windows are closed, as of this moment.
func (w *windower[A]) Differs(ctx context.Context, q operator.Querier, c operator.Claim) (operator.TableDifference, error) {
	d := operator.TableDifference{Table: fmt.Sprintf("open windows of %s/%d", c.Topic, c.Partition)}
	if err := w.noteClosed(ctx, q); err != nil {
		return d, err
	}
	saved, err := w.saved(ctx, q, c)
	if err != nil {
		return d, fmt.Errorf("read what %s has saved of %s/%d: %w", w.name, c.Topic, c.Partition, err)
	}
	if from := w.from.of(c.Topic); from.idle > 0 && saved.watermark > w.account(c).watermark {
		w.whole().watermarks[shardKey{c.Topic, c.Partition}] = saved.watermark // by ticks that are on no topic
	}
	have, err := saved.texts()
	if err != nil {
		return d, err
	}
	want, err := w.account(c).texts()
	if err != nil {
		return d, err
	}
	compareTexts(&d, have, want)
	return d, nil
}

func compareTexts(d *operator.TableDifference, have, want map[string]string) {
	d.Rows = int64(len(want))
	for _, about := range slices.Sorted(maps.Keys(want)) {
		text, there := have[about]
		switch {
		case !there:
			d.Missing++
			d.Note("is missing: " + want[about])
		case text != want[about]:
			d.Different++
			d.Note("is " + text + ", must be " + want[about])
		}
	}
	for _, about := range slices.Sorted(maps.Keys(have)) {
		if _, wanted := want[about]; !wanted {
			d.Excess++
			d.Note("must not be there: " + have[about])
		}
	}
}

// Replace implements [operator.Recomputed]: one row per pane holds what the batches of the partition added up to.
func (w *windower[A]) Replace(ctx context.Context, tx pgx.Tx, c operator.Claim) error {
	a, rows := w.account(c), partialRows{}
	for _, pane := range slices.Sorted(maps.Keys(a.panes)) {
		if _, err := rows.add(paneOf{shardKey{c.Topic, c.Partition}, pane}, a.panes[pane]); err != nil {
			return err
		}
	}
	from := w.from.of(c.Topic)
	var topics []string
	var partitions []int32
	var highest, watermarks []int64
	if a.watermark > noWatermark {
		topics, partitions = []string{c.Topic}, []int32{c.Partition}
		highest, watermarks = []int64{a.watermark + from.disorder.Microseconds()}, []int64{a.watermark}
	}
	for _, s := range []struct {
		sql  string
		args []any
	}{
		{"delete from stream_partials where operator = $1 and topic = $2 and partition = $3", []any{w.name, c.Topic, c.Partition}},
		{"delete from stream_late where operator = $1 and topic = $2 and partition = $3", []any{w.name, c.Topic, c.Partition}},
		{partialsSQL, []any{w.name, rows.topics, rows.partitions, rows.panes, rows.entries, topics, partitions, highest, watermarks}},
		{recountSQL, []any{w.name, c.Topic, c.Partition, a.tally[counted], a.tally[late], a.tally[quarantined]}},
		{lateSQL, lateArgs(w.name, a.set)},
	} {
		if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
			return fmt.Errorf("replace the open windows of %s on %s/%d: %w", w.name, c.Topic, c.Partition, err)
		}
	}
	return nil
}
