package main

import (
	"context"
	"fmt"
	"time"

	"github.com/feira-shop/feira/shared/operator"
)

type auditCmd struct {
	admin `embed:""`

	Operator string `arg:"" help:"The operator."`
	Limit    int    `default:"50" help:"The latest so many."`
}

// Run shows the audit.
func (c *auditCmd) Run(ctx context.Context) error {
	pool, err := c.of(ctx, c.Operator)
	if err != nil {
		return err
	}
	defer pool.Close()
	list, err := operator.AuditOf(ctx, pool, c.Operator, c.Limit)
	if err != nil {
		return err
	}
	rows := [][]string{{"AT", "WHO", "ACTION", "PLACE", "DETAIL"}}
	for _, a := range list {
		where := ""
		if a.Topic != nil {
			where = *a.Topic
		}
		if a.Partition != nil {
			where += fmt.Sprintf("/%d", *a.Partition)
		}
		if a.Offset != nil {
			where += fmt.Sprintf("/%d", *a.Offset)
		}
		rows = append(rows, []string{a.At.UTC().Format(time.RFC3339), printable(a.Who), a.Action, where, printable(a.Detail)})
	}
	return table(rows)
}
