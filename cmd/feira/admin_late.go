package main

import (
	"context"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/stream"
)

type lateCmd struct {
	admin `embed:""`

	Operator string `arg:"" help:"The operator."`
	Limit    int    `default:"50" help:"The latest so many."`
}

// Run lists events that came too late to be counted, or whose time cannot be true.
func (c *lateCmd) Run(ctx context.Context) error {
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	list, err := stream.ListLate(ctx, pool, c.Operator, c.Limit)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Printf("nothing was late for %s\n", c.Operator)
		return nil
	}
	rows := [][]string{{"PLACE", "KEY", "REASON", "HAPPENED", "BY", "NOTED"}}
	for _, e := range list {
		by := e.Watermark.Sub(e.Happened) // what the disorder should have been larger by
		if e.Reason == "quarantined" {
			by = e.Happened.Sub(e.Recorded) // how far the clock is wrong
		}
		rows = append(rows, []string{
			fmt.Sprintf("%s/%d/%d", e.Topic, e.Partition, e.Offset), printable(e.Key), e.Reason,
			e.Happened.UTC().Format(time.RFC3339), by.Round(time.Millisecond).String(), e.Noted.UTC().Format(time.RFC3339),
		})
	}
	return table(rows)
}
