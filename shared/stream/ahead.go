package stream

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/eventstore"
	"github.com/feira-shop/feira/shared/operator"
)

var (
	//go:embed sql/enrol.sql
	enrolSQL string
	//go:embed sql/partitions.sql
	partitionsSQL string
)

// ahead is what was read of windows that can close and is not said yet: a window with many keys is read once, and said in
// many closings.
type ahead[A any] struct {
	from       position    // what it begins after
	results    []Result[A] // in the order of windows and keys
	until      int64       // closed whole when all of them are said
	partitions int         // that the operator had when it was read
}

// readAhead adds up the first windows that can close, at most most; nil if they hold nothing.
func (w *windower[A]) readAhead(ctx context.Context, q operator.Querier, h horizon, most int) (*ahead[A], error) {
	ends, more, err := w.ends(ctx, q, h.from.until, h.until, most)
	if err != nil {
		return nil, err
	}
	if len(ends) == 0 {
		w.closed = h.until
		return nil, nil //nolint:nilnil // there is nothing, and nothing is wrong
	}
	panes, err := w.read(ctx, q, ends[0]-w.windows.size.Microseconds(), ends[len(ends)-1])
	if err != nil {
		return nil, err
	}
	a := &ahead[A]{from: h.from, results: w.fold(h.from, ends, panes), until: h.until, partitions: h.partitions}
	if more {
		a.until = ends[len(ends)-1]
	}
	if len(a.results) == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	return a, nil
}

// follows says whether what was read still goes on where the windows are closed, and no partition was added since.
func (a *ahead[A]) follows(h horizon) bool { return a.from == h.from && a.partitions == h.partitions }

// first is the closing that says the first results, at most most.
func (a *ahead[A]) first(most int) *closing[A] {
	if len(a.results) <= most {
		return &closing[A]{a.results, position{until: a.until}}
	}
	last := a.results[most-1]
	c := &closing[A]{a.results[:most], position{until: last.Window.End.UnixMicro()}}
	if !a.results[most].Window.End.Equal(last.Window.End) {
		return c
	}
	c.until, c.key = a.from.until, last.Key // a part of the last window's keys
	for i := most - 1; i >= 0; i-- {
		if r := a.results[i]; r.Window != last.Window {
			c.until = r.Window.End.UnixMicro()
			break
		}
	}
	return c
}

// said leaves out what a closing has said.
func (a *ahead[A]) said(c *closing[A]) { a.from, a.results = c.position, a.results[len(c.results):] }

// PartitionAddedError says that a closing was made of fewer partitions than there are. The next one knows them all.
type PartitionAddedError struct {
	Operator   string
	Knew, Have int // partitions
}

func (e *PartitionAddedError) Error() string {
	return fmt.Sprintf("stream %s: what its windows hold was added up for %d partitions, and now there are %d: it is added up again", e.Operator, e.Knew, e.Have)
}

// enrol reads how far the windows are closed whole. A partition that is added meanwhile waits here for a closing under
// way, and later closings see it: see holdPartitions.
func (w *windower[A]) enrol(ctx context.Context, q operator.Querier) (until int64, err error) {
	if err := q.QueryRow(ctx, enrolSQL, w.name, int64(noWatermark)).Scan(&until); err != nil {
		return 0, fmt.Errorf("read how far the windows of %s are closed: %w", w.name, err)
	}
	return until, nil
}

// holdPartitions has partitions that are added from now on wait for the end of the transaction, and demands that none was
// added since Look.
func (w *windower[A]) holdPartitions(ctx context.Context, tx *eventstore.Tx) error {
	if err := tx.Exec(ctx, "select from stream_windows where operator = $1 for update", w.name); err != nil {
		return fmt.Errorf("lock the windows of %s: %w", w.name, err)
	}
	rows, err := tx.Query(ctx, partitionsSQL, w.name, w.topics())
	if err != nil {
		return fmt.Errorf("count the partitions of %s: %w", w.name, err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return fmt.Errorf("count the partitions of %s: %w", w.name, err)
	}
	if n != w.ahead.partitions {
		return &PartitionAddedError{w.name, w.ahead.partitions, n}
	}
	return nil
}
