package stream

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/operator"
)

//go:embed sql/open.sql
var openSQL string

// Span says of which open windows is asked: those that overlap [From, To).
type Span struct {
	Key      string // "": all keys
	From, To time.Time
}

// OpenWindows reads what the windows of an operator that are not closed yet hold so far, in the order of windows and
// keys, with revision 0. It takes what the operator was declared with.
//
// Read these first, and what the aggregation keeps of closed ones afterwards: a window that closes in between is then in
// both, where the closed one stands, and never in neither.
func OpenWindows[A any](ctx context.Context, q operator.Querier, name string, windows Windows, total Aggregation[A], of Span) ([]Result[A], error) {
	w := windower[A]{name: name, windows: windows, total: total}
	first := windows.pane(of.From.UnixMicro()) - windows.size.Microseconds() + windows.slide.Microseconds()
	last := windows.pane(of.To.Add(-time.Microsecond).UnixMicro()) + windows.size.Microseconds()
	rows, err := q.Query(ctx, openSQL, name, first, last, of.Key, int64(noWatermark))
	if err != nil {
		return nil, fmt.Errorf("read the open windows of %s: %w", name, err)
	}
	panes := map[int64]map[string]A{}
	var closed, pane int64
	var entries []byte
	_, err = pgx.ForEachRow(rows, []any{&closed, &pane, &entries}, func() error {
		if panes[pane] == nil {
			panes[pane] = map[string]A{}
		}
		return w.addEntries(panes[pane], entries)
	})
	if err != nil {
		return nil, fmt.Errorf("read the open windows of %s: %w", name, err)
	}
	return w.openResults(panes, closed, of), nil
}

func (w *windower[A]) openResults(panes map[int64]map[string]A, closed int64, of Span) []Result[A] {
	var results []Result[A]
	for _, end := range w.windows.ends(slices.Collect(maps.Keys(panes))) {
		win := w.windows.ending(end)
		if end <= closed || !win.Start.Before(of.To) || !win.End.After(of.From) {
			continue
		}
		for key, v := range w.window(panes, end) {
			results = append(results, Result[A]{Key: key, Window: win, Value: v})
		}
	}
	slices.SortFunc(results, func(a, b Result[A]) int {
		return cmp.Or(a.Window.End.Compare(b.Window.End), cmp.Compare(a.Key, b.Key))
	})
	return results
}
