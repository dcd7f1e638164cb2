package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feira-shop/feira/shared/stream"
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
	open, err := dueTop(ctx, q, cfg, p, now)
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
		if !closed && o.Start.Before(before) {
			rows = append(rows, o)
		}
	}
	slices.SortFunc(rows, func(a, b ranking) int { return b.Start.Compare(a.Start) })
	return rows[:min(limit, len(rows))], nil
}

// dueTop are the open windows that are due: the newest ends when the slide that runs now does. Those that reach further
// hold a part of the same, and would pass for a slump.
func dueTop(ctx context.Context, q querier, cfg Config, p period, now time.Time) ([]ranking, error) {
	span := stream.Span{From: p.From, To: p.To}
	open, err := stream.OpenWindows(ctx, q, topName, cfg.topWindows(), topTotal, span)
	if err != nil {
		return nil, err
	}
	due := now.Add(cfg.Window - time.Duration(now.UnixNano()%int64(cfg.Window))) // windows count from 1970, Truncate from the year 1
	var all []ranking
	for _, r := range open {
		if !r.Window.End.After(due) && !r.Window.Start.Before(p.From) {
			all = append(all, ranking{Start: r.Window.Start, End: r.Window.End, Products: r.Value.Top()})
		}
	}
	return all, nil
}
