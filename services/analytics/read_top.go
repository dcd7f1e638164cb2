package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ranking is a window of top products, open or closed.
type ranking struct {
	Start, End time.Time
	Products   []Product
	Revision   int // 0: it is open
}

// listTop reads rankings of windows that begin in a period and before a place, newest first.
func listTop(ctx context.Context, q querier, cfg Config, p period, before, now time.Time, limit int) ([]ranking, error) {
	// The open ones are read first: one that closes in between is then in both, and the closed one counts.
	open, err := openTop(ctx, q, cfg, now)
	if err != nil {
		return nil, err
	}
	found, err := q.Query(ctx, listTopSQL, p.From, p.To, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list top products: %w", err)
	}
	rows, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (r ranking, err error) {
		var products []byte
		if err := row.Scan(&r.Start, &r.End, &products, &r.Revision); err != nil {
			return r, err
		}
		return r, json.Unmarshal(products, &r.Products)
	})
	if err != nil {
		return nil, fmt.Errorf("list top products: %w", err)
	}
	for _, o := range open {
		closed := slices.ContainsFunc(rows, func(r ranking) bool { return r.Start.Equal(o.Start) })
		if !closed && !o.Start.Before(p.From) && o.Start.Before(p.To) && o.Start.Before(before) {
			rows = append(rows, o)
		}
	}
	slices.SortFunc(rows, func(a, b ranking) int { return b.Start.Compare(a.Start) })
	return rows[:min(limit, len(rows))], nil
}

// openTop adds up what open windows hold so far. Of those it shows the ones that are due: the newest ends when the slide
// that runs now does. Those that reach further hold a part of the same, and would pass for a slump.
func openTop(ctx context.Context, q querier, cfg Config, now time.Time) ([]ranking, error) {
	panes, closedUntil, err := openSales(ctx, q, cfg)
	if err != nil {
		return nil, err
	}
	var open []ranking
	size, slide := cfg.Top(), cfg.Window
	due := now.Truncate(slide).Add(slide)
	for _, end := range endsOf(panes, size, slide) {
		if !end.After(closedUntil) || end.After(due) {
			continue
		}
		sum := Sales{}
		for pane := end.Add(-size); pane.Before(end); pane = pane.Add(slide) {
			sum = sum.Add(panes[pane.UnixMicro()])
		}
		open = append(open, ranking{Start: end.Add(-size), End: end, Products: sum.Top()})
	}
	return open, nil
}

// openSales reads the panes that open windows need, by their beginning, and how far windows are closed.
func openSales(ctx context.Context, q querier, cfg Config) (panes map[int64]Sales, closedUntil time.Time, err error) {
	const sql = `
select h.closed_until, p.pane, p.entries
  from (select coalesce((select closed_until from stream_windows where operator = $1), 0) as closed_until) h
  left join stream_partials p on p.operator = $1 and p.pane > h.closed_until - $2`
	rows, err := q.Query(ctx, sql, topName, cfg.Top().Microseconds())
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read open windows of top products: %w", err)
	}
	panes = map[int64]Sales{}
	var until int64
	var pane *int64
	var entries []byte
	_, err = pgx.ForEachRow(rows, []any{&until, &pane, &entries}, func() error {
		if pane == nil {
			return nil
		}
		var keyed map[string]Sales
		if err := json.Unmarshal(entries, &keyed); err != nil {
			return err
		}
		panes[*pane] = panes[*pane].Add(keyed[everything])
		return nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read open windows of top products: %w", err)
	}
	return panes, time.UnixMicro(until).UTC(), nil
}

// endsOf lists the ends of the windows that hold any of the panes, in order.
func endsOf(panes map[int64]Sales, size, slide time.Duration) []time.Time {
	var ends []time.Time
	for pane := range panes {
		start := time.UnixMicro(pane).UTC()
		for end := start.Add(slide); !end.After(start.Add(size)); end = end.Add(slide) {
			ends = append(ends, end)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return slices.CompactFunc(ends, time.Time.Equal)
}
