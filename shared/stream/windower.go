package stream

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/events"
	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

//go:embed sql/partials.sql
var partialsSQL string

// noWatermark is that of a partition before its first event: nothing is late, and no window closes.
const noWatermark = math.MinInt64 / 2

// windower is one running operator with windows. The operator loop calls it from one goroutine at a time. Of what the
// windows hold it keeps nothing in memory but the batch in hand: partial values add up in the database.
type windower[A any] struct {
	name    string
	from    Sources
	windows Windows
	total   Aggregation[A]
	now     func() time.Time
	metrics *windowMetrics

	watermarks map[shardKey]int64 // of the partitions owned, as committed
	rows       map[paneOf]int     // that panes have in the database, see compact
	mostRows   int
	pending    *harvest[A] // of the batch whose outcome is not known yet
	bytes      int         // of partial values, that the last Apply saved

	closing *closing[A] // found by the last Look
	ahead   *ahead[A]   // read, and not said yet
	closed  int64       // no window that ends up to here is open, as far as this process knows
	refused bool        // the last closing was rolled back

	history *harvest[A] // of a computation over the whole history; nil: none
	partly  int64       // end of the last window that anything was said of, for that computation
}

var (
	_ operator.Stateful = (*windower[int])(nil)
	_ operator.Sized    = (*windower[int])(nil)
	_ operator.Closing  = (*windower[int])(nil)
)

func newWindower[A any](name string, from Sources, windows Windows, total Aggregation[A]) *windower[A] {
	return &windower[A]{
		name: name, from: from, windows: windows, total: total, now: time.Now, metrics: newWindowMetrics(name),
		watermarks: map[shardKey]int64{}, rows: map[paneOf]int{}, mostRows: mostRows, closed: noWatermark,
	}
}

// paneOf is a pane of one partition.
type paneOf struct {
	shardKey
	pane int64
}

// harvest is what a batch adds, until its transaction is known to be committed.
type harvest[A any] struct {
	watermarks map[shardKey]int64
	partials   map[paneOf]map[string]A
	merged     map[paneOf]bool // its earlier rows are in it too
	ledger     *ledger
}

func newHarvest[A any]() *harvest[A] {
	return &harvest[A]{
		watermarks: map[shardKey]int64{}, partials: map[paneOf]map[string]A{}, merged: map[paneOf]bool{}, ledger: newLedger(),
	}
}

// Apply adds the batch up, pane by pane, and queues the partial values.
func (w *windower[A]) Apply(ctx context.Context, tx *eventstore.Tx, batch []operator.Record) error {
	h := newHarvest[A]()
	for _, r := range batch {
		if err := w.take(h, r); err != nil {
			return err
		}
	}
	w.pending = h
	if err := w.compact(ctx, tx, h); err != nil {
		return err
	}
	return w.save(tx, h)
}

// take adds one event to the harvest.
func (w *windower[A]) take(h *harvest[A], r operator.Record) error {
	p := shardKey{r.Topic, r.Partition}
	watermark, met := h.watermarks[p]
	if !met {
		var restored bool
		if watermark, restored = w.watermarks[p]; !restored {
			return fmt.Errorf("stream %s: partition %s/%d was not restored before its first batch", w.name, r.Topic, r.Partition)
		}
	}
	from := w.from.of(r.Topic)
	var keys []string
	if from.wants(r.Recorded) {
		keys = from.keysOf(r.Recorded)
	}
	if len(keys) == 0 {
		if clock := from.clock(r.Recorded); !clock.IsZero() {
			h.watermarks[p] = max(watermark, from.watermark(clock))
		}
		return nil
	}
	at := from.time(r.Recorded)
	pane := w.windows.pane(at.UnixMicro())
	judged := w.judge(from, r.Recorded, at, pane, watermark)
	h.ledger.note(r, judged, strings.Join(keys, ","), at, watermark)
	if judged == quarantined {
		return nil
	}
	h.watermarks[p] = max(watermark, from.watermark(at))
	if judged == counted {
		w.add(h, paneOf{p, pane}, keys, r.Recorded)
	}
	return nil
}

// judge holds an event against the watermark of its own partition, so that the answer does not depend on how partitions
// interleave. Late is what comes after the first of its windows closed: it counts in none of them.
func (w *windower[A]) judge(from Source, r events.Recorded, at time.Time, pane, watermark int64) fate {
	switch {
	case from.quarantines(r, at):
		return quarantined
	case w.windows.late(pane, watermark):
		return late
	}
	return counted
}

func (w *windower[A]) add(h *harvest[A], p paneOf, keys []string, r events.Recorded) {
	values := h.partials[p]
	if values == nil {
		values = map[string]A{}
		h.partials[p] = values
	}
	for _, key := range keys {
		w.merge(values, key, w.total.Lift(r, key))
	}
}

func (w *windower[A]) merge(into map[string]A, key string, value A) {
	if sum, there := into[key]; there {
		value = w.total.Merge(sum, value)
	}
	into[key] = value
}

// watermark is that of a partition in which nothing later than at was seen.
func (s Source) watermark(at time.Time) int64 { return at.UnixMicro() - s.disorder.Microseconds() }

// save queues one row per partition and pane, the watermarks and the ledger.
func (w *windower[A]) save(tx *eventstore.Tx, h *harvest[A]) error {
	rows := partialRows{}
	w.bytes = 0
	for _, p := range slices.SortedFunc(maps.Keys(h.partials), comparePanes) {
		n, err := rows.add(p, h.partials[p])
		if err != nil {
			return operator.Reject(fmt.Errorf("encode the partial values of %s/%d: %w", p.topic, p.partition, err))
		}
		w.bytes += n
	}
	var topics []string
	var partitions []int32
	var highest, watermarks []int64
	for _, p := range slices.SortedFunc(maps.Keys(h.watermarks), compare) {
		from := w.from.of(p.topic)
		topics, partitions = append(topics, p.topic), append(partitions, p.partition)
		highest, watermarks = append(highest, h.watermarks[p]+from.disorder.Microseconds()), append(watermarks, h.watermarks[p])
	}
	tx.Later(partialsSQL, w.name, rows.topics, rows.partitions, rows.panes, rows.entries, topics, partitions, highest, watermarks)
	h.ledger.save(tx, w.name)
	return nil
}

func comparePanes(a, b paneOf) int {
	if c := compare(a.shardKey, b.shardKey); c != 0 {
		return c
	}
	return int(max(-1, min(1, a.pane-b.pane)))
}

// partialRows collects columns of the table of partial values.
type partialRows struct {
	topics     []string
	partitions []int32
	panes      []int64
	entries    []string
}

func (r *partialRows) add(p paneOf, values any) (int, error) {
	entries, err := json.Marshal(values)
	if err != nil {
		return 0, err
	}
	r.topics, r.partitions = append(r.topics, p.topic), append(r.partitions, p.partition)
	r.panes, r.entries = append(r.panes, p.pane), append(r.entries, string(entries))
	return len(entries), nil
}

// Settle ends the last batch.
func (w *windower[A]) Settle(committed bool) {
	if committed && w.pending != nil {
		maps.Copy(w.watermarks, w.pending.watermarks)
		w.countRows(w.pending)
		w.metrics.judged(w.pending.ledger)
		w.show()
	}
	w.pending = nil
}

// CheckpointBytes is the size of the partial values that the last Apply saved.
func (w *windower[A]) CheckpointBytes() int { return w.bytes }

// Restore reads how far a partition's event time has come.
func (w *windower[A]) Restore(ctx context.Context, q operator.Querier, c operator.Claim) error {
	until, err := w.enrol(ctx, q)
	if err != nil {
		return err
	}
	var watermark *int64
	err = q.QueryRow(ctx, `select watermark from stream_watermarks where operator = $1 and topic = $2 and partition = $3`,
		w.name, c.Topic, c.Partition).Scan(&watermark)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the watermark of %s on %s/%d: %w", w.name, c.Topic, c.Partition, err)
	}
	p := shardKey{c.Topic, c.Partition}
	switch {
	case watermark != nil:
		w.watermarks[p] = *watermark
	case until > noWatermark: // a partition that was added later: what has closed without it stays closed
		w.watermarks[p] = until + w.windows.lateness.Microseconds()
	default:
		w.watermarks[p] = noWatermark
	}
	w.closed, w.closing, w.ahead = until, nil, nil
	w.show()
	return w.restoreRows(ctx, q, c)
}

// Release forgets a partition that is not owned any more.
func (w *windower[A]) Release(c operator.Claim) {
	delete(w.watermarks, shardKey{c.Topic, c.Partition})
	w.forgetRows(shardKey{c.Topic, c.Partition})
	w.closing, w.ahead = nil, nil
	w.show()
}
